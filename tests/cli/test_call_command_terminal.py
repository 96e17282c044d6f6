"""`bespeak call` at a terminal: asked on standard error, answered by a person, interrupted. Testing.md section 4."""

import asyncio
import json
import termios
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from bespeak.server.targets import load
from tests.cli.desks import QUESTION, WORD, Raw, accepted, asking, bespeak, form, page, served, text, write_raw
from tests.cli.terminals import at_terminal, in_a_process, is_gone
from tests.curious_server import CITY, as_target, curious
from tests.waiting import eventually
from tests.wires import Listening

pytestmark = pytest.mark.timing

EVIL = "EVIL\n> EVIL\r\x1b[2J\x1b]0;EVIL\x07\x9b2J\x85EVIL\u2028\u202eEVIL\u2066"
CHOICE = "a = accept, d = decline, c = cancel: "


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("terminal") / "terminal_desk.py") as target:
        yield target


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return write_raw(tmp_path)


def harmless(screen: str) -> bool:
    return all(char == "\n" or char.isprintable() for char in screen)


# Asked and answered


def test_the_questions_are_on_standard_error_and_only_the_result_on_standard_output(desk: str) -> None:
    ended = at_terminal("call", desk, "trip", typed="a\nRome\ny\nyes\n")
    assert (ended.code, ended.out) == (0, "Rome True today\n")
    assert ended.screen.index("| Which city?") < ended.screen.index("| Sure about Rome?")
    assert "Rome True today" not in ended.screen


def test_a_value_that_is_typed_at_once_is_sent(desk: str) -> None:
    ended = at_terminal("call", desk, "trip", typed="Rome\ny\ny\n")
    assert (ended.code, ended.out) == (0, "Rome True today\n")


@pytest.mark.parametrize("era", ["legacy", "2025-06-18"])
def test_questions_pushed_in_the_middle_of_a_call_are_asked_the_same(desk: str, era: str) -> None:
    ended = at_terminal("call", desk, "trip", "--era", era, typed="a\nRome\ny\nno\n")
    assert (ended.code, ended.out) == (0, "Rome False today\n")


@pytest.mark.parametrize(("typed", "action"), [("d\n", "decline"), ("cancel\n", "cancel")])
def test_what_is_declined_or_cancelled_is_sent_so_and_no_field_is_asked_for(raw: Raw, typed: str, action: str) -> None:
    two = form("?", x=QUESTION, y=QUESTION)
    ended = at_terminal("call", raw(asking(q=two), "echo"), "t", typed=typed)
    assert json.loads(ended.out)["inputResponses"] == {"q": {"action": action}}
    assert "Field" not in ended.screen


SPEAK: dict[str, Any] = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}}


def test_the_prompt_names_the_server_and_the_tool_and_shows_what_the_round_says(raw: Raw) -> None:
    asks = asking(q=WORD)
    asks["result"]["description"] = "To book the seat"
    target = raw(asks, "echo")
    screen = at_terminal("call", target, "book", typed="d\n").screen
    assert "\nThe server asks:\n   server | '" in screen
    assert "     tool | book\n    about | To book the seat\n  message | ?\n" in screen


def test_a_url_is_named_without_its_secrets(desk: str) -> None:
    async def called() -> str:
        async with Listening(load(desk).streamable_http_app()) as server:
            url = server.url.replace("http://", "http://user:hunter2@")
            return (await asyncio.to_thread(at_terminal, "call", url, "trip", typed="d\n")).screen

    screen = asyncio.run(called())
    assert "   server | http://127.0.0.1:" in screen
    assert "hunter2" not in screen


def test_the_progress_of_a_call_is_shown_with_its_question(tmp_path: Path) -> None:
    command = curious(
        tmp_path, within=[CITY], progress=[{"progress": 1}, {"progress": 2, "total": 5, "message": "Looking"}]
    )
    screen = at_terminal("call", as_target(command), "within", typed="d\n").screen
    assert " progress | 2 of 5: Looking\n" in screen


