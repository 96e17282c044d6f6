"""The tills of suites/broken over raw lines: the good one keeps the protocol, the others break what they say they break.

Protocol sections 2 to 6 (envelope, errors, capabilities, rounds) and 22 (stdio); the list dialect is testing.md section 1.
"""

import json
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from suites.broken.good import STATE_SECONDS, Till
from suites.broken.wire import respond

from tests.testing.canned import messages, rules, run

ROOT = Path(__file__).parents[2]
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
ARGUMENTS: dict[str, Any] = {"cents": 500, "to": "the bakery"}
ACCEPTED: dict[str, Any] = {"confirm": {"action": "accept", "content": {"confirm": True}}}
DECLINED: dict[str, Any] = {"confirm": {"action": "decline"}}
BROKEN = ("tampered", "twice", "undeclared", "endless", "listing", "printing", "hanging")


class Wire:
    """One server on stdio, spoken to in lines."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in, self._out = process.stdin, process.stdout
        self._id = 0

    def write(self, line: bytes) -> None:
        self._in.write(line + b"\n")
        self._in.flush()

    def line(self) -> bytes:
        return self._out.readline()

    def send(self, method: str, params: dict[str, Any], capabilities: dict[str, Any] = FORMS) -> int:
        self._id += 1
        self.write(request(self._id, method, params, capabilities))
        return self._id

    def ask(self, method: str, params: dict[str, Any], capabilities: dict[str, Any] = FORMS) -> dict[str, Any]:
        """The whole response."""
        id_ = self.send(method, params, capabilities)
        response = json.loads(self.line())
        assert response["id"] == id_
        return response

    def call(
        self, tool: str, arguments: dict[str, Any], capabilities: dict[str, Any] = FORMS, **retried: Any
    ) -> dict[str, Any]:
        """The result, without its `_meta`."""
        response = self.ask("tools/call", {"name": tool, "arguments": arguments, **retried}, capabilities)
        return {key: value for key, value in response["result"].items() if key != "_meta"}

    def pay(self, state: str, answers: Any = ACCEPTED) -> dict[str, Any]:
        """The result of a retry."""
        return self.call("pay", ARGUMENTS, requestState=state, inputResponses=answers)

    def state(self) -> str:
        """That of a payment which waits for its confirmation."""
        return self.call("pay", ARGUMENTS)["requestState"]

    def refusal(self, params: dict[str, Any], capabilities: dict[str, Any] = FORMS) -> dict[str, Any]:
        return self.ask("tools/call", params, capabilities)["error"]

    def balance(self) -> tuple[int, int]:
        told = self.call("balance", {})["structuredContent"]
        return told["payments"], told["cents"]


def request(id_: int, method: str, params: dict[str, Any], capabilities: dict[str, Any]) -> bytes:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    sent = {"jsonrpc": "2.0", "id": id_, "method": method, "params": {"_meta": meta, **params}}
    return json.dumps(sent).encode()


def retry(state: str, answers: Any = ACCEPTED, arguments: dict[str, Any] = ARGUMENTS) -> dict[str, Any]:
    return {"name": "pay", "arguments": arguments, "requestState": state, "inputResponses": answers}


def text(result: dict[str, Any]) -> tuple[str, bool]:
    (block,) = result["content"]
    return block["text"], result["isError"]


@contextmanager
def started(*command: str, cwd: Path = ROOT) -> Generator[Wire]:
    """Ended by the end of its input, as the protocol has it."""
    with subprocess.Popen(
        [sys.executable, *command], cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Wire(process)
            assert process.stdin is not None
            process.stdin.close()
            assert process.wait(10) == 0
        finally:
            process.kill()


@pytest.fixture
def good() -> Generator[Wire]:
    with started("-m", "suites.broken.good") as wire:
        yield wire


# The good one


def test_a_payment_asks_for_its_confirmation_in_the_mcp_shape(good: Wire) -> None:
    asking = good.call("pay", ARGUMENTS)
    assert asking.pop("requestState")
    schema = {
        "type": "object",
        "properties": {"confirm": {"title": "Confirm", "type": "boolean"}},
        "required": ["confirm"],
    }
    params = {"mode": "form", "message": "Pay 500 cents to the bakery?", "requestedSchema": schema}
    assert asking == {
        "resultType": "input_required",
        "inputRequests": {"confirm": {"method": "elicitation/create", "params": params}},
    }


def test_a_confirmed_payment_is_made_once_however_often_its_retry_is_sent(good: Wire) -> None:
    state = good.state()
    paid = good.pay(state)
    assert paid == {
        "resultType": "complete",
        "content": [{"type": "text", "text": "Paid 500 cents to the bakery."}],
        "isError": False,
    }
    assert good.pay(state) == paid
    assert good.balance() == (1, 500)


def test_a_state_is_not_spent_again_by_way_of_a_round_without_an_answer(good: Wire) -> None:
    first = good.state()
    again = good.pay(first, {})["requestState"]
    good.pay(first)
    good.pay(again)
    assert good.balance() == (1, 500)


def test_two_payments_of_the_same_arguments_are_two(good: Wire) -> None:
    for state in (good.state(), good.state()):
        good.pay(state)
    assert good.balance() == (2, 1000)


@pytest.mark.parametrize(("first", "then"), [(ACCEPTED, DECLINED), (DECLINED, ACCEPTED)])
def test_a_settled_call_takes_no_other_answer(good: Wire, first: dict[str, Any], then: dict[str, Any]) -> None:
    state = good.state()
    good.pay(state, first)
    before = good.balance()
    assert text(good.pay(state, then)) == ("This call was already settled with other answers.", True)
    assert good.balance() == before


@pytest.mark.parametrize(
    "answer",
    [{"action": "decline"}, {"action": "cancel"}, {"action": "accept", "content": {"confirm": False}}],
    ids=["decline", "cancel", "false"],
)
def test_a_refusal_ends_the_call_without_a_payment(good: Wire, answer: dict[str, Any]) -> None:
    assert text(good.pay(good.state(), {"confirm": answer})) == ("Declined.", True)
    assert good.balance() == (0, 0)


def altered(state: str) -> dict[str, str]:
    body, signature = state.split(".")
    middle = len(body) // 2
    other = "B" if body[middle] == "A" else "A"
    return {
        "flipped": f"{body[:middle]}{other}{body[middle + 1 :]}.{signature}",
        "signed otherwise": f"{body}.{signature[::-1]}",
        "without its signature": body,
        "cut": state[: len(state) // 2],
        "longer": f"{state}0",
        "empty": "",
        "no ASCII": "ä.ö",
        "no text": "\ud800.\udfff",
    }


def test_an_altered_state_is_refused(good: Wire) -> None:
    state = good.state()
    refusals = {how: good.refusal(retry(one)) for how, one in altered(state).items()}
    refused = {"code": -32602, "message": "invalid or expired requestState; start the call again"}
    assert refusals == dict.fromkeys(altered(state), refused)
    assert good.balance() == (0, 0)


def test_a_state_of_another_call_is_refused(good: Wire) -> None:
    other_arguments = retry(good.state(), arguments={**ARGUMENTS, "cents": 501})
    other_tool = retry(good.call("ask_twice", {})["requestState"])
    assert [good.refusal(params)["code"] for params in (other_arguments, other_tool)] == [-32602, -32602]
    assert good.balance() == (0, 0)


def test_a_state_of_another_process_is_refused(good: Wire) -> None:
    with started("-m", "suites.broken.good") as other:
        assert good.refusal(retry(other.state()))["code"] == -32602


def test_an_expired_state_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    till = Till()
    asking = respond(till, request(1, "tools/call", {"name": "pay", "arguments": ARGUMENTS}, FORMS))
    assert asking is not None
    later = time.time() + STATE_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    response = respond(till, request(2, "tools/call", retry(asking["result"]["requestState"]), FORMS))
    assert response is not None
    assert response["error"]["code"] == -32602
    assert till.payments == 0


@pytest.mark.parametrize("answers", [{}, {"other": {"action": "accept"}}], ids=["none", "another key"])
def test_a_missing_answer_is_asked_for_again(good: Wire, answers: dict[str, Any]) -> None:
    again = good.pay(good.state(), answers)
    assert list(again["inputRequests"]) == ["confirm"]
    assert text(good.pay(again["requestState"])) == ("Paid 500 cents to the bakery.", False)


def test_an_answer_without_its_state_does_not_count(good: Wire) -> None:
    asking = good.call("pay", ARGUMENTS, inputResponses=ACCEPTED)
    assert asking["resultType"] == "input_required"
    assert good.balance() == (0, 0)


@pytest.mark.parametrize("answers", [[], "yes", {"confirm": True}, {"confirm": {"action": "perhaps"}}])
def test_answers_of_no_known_shape_are_refused(good: Wire, answers: Any) -> None:
    assert good.refusal(retry(good.state(), answers))["code"] == -32602


@pytest.mark.parametrize("content", [None, {}, {"confirm": "true"}, {"confirm": 1}])
def test_an_answer_that_does_not_match_its_form_is_an_error_of_the_tool(good: Wire, content: Any) -> None:
    state = good.state()
    told = good.pay(state, {"confirm": {"action": "accept", "content": content}})
    assert text(told) == ("The answer to 'confirm' does not match its form.", True)
    assert text(good.pay(state)) == ("Paid 500 cents to the bakery.", False)  # and the question is still open


@pytest.mark.parametrize("declared", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}])
def test_a_client_that_cannot_be_asked_is_told_what_it_lacks(good: Wire, declared: dict[str, Any]) -> None:
    error = good.refusal({"name": "pay", "arguments": ARGUMENTS}, declared)
    required = {"requiredCapabilities": FORMS}
    assert error == {"code": -32021, "message": "pay asks with a form", "data": required}


def test_an_empty_elicitation_capability_means_forms(good: Wire) -> None:
    assert good.call("pay", ARGUMENTS, {"elicitation": {}})["resultType"] == "input_required"


def test_what_asks_nothing_needs_no_capability(good: Wire) -> None:
    assert text(good.call("plain", {"text": "hello"}, {})) == ("hello", False)
    assert text(good.call("balance", {}, {})) == ("0 payments, 0 cents", False)


def test_the_second_question_depends_on_the_first_answer(good: Wire) -> None:
    color = good.call("ask_twice", {})
    red = {"color": {"action": "accept", "content": {"color": "red"}}}
    shade = good.call("ask_twice", {}, requestState=color["requestState"], inputResponses=red)
    assert shade["inputRequests"]["shade"]["params"]["message"] == "Which shade of red?"
    dark = {"shade": {"action": "accept", "content": {"shade": "dark"}}}
    told = good.call("ask_twice", {}, requestState=shade["requestState"], inputResponses=dark)
    assert text(told) == ("dark red", False)


def test_it_says_what_it_is_and_what_it_has(good: Wire) -> None:
    found = good.ask("server/discover", {})["result"]
    assert (found["resultType"], found["supportedVersions"]) == ("complete", ["2026-07-28"])
    asking = good.ask("tools/call", {"name": "pay", "arguments": ARGUMENTS})["result"]
    info = {"io.modelcontextprotocol/serverInfo": {"name": "till", "version": "1.0.0"}}
    assert (found["_meta"], asking["_meta"]) == (info, info)
    tools = good.ask("tools/list", {})["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["pay", "balance", "ask_twice", "plain"]


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("initialize", {}, -32601),
        ("tools/list", {"_meta": {}}, -32602),
        ("tools/call", {"name": "refund"}, -32602),
        ("tools/call", {"name": "pay", "arguments": []}, -32602),
        ("tools/call", {"name": "pay", "arguments": ARGUMENTS, "requestState": 1}, -32602),
    ],
)
def test_a_bad_request_gets_the_protocols_code(good: Wire, method: str, params: dict[str, Any], code: int) -> None:
    assert good.ask(method, params)["error"]["code"] == code


def test_another_revision_is_refused_with_those_it_speaks(good: Wire) -> None:
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2031-01-01", f"{prefix}clientCapabilities": FORMS}
    error = good.ask("server/discover", {"_meta": meta})["error"]
    assert (error["code"], error["data"]) == (-32022, {"supported": ["2026-07-28"], "requested": "2031-01-01"})


@pytest.mark.parametrize(
    "arguments", [{}, {"cents": "500", "to": "x"}, {"cents": 0, "to": "x"}, {"cents": True, "to": "x"}]
)
def test_arguments_that_do_not_fit_are_an_error_of_the_tool(good: Wire, arguments: dict[str, Any]) -> None:
    assert good.call("pay", arguments)["isError"]


def test_lines_that_are_no_requests_do_not_end_it(good: Wire) -> None:
    good.write(b"{")
    assert json.loads(good.line())["error"]["code"] == -32700
    good.write(b"[]")
    assert json.loads(good.line())["error"]["code"] == -32600
    good.write(b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}')
    assert text(good.call("plain", {"text": "hello"})) == ("hello", False)  # a notification has no answer


# The broken ones, each by its fault


@pytest.mark.parametrize("name", ["good", *BROKEN])
def test_each_till_can_be_started_as_a_script_from_anywhere(name: str, tmp_path: Path) -> None:
    with started(str(ROOT / "suites" / "broken" / f"{name}.py"), cwd=tmp_path) as wire:
        assert text(wire.call("plain", {"text": "hello"})) == ("hello", False)


@contextmanager
def broken(name: str) -> Generator[Wire]:
    with started("-m", f"suites.broken.{name}") as wire:
        yield wire


def test_tampered_takes_any_state() -> None:
    with broken("tampered") as till:
        states = [state[:10] + "A" + state[11:] for state in (till.state(), till.state())] + ["", "nonsense", "ä"]
        assert [text(till.pay(state)) for state in states] == [("Paid 500 cents to the bakery.", False)] * 5
        other = till.call("pay", {"cents": 9, "to": "me"}, requestState=till.state(), inputResponses=ACCEPTED)
        assert text(other) == ("Paid 9 cents to me.", False)


def test_tampered_pays_for_an_unaltered_retry_once() -> None:
    with broken("tampered") as till:
        state = till.state()
        assert till.pay(state) == till.pay(state)
        assert till.balance() == (1, 500)


def test_twice_pays_again_for_the_same_retry() -> None:
    with broken("twice") as till:
        state = till.state()
        assert till.pay(state) == till.pay(state)
        assert till.balance() == (2, 1000)


def test_undeclared_asks_a_client_that_cannot_be_asked() -> None:
    with broken("undeclared") as till:
        assert list(till.call("pay", ARGUMENTS, {})["inputRequests"]) == ["confirm"]


def test_endless_asks_something_new_in_every_round() -> None:
    with broken("endless") as till:
        asking = till.call("pay", ARGUMENTS)
        messages: list[str] = []
        for _ in range(12):
            messages.append(asking["inputRequests"]["confirm"]["params"]["message"])
            asking = till.pay(asking["requestState"])
        assert messages[:2] == ["Pay 500 cents to the bakery?", "Pay 500 cents to the bakery? (question 2)"]
        assert len(set(messages)) == 12
        assert till.balance() == (0, 0)


def test_listing_asks_in_the_list_dialect_and_is_answered_in_it() -> None:
    with broken("listing") as till:
        asking = till.call("pay", ARGUMENTS)
        state = asking.pop("requestState")
        field = {"id": "confirm", "kind": "boolean", "description": "Pay 500 cents to the bakery?", "required": True}
        assert asking == {"inputRequests": [field]}
        assert till.refusal(retry(state))["code"] == -32602
        assert text(till.pay(state, [{"id": "confirm", "value": True}])) == ("Paid 500 cents to the bakery.", False)


def test_printing_puts_a_line_of_its_own_before_the_answer() -> None:
    with broken("printing") as till:
        till.send("tools/call", retry(till.state()))
        assert till.line().strip() == b"opening the drawer"
        assert text(json.loads(till.line())["result"]) == ("Paid 500 cents to the bakery.", False)


def test_hanging_answers_everything_but_the_retry_of_a_payment() -> None:
    with broken("hanging") as till:
        till.send("tools/call", retry(till.state()))
        assert till.balance() == (0, 0)  # the next line that comes


@pytest.mark.parametrize("name", ["twice", "undeclared", "endless", "listing", "printing"])
def test_every_other_till_refuses_an_altered_state(name: str) -> None:
    with broken(name) as till:
        assert till.refusal(retry(altered(till.state())["flipped"]))["code"] == -32602


@pytest.mark.parametrize("name", [name for name in BROKEN if name != "undeclared"])
def test_every_other_till_asks_only_who_can_be_asked(name: str) -> None:
    with broken(name) as till:
        assert till.refusal({"name": "pay", "arguments": ARGUMENTS}, {})["code"] == -32021


WIRE = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    id_, method = message.get("id"), message["method"]
    if method == "server/discover":
        result = {{"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
        result |= {{"supportedVersions": ["2026-07-28"], "capabilities": {{}}}}
    else:
        result = {{"resultType": "complete", "content": [{{"type": "text", "text": "ok"}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": id_, "result": result}}), flush=True)
    if method == "tools/call":
        {then}
"""


