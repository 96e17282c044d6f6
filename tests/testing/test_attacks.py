"""What a client may do to a server: altered states, lost responses, capabilities that were never declared.

testing.md section 2 (hostile tests; one that never reached its round fails) and protocol 6.3, S6 and S8 to S11.
"""

import base64
import json
from typing import Any, Literal

import pytest

from bespeak.conversation.call_rounds import Round
from bespeak.testing.attacks import Attack, NotReached, altered, judge_tampered
from bespeak.testing.suite.suite_file import Fault, Tamper
from tests.testing.canned import (
    Canned,
    Hold,
    Json,
    Pushing,
    asking,
    error,
    form,
    listing,
    messages,
    round_of,
    rules,
    told,
)
from tests.testing.canned import hold as hold

How = Literal["flip", "drop", "empty", "truncate", "other-arguments"]
STATE = "eyJhIjogMX0.c2lnbmF0dXJl"
CALL: Json = {"name": "pay", "arguments": {"cents": 5}, "requestState": STATE, "inputResponses": {"ok": 1}}
OTHER: Json = {"cents": 50_000}


def tamper(how: How, round_: int = 1) -> Tamper:
    return Tamper(round=round_, requestState=how, **({"arguments": OTHER} if how == "other-arguments" else {}))


# One request, altered


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        ("flip", {**CALL, "requestState": "eyJhIjogMX0.A2lnbmF0dXJl"}),
        ("truncate", {**CALL, "requestState": "eyJhIjogMX0."}),
        ("empty", {**CALL, "requestState": ""}),
        ("drop", {"name": "pay", "arguments": {"cents": 5}, "inputResponses": {"ok": 1}}),
        ("other-arguments", {**CALL, "arguments": OTHER}),
    ],
)
def test_each_way_to_tamper_changes_one_thing(how: How, sent: Json) -> None:
    before = dict(CALL)
    assert Attack(tamper(how)).alter(1, CALL) == sent
    assert before == CALL  # what was not yet sent is not touched


def test_only_the_request_of_its_round_is_altered() -> None:
    attack = Attack(tamper("empty", 2))
    assert attack.alter(0, CALL) is CALL
    assert attack.alter(1, CALL) is CALL
    assert attack.alter(2, CALL) != CALL
    assert [attack.is_tampered(number) for number in range(4)] == [False, False, True, False]


def test_a_round_without_a_state_cannot_be_tampered_with() -> None:
    bare = {name: value for name, value in CALL.items() if name != "requestState"}
    with pytest.raises(NotReached, match="round 1 returned no requestState, so there is nothing to alter"):
        Attack(tamper("flip")).alter(1, bare)


@pytest.mark.parametrize("how", ["empty", "truncate"])
def test_an_empty_state_cannot_be_made_emptier(how: How) -> None:
    with pytest.raises(NotReached, match="the attack was not made"):
        Attack(tamper(how)).alter(1, {**CALL, "requestState": ""})


def test_tampering_with_arguments_needs_other_arguments_than_the_call_s() -> None:
    with pytest.raises(NotReached, match="the attack was not made"):
        Attack(tamper("other-arguments")).alter(1, {**CALL, "arguments": OTHER})


def test_only_the_request_of_its_round_loses_its_response() -> None:
    attack = Attack(fault=Fault(round=1, drop="response"), retry=3)
    assert [attack.loses(number) for number in (0, 1, 2)] == [0, 3, 0]


@pytest.mark.parametrize("attack", [Attack(tamper("flip", 3)), Attack(fault=Fault(round=3, drop="response"), retry=1)])
def test_an_attack_that_was_never_made_is_not_reached(attack: Attack) -> None:
    attack.alter(1, CALL)
    attack.loses(1)
    with pytest.raises(NotReached, match="the server never reached round 3, so the attack was not made"):
        attack.check_reached()


# What it comes to


ASKED = [Round({"ok": "Ok?"}, {"ok": {"action": "accept"}}, state=True)]

WHAT: dict[How, str] = {
    "flip": "a requestState with one character altered",
    "truncate": "a requestState cut in half",
    "empty": "an empty requestState",
    "drop": "answers without the requestState they belong to",
    "other-arguments": "a requestState that was issued for other arguments",
}


@pytest.mark.parametrize("how", list(WHAT))
def test_a_server_that_takes_an_altered_state_breaks_a_rule(how: How) -> None:
    (failure,) = judge_tampered(tamper(how), {"result": told("Paid.")}, ASKED)
    assert failure.message == f"the server accepted {WHAT[how]}; it must answer with an error"
    assert str(failure).endswith(
        "(state-verified: a server must reject a requestState that was altered, or that belongs to another request)"
    )


@pytest.mark.parametrize("how", list(WHAT))
def test_a_server_that_answers_with_an_error_is_right(how: How) -> None:
    assert judge_tampered(tamper(how), error("invalid state"), ASKED) == []