def test_what_was_typed_can_be_typed_again_before_it_is_sent(raw: Raw) -> None:
    ended = at_terminal("call", raw(asking(q=WORD), "echo"), "t", typed="a\nfirst\nn\na\nsecond\ny\n")
    assert json.loads(ended.out)["inputResponses"] == {"q": accepted(x="second")}
    assert "\nYour answer:\n   answer | x = first\nSend it? y = yes, n = no, answer again: " in ended.screen


def test_with_yes_it_is_sent_as_it_was_typed(raw: Raw) -> None:
    ended = at_terminal("call", raw(asking(q=WORD), "echo"), "t", "--yes", typed="a\nfirst\n")
    assert json.loads(ended.out)["inputResponses"] == {"q": accepted(x="first")}
    assert "Your answer" not in ended.screen


@pytest.mark.parametrize("question", [SPEAK, {"method": "roots/list"}])
def test_who_declines_sampling_or_roots_ends_a_call_that_has_rounds(raw: Raw, question: Any) -> None:
    ended = at_terminal("call", raw(asking(q=question), "echo"), "t", typed="d\n")
    assert (ended.code, ended.out) == (1, "")
    assert ended.screen.endswith("bespeak: you declined, so the call was not continued: nothing more was sent\n")


def test_who_declines_sampling_in_an_older_call_sends_an_error_and_the_call_goes_on(tmp_path: Path) -> None:
    ended = at_terminal("call", as_target(curious(tmp_path, within=[SPEAK])), "within", typed="d\n")
    sent = {"error": {"code": -1, "message": "the user declined this request"}}
    assert (ended.code, json.loads(ended.out)) == (0, sent)


def test_the_end_of_the_input_is_not_an_answer(raw: Raw) -> None:
    ended = at_terminal("call", raw(asking(q=WORD), "echo"), "t", typed="\x04")
    assert (ended.code, ended.out) == (1, "")
    assert ended.screen.endswith("bespeak: 'q' was not answered: the input has ended\n")


def test_an_answer_given_beforehand_is_used_before_anybody_is_asked(desk: str) -> None:
    ended = at_terminal("call", desk, "forecast", "--answer", "city=Rome", typed="a\n1\ny\n")
    assert (ended.code, ended.out) == (0, "Rome in C today\n")
    assert "Which city?" not in ended.screen


def test_a_field_of_the_compatibility_dialect_takes_one_value(raw: Raw) -> None:
    fields = [
        {"id": "a", "kind": "integer", "description": "How many?"},
        {"id": "b", "kind": "string", "required": False},
    ]
    target = raw({"result": {"inputRequests": fields, "requestState": "s"}}, "echo")
    ended = at_terminal("call", target, "t", typed="3\ny\n\n")
    assert json.loads(ended.out)["inputResponses"] == [{"id": "a", "value": 3}]


def test_a_call_that_waits_is_resumed_at_a_terminal(desk: str, tmp_path: Path) -> None:
    pending = tmp_path / "pending.json"
    pending.write_text(bespeak("call", desk, "trip", "--answer", "city=Rome").stdout)
    ended = at_terminal("call", desk, "--resume", str(pending), typed="y\n")
    assert (ended.code, ended.out) == (0, "Rome True today\n")
    assert "Which city?" not in ended.screen


@pytest.mark.long
def test_a_persons_time_does_not_count(desk: str) -> None:
    slow = at_terminal(
        "call", desk, "forecast", "--era", "legacy", "--timeout", "0.5", typed="a\nRome\ny\na\n1\ny\n", after=0.7
    )
    assert (slow.code, slow.out) == (0, "Rome in C today\n")