def suite(folder: Path, then: str, *names: str) -> Path:
    (folder / "server.py").write_text(WIRE.format(then=then))
    tests = "".join(f"  - {{name: {name}, tool: t}}\n" for name in names)
    path = folder / "a.bespeak.yaml"
    path.write_text(f"version: 1\nservers: {{s: {{command: [python, server.py], timeout: 20}}}}\ntests:\n{tests}")
    return path


async def test_a_line_printed_right_after_the_answer_is_found_in_the_test_it_belongs_to(tmp_path: Path) -> None:
    results = await run(suite(tmp_path, "print('done', flush=True)", "first", "second"))
    assert rules(results[:1]) == rules(results[1:]) == ["stdout"]


async def test_a_server_that_dies_after_its_answer_fails_the_next_test_and_is_reached_anew_for_the_one_after(
    tmp_path: Path,
) -> None:
    path = suite(tmp_path, "os._exit(3) if not os.path.exists('died') else None", "first", "second", "third")
    text = (tmp_path / "server.py").read_text().replace("os._exit(3)", "(open('died', 'w').close(), os._exit(3))")
    (tmp_path / "server.py").write_text(text)
    first, second, third = await run(path)
    assert first.passed
    assert third.passed
    assert "exited with code 3" in messages([second])[0]