@pytest.mark.parametrize("asked", [asking("ok"), listing("ok")])
def test_to_ask_again_is_right_only_when_the_state_was_left_out(asked: Json) -> None:
    assert judge_tampered(tamper("drop"), {"result": asked}, ASKED) == []
    (failure,) = judge_tampered(tamper("flip"), {"result": asked}, ASKED)
    assert failure.message.startswith(
        "the server asked again after receiving a requestState with one character altered;"
    )


@pytest.mark.parametrize("envelope", [None, [], {}, {"result": told("no", isError=True)}])
def test_whatever_is_no_error_is_not_taken_for_one(envelope: Any) -> None:
    assert len(judge_tampered(tamper("flip"), envelope, ASKED)) == 1


@pytest.mark.parametrize("asked", [asking("more"), listing("more")])
def test_asking_the_next_question_means_that_the_answer_was_accepted_without_its_state(asked: Json) -> None:
    (failure,) = judge_tampered(tamper("drop"), {"result": asked}, ASKED)
    assert failure.message.startswith("the server accepted answers without the requestState they belong to;")


# In a suite


PAY = "  - {{name: a, tool: pay, arguments: {{cents: 5}}, inputResponses: {{ok: x}}, {more}}}\n"
REFUSED = error("invalid or expired requestState")


def pay(more: str) -> str:
    return PAY.format(more=more)


def asked_of(*keys: str) -> Round:
    return Round(dict.fromkeys(keys, "Sure?"), {}, state=True)


@pytest.mark.parametrize(
    ("rounds", "asked"),
    [
        ([asked_of("pay~1a2b3c4d")], ["pay~1a2b3c4d"]),
        ([asked_of("pay~1a2b3c4d")], ["pay~5e6f7a8b"]),  # a price that has moved
        ([asked_of("x~1a2b3c4d", "y~1a2b3c4d"), asked_of("z~1a2b3c4d")], ["y~5e6f7a8b", "x~1a2b3c4d"]),
        ([asked_of("x~1a2b3c4d"), asked_of("z~1a2b3c4d")], ["z~5e6f7a8b"]),
        ([asked_of("x~1a2b3c4d", "x~5e6f7a8b")], ["x~1a2b3c4d", "x~00000000"]),
    ],
)
def test_who_asks_the_same_names_again_has_taken_nothing_for_granted(rounds: list[Round], asked: list[str]) -> None:
    assert judge_tampered(tamper("drop"), {"result": asking(*asked)}, rounds) == []


@pytest.mark.parametrize(
    ("rounds", "asked"),
    [
        ([asked_of("x~1a2b3c4d", "x~5e6f7a8b")], ["x~5e6f7a8b"]),
        ([asked_of("x~1a2b3c4d", "y~1a2b3c4d")], ["y~1a2b3c4d"]),
        ([asked_of("x~1a2b3c4d")], ["y~1a2b3c4d"]),
    ],
)
def test_who_asks_only_some_of_the_names_again_has_taken_answers_without_their_state(
    rounds: list[Round], asked: list[str]
) -> None:
    (failure,) = judge_tampered(tamper("drop"), {"result": asking(*asked)}, rounds)
    assert failure.rule == "state-verified"


@pytest.mark.parametrize("how", ["flip", "truncate", "empty", "drop", "other-arguments, arguments: {cents: 6}"])
async def test_a_refused_state_passes_without_further_expectations(hold: Hold, how: str) -> None:
    server = Canned(asking("ok"), REFUSED)
    (result,) = await hold(server, pay(f"tamper: {{round: 1, requestState: {how}}}"))
    assert result.passed
    assert len(server.sent) == 2
    assert len(result.rounds) == 1


async def test_an_accepted_state_fails_whatever_else_is_expected(hold: Hold) -> None:
    tests = pay("tamper: {round: 1, requestState: flip}, expect: {text: Paid.}")
    results = await hold(Canned(asking("ok"), told("Paid.")), tests)
    assert rules(results) == ["state-verified"]


async def test_a_refusal_can_be_expected_in_full(hold: Hold) -> None:
    expect = "expect: {error: {code: -32602, message: nope}}"
    results = await hold(Canned(asking("ok"), REFUSED), pay(f"tamper: {{round: 1, requestState: flip}}, {expect}"))
    assert messages(results) == ['error.message: expected "nope", got "invalid or expired requestState"']


async def test_the_state_of_a_later_round_can_be_altered(hold: Hold) -> None:
    server = Canned(asking("ok", state="one"), asking("ok", state="two"), REFUSED)
    (result,) = await hold(server, pay("tamper: {round: 2, requestState: empty}"))
    assert result.passed
    assert [params.get("requestState") for params in server.params] == [None, "one", ""]