def test_what_was_typed_becomes_a_test(raw: Raw, tmp_path: Path) -> None:
    saved, report = tmp_path / "answers.yaml", tmp_path / "report.json"
    questions = asking(city=form("Which?", x=QUESTION), no=WORD, page=page("https://a.example/"))
    models = asking(model={"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}})
    script = (questions, models, text("done"))
    typed = "a\nTrue ${x} \u00fc\ny\nd\na\na\nParis, I think\ny\n"
    ended = at_terminal("call", raw(*script), "t", "--save-answers", str(saved), typed=typed)
    assert (ended.code, ended.out) == (0, "done\n")
    block = "".join(f"    {line}\n" for line in saved.read_text().splitlines())
    command = json.dumps(raw(*script).split())
    suite = f"version: 1\nservers: {{raw: {{command: {command}}}}}\ntests:\n  - name: typed\n    tool: t\n{block}"
    (tmp_path / "typed.bespeak.yaml").write_text(suite)
    result = bespeak("test", str(tmp_path), "--report", f"json={report}")
    assert result.exit_code == 0, result.output
    first, second = (one["answered"] for one in json.loads(report.read_text())["results"][0]["rounds"])
    assert first["city"]["content"] == {"x": "True ${x} \u00fc"}
    assert (first["no"], first["page"]) == ({"action": "decline"}, {"action": "accept"})
    assert second["model"]["content"] == {"type": "text", "text": "Paris, I think"}


@pytest.mark.parametrize("lacking", ["stdin", "stderr"])
def test_who_cannot_type_or_cannot_see_is_not_asked(desk: str, lacking: str) -> None:
    ended = at_terminal("call", desk, "trip", typed="d\n", lacking=lacking)
    assert (ended.code, list(json.loads(ended.out)["waiting"]), ended.screen) == (6, ["city"], "")


# What a server says


SPOKEN = {"role": "user", "content": {"type": "text", "text": EVIL}}
MODEL = {"method": "sampling/createMessage", "params": {"systemPrompt": EVIL, "messages": [SPOKEN], "maxTokens": 9}}


ERRORS: dict[str, Any] = {
    "error": ({"error": {"code": 1, "message": EVIL}}, ()),
    "type": ({"result": {"resultType": EVIL}}, ()),
    "cap": (asking(**{EVIL: form(EVIL, x=QUESTION)}), ("--max-rounds", "0")),
    "fields": (asking(q=form("?", **{EVIL: QUESTION, "y": QUESTION})), ("--answer", "q=x")),
    "json": (text(EVIL), ("--json",)),
    "json error": ({"error": {"code": 1, "message": EVIL}}, ("--json",)),
    "structured": ({"result": {"resultType": "complete", "content": [], "structuredContent": {EVIL: EVIL}}}, ()),
    "result": (text(EVIL), ()),
    "failed": (text(EVIL, isError=True), ()),
}


@pytest.mark.parametrize(("response", "more"), ERRORS.values(), ids=ERRORS)
def test_nothing_that_a_terminal_obeys_gets_to_it(raw: Raw, response: Any, more: tuple[str, ...]) -> None:
    ended = at_terminal("call", raw(response), "t", *more, output=True)
    assert "EVIL" in ended.screen
    assert harmless(ended.screen)


def test_what_a_server_printed_before_it_died_cannot_steer_the_terminal(tmp_path: Path) -> None:
    program = tmp_path / "dying.sh"
    program.write_text("printf 'EVIL\\033[2J\\033]0;x\\007' >&2\nexit 1\n")
    ended = at_terminal("call", f"sh {program}", "t")
    assert (ended.code, "EVIL" in ended.screen, harmless(ended.screen)) == (3, True, True)


FAKES = {
    "line break": "no\nbespeak: FAKE",
    "carriage return": "no\rbespeak: FAKE",
    "next line": "no\x85bespeak: FAKE\u2028bespeak: FAKE",
    "padding": f"no{' ' * 69}bespeak: FAKE",
    "many widths": "no" + "".join(f"{' ' * width}bespeak: FAKE" for width in range(40, 90)),
    "cursor": "no\x1b[1000D\x1b[Bbespeak: FAKE",
    "prompt": "no\n\nThe server asks:\n  message | FAKE\na = accept, d = decline, c = cancel: ",
}


def fake_lines(screen: str) -> list[str]:
    """The lines of a screen that start like ours, as a terminal of eighty columns breaks them, and are not."""
    lines = [line[at : at + 80] for line in screen.split("\n") for at in range(0, max(len(line), 1), 80)]
    return [line for line in lines if line.startswith("bespeak: FAKE")]


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "error": lambda fake: {"error": {"code": 1, "message": fake}},
    "type": lambda fake: {"result": {"resultType": fake}},
    "key": lambda fake: asking(**{fake: form("?", x=QUESTION)}),
    "message": lambda fake: asking(q=form(fake, x=QUESTION)),
    "field": lambda fake: asking(q=form("?", **{fake: {"type": "integer"}})),
    "title": lambda fake: asking(q=form("?", x={"type": "integer", "title": fake, "description": fake})),
    "result": text,
    "failure": lambda fake: text(fake, isError=True),
    "structured": lambda fake: {"result": {"resultType": "complete", "content": [], "structuredContent": {fake: fake}}},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fake", ["many widths", "line break"])
def test_a_servers_words_never_start_a_line_like_ours(raw: Raw, place: str, fake: str) -> None:
    ended = at_terminal("call", raw(PLACES[place](FAKES[fake])), "t", typed="a\nx\ny\nz\n", output=True)
    assert "FAKE" in ended.screen
    assert fake_lines(ended.screen) == []
    assert harmless(ended.screen)


@pytest.mark.parametrize("fake", FAKES.values(), ids=FAKES)
@pytest.mark.parametrize("output", [True, False], ids=["terminal", "pipe"])
def test_a_servers_error_is_one_complaint_whatever_it_says(raw: Raw, fake: str, output: bool) -> None:
    ended = at_terminal("call", raw({"error": {"code": 1, "message": fake}}), "t", output=output)
    first, *others = ended.screen.removesuffix("\n").split("\n")
    assert first.startswith("bespeak: no")
    assert all(line.startswith(" " * 9) for line in others)
    assert fake_lines(ended.screen) == []


def test_a_result_that_is_not_shown_at_a_terminal_is_left_as_it_is(raw: Raw) -> None:
    assert bespeak("call", raw(text("bespeak: FAKE")), "t").stdout == "bespeak: FAKE\n"
    structured: dict[str, Any] = {
        "result": {"resultType": "complete", "content": [], "structuredContent": {"a": "bespeak: x"}}
    }
    shown = at_terminal("call", raw(structured), "t", output=True).screen
    assert json.loads(shown) == {"a": "bespeak: x"}


def test_in_a_pipe_control_characters_beyond_ascii_are_escaped_and_json_means_the_same(raw: Raw) -> None:
    said = "\x1b[1mA\x1b[0m\t\x9b2J \u202egnirts\u2069 \u2028bespeak: no \u00fc"
    shown = "\x1b[1mA\x1b[0m\t\\u009b2J \\u202egnirts\\u2069 \\u2028bespeak: no \u00fc\n"
    assert bespeak("call", raw(text(said)), "t").stdout == shown
    whole = bespeak("call", raw(text(said)), "t", "--json").stdout
    assert json.loads(whole)["content"][0]["text"] == said
    assert "\\u202egnirts" in whole
    assert "\x9b" not in whole


# Interrupted


@pytest.mark.long
async def test_an_interrupt_at_a_question_is_not_a_decline_and_leaves_no_child_behind(raw: Raw, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    with in_a_process("call", raw(asking(q=WORD), "echo", pid=str(pid)), "t") as terminal:
        before = termios.tcgetattr(terminal.fd)
        terminal.wait_for(CHOICE)
        terminal.type("a\n")
        terminal.wait_for("> ")
        terminal.type("half a li\x03")
        assert terminal.ended() == (130, "")
        assert "Traceback" not in terminal.seen
        assert termios.tcgetattr(terminal.fd) == before
    await eventually(lambda: is_gone(pid))


@pytest.mark.parametrize("presses", [1, 2])
@pytest.mark.long
async def test_an_interrupt_ends_a_call_whose_server_hangs_and_the_server_with_it(
    raw: Raw, tmp_path: Path, presses: int
) -> None:
    pid, ready = tmp_path / "pid", tmp_path / "ready"
    stubborn = f"sh -c 'trap \"\" INT HUP; touch {ready}; exec {raw(asking(q=WORD), 'hang', pid=str(pid))}'"
    with in_a_process("call", stubborn, "t", "--answer", "q=x") as terminal:
        await eventually(lambda: pid.exists() and pid.read_text().strip(), 20)
        terminal.type("\x03" * presses)
        assert terminal.ended() == (130, "")
        assert "Traceback" not in terminal.seen
    await eventually(lambda: is_gone(pid))