@pytest.mark.parametrize("more", ["maxRounds: 1, ", ""])
async def test_a_server_that_begins_again_without_a_state_is_right_at_any_cap(hold: Hold, more: str) -> None:
    (result,) = await hold(Canned(asking("ok")), pay(f"{more}tamper: {{round: 1, requestState: drop}}"))
    assert result.failures == []


async def test_who_begins_again_without_a_state_has_not_asked_again_after_a_decline(hold: Hold) -> None:
    tests = "  - {name: a, tool: pay, inputResponses: {ok: decline}, tamper: {round: 1, requestState: drop}}"
    (result,) = await hold(Canned(asking("ok")), tests)
    assert result.failures == []


@pytest.mark.parametrize(
    ("replies", "attack", "message"),
    [
        (
            [told()],
            "tamper: {round: 1, requestState: flip}",
            "the server never reached round 1, so the attack was not made",
        ),
        ([asking("ok"), told()], "tamper: {round: 2, requestState: flip}", "the server never reached round 2"),
        ([asking("ok", state=None), told()], "tamper: {round: 1, requestState: flip}", "returned no requestState"),
        ([asking("ok", state=""), told()], "tamper: {round: 1, requestState: empty}", "the attack was not made"),
        ([asking("ok"), told()], "fault: {round: 2, drop: response}, retry: 1", "the server never reached round 2"),
    ],
)
async def test_a_hostile_test_that_never_reached_its_round_fails(
    hold: Hold, replies: list[Json], attack: str, message: str
) -> None:
    results = await hold(Canned(*replies), pay(attack))
    assert message in messages(results)[0]
    assert messages(results)[0].startswith("not reached: ")


async def test_what_kept_a_round_from_coming_is_reported(hold: Hold) -> None:
    results = await hold(Canned(error("there is no such tool")), pay("tamper: {round: 1, requestState: flip}"))
    assert "there is no such tool" in "\n".join(messages(results))


@pytest.mark.parametrize(
    "attack", ["tamper: {round: 1, requestState: flip}", "fault: {round: 1, drop: response}, retry: 1"]
)
async def test_at_an_older_revision_there_is_nothing_to_reach(hold: Hold, attack: str) -> None:
    results = await hold(Pushing(form()), pay(attack))
    assert messages(results) == ["not reached: revision 2025-11-25 has no rounds to tamper with"]


# A lost response


LOST = "fault: {round: 1, drop: response}, retry: 2, verify: [{tool: balance, expect: {structuredContent: {paid: 1}}}]"


async def test_a_lost_response_is_followed_by_the_same_request_with_another_id(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."), told("Paid."), told("Paid."), told(structuredContent={"paid": 1}))
    (result,) = await hold(server, pay(LOST))
    assert result.passed
    assert server.params[1] == server.params[2] == server.params[3]
    assert len({sent["id"] for sent in server.sent}) == 5
    assert server.params[4] == {"name": "balance", "arguments": {}}


async def test_what_was_done_twice_breaks_a_rule(hold: Hold) -> None:
    paid = told("Paid.")
    server = Canned(asking("ok"), paid, paid, paid, told(structuredContent={"paid": 3}))
    ((failure,),) = [result.failures for result in await hold(server, pay(LOST))]
    assert failure.rule == "single-use"
    assert failure.message.startswith(
        "after a response was lost and the request was sent again: structuredContent.paid"
    )
    assert (failure.expected, failure.actual) == (1, 3)


async def test_what_comes_for_the_last_of_the_requests_is_judged(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."), error("already settled"))
    results = await hold(server, pay("fault: {round: 1, drop: response}, retry: 1, expect: {text: Paid.}"))
    assert messages(results) == ["the call ended with an error: already settled (-32602)"]


async def test_the_call_itself_can_be_lost(hold: Hold) -> None:
    server = Canned(asking("ok", state="one"), asking("ok", state="two"), told())
    (result,) = await hold(server, pay("fault: {round: 0, drop: response}, retry: 1"))
    assert result.passed
    assert server.params[0] == server.params[1]
    assert server.params[2]["requestState"] == "two"
    assert len(result.rounds) == 1


# What was not declared


async def test_what_is_declared_goes_with_every_request_of_its_test(hold: Hold) -> None:
    server = Canned(asking("ok"), told())
    await hold(server, pay("declare: {elicitation: {form: {}}}"))
    declared = [sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] for sent in server.sent]
    assert declared == [{"elicitation": {"form": {}}}] * 2


@pytest.mark.parametrize(
    ("declare", "question", "needed"),
    [
        ("{}", form(), "elicitation.form"),
        ("{elicitation: {url: {}}}", form(), "elicitation.form"),
        ("{elicitation: {form: {}}}", {"method": "roots/list"}, "roots"),
        (
            "{elicitation: {}}",
            {"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": "https://x.example"}},
            "elicitation.url",
        ),
    ],
)
async def test_who_asks_what_was_not_declared_is_found_and_not_answered(
    hold: Hold, declare: str, question: Json, needed: str
) -> None:
    server = Canned(asking(ok=question), told())
    results = await hold(server, f"  - {{name: a, tool: pay, declare: {declare}, inputResponses: {{ok: x}}}}")
    assert rules(results) == ["undeclared"]
    assert messages(results) == [f"'ok' asks for {needed}, which the client did not declare"]
    assert len(server.sent) == 1


async def test_who_pushes_what_was_not_declared_is_found_and_not_answered(hold: Hold) -> None:
    server = Pushing(form())
    results = await hold(server, "  - {name: a, tool: pay, declare: {}, inputResponses: {value: x}}")
    assert rules(results) == ["undeclared"]
    assert "error" in server.answered[0]


# What a server must not do, whoever asks it


RAW = b'{"jsonrpc": "2.0", "id": 2, "result": {"resultType": "complete", "content": [], "content": []}}'
FIELD: Json = {"id": "ok", "kind": "string", "description": "?"}
BROKEN: dict[str, tuple[Json | bytes, str]] = {
    "a key that cannot be shown": (round_of({"a\x1b[2J": form()}), "key"),
    "an empty key": (round_of({"": form()}), "key"),
    "one id twice": ({"inputRequests": [FIELD, FIELD], "requestState": "s"}, "duplicate-key"),
    "one member twice": (RAW, "duplicate-key"),
    "complete, and asks": (told(inputRequests={"ok": form()}), "complete-asks"),
    "neither questions nor a state": ({"resultType": "input_required"}, "empty"),
    "a resultType of null": ({"resultType": None}, "result-type"),
    "another resultType": ({"resultType": "task"}, "result-type"),
    "a state that is no text": ({**asking("ok", state=None), "requestState": 5}, "shape"),
    "a state of null": ({**asking("ok", state=None), "requestState": None}, "shape"),
    "an array that says input_required": ({"resultType": "input_required", "inputRequests": [FIELD]}, "shape"),
    "an array without a state": ({"inputRequests": [FIELD]}, "shape"),
    "an array with an empty state": ({"inputRequests": [FIELD], "requestState": ""}, "shape"),
    "an empty array with a state": ({"inputRequests": [], "requestState": "s"}, "shape"),
    "an entry that is no object": (round_of({"ok": "?"}), "question"),
    "an entry of null": (round_of({"ok": None}), "question"),
    "an entry without a method": (round_of({"ok": {"params": {}}}), "question"),
    "an entry of another method": (round_of({"ok": {"method": "tools/call"}}), "question"),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_each_rule_that_a_server_breaks_is_named(hold: Hold, what: str) -> None:
    reply, rule = BROKEN[what]
    results = await hold(Canned(reply, told()), "  - {name: a, tool: x, wire: any, inputResponses: [{otherwise: y}]}")
    assert rules(results) == [rule]
    assert messages(results)[0].isprintable()


async def test_a_question_that_comes_again_after_a_decline_is_found(hold: Hold) -> None:
    results = await hold(
        Canned(asking("ok"), asking("ok"), told()), "  - {name: a, tool: x, inputResponses: {ok: decline}}"
    )
    assert rules(results) == ["declined"]
    assert messages(results) == ["'ok' was declined, but the server asked it again"]


async def test_all_that_is_wrong_is_reported_each_once(hold: Hold) -> None:
    odd = listing("a\x07", "b\x07")
    results = await hold(Canned(odd, odd, told()), "  - {name: a, tool: x, inputResponses: [{otherwise: y}]}")
    assert rules(results) == ["dialect", "key", "key"]


STATES = [{"step": 1, "approved": False}, {"to": "Ada"}, [1], {"inner": {"n": 1.5}}, {"a": None, "b": "x"}]


@pytest.mark.parametrize("value", STATES)
@pytest.mark.parametrize("coding", ["json", "base64"])
def test_a_state_that_anybody_could_write_is_altered_so_that_it_can_still_be_read(value: Any, coding: str) -> None:
    plain = json.dumps(value)
    state = plain if coding == "json" else base64.urlsafe_b64encode(plain.encode()).decode().rstrip("=")
    other = altered(state, "flip")
    read = json.loads(other if coding == "json" else base64.urlsafe_b64decode(other + "=" * (-len(other) % 4)))
    assert read != value
    assert type(read) is type(value)


@pytest.mark.parametrize("state", ["v1.k.sealed", "null", "{}", "[]", '""', "[null]", "x"])
def test_any_other_state_has_one_character_altered(state: str) -> None:
    other = altered(state, "flip")
    assert len(other) == len(state)
    assert sum(one != two for one, two in zip(state, other, strict=True)) == 1
