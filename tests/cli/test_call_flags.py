"""The options of `bespeak call` for headers and roots, and what it says of questions outside the call."""

import asyncio
import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from bespeak.cli.call_flags import ROUNDS, BadFlags, Flags, as_words, read_connection_answers, read_headers
from bespeak.cli.commands import app
from bespeak.conversation.connection_settings import TIMEOUT_SECONDS
from tests.cli.conftest import Write
from tests.cli.desks import Raw, asking, bespeak, told, write_raw
from tests.cli.desks import form as asks
from tests.curious_server import CITY, NOTHING, ROOTS, SAMPLE, as_target, curious
from tests.transports.http.scripted_server import says
from tests.wires import Listening

pytestmark = pytest.mark.timing
OTHERS = "--answer is only for the questions of the call; for others, write a suite whose server has answers"


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    return write_raw(tmp_path)


def flags(*, headers: Any = (), roots: Any = (), words: Any = ("server.py", "t")) -> Flags:
    return Flags(words, None, [], None, None, None, None, 30.0, False, headers, roots)


# Headers


def test_a_header_is_a_name_and_a_value() -> None:
    given = ["Authorization: Bearer a:b ", "X-One:1", "X-Empty:"]
    assert read_headers(given) == {"Authorization": "Bearer a:b", "X-One": "1", "X-Empty": ""}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["X:1", "hunter2"], "--header must be NAME:VALUE; number 2 is not"),
        ([": hunter2"], "--header must be NAME:VALUE; number 1 is not"),
        (["a name: hunter2"], "--header must be NAME:VALUE; number 1 is not"),
        (["X: hunter2", "x: hunter2"], "--header x is given twice"),
    ],
)
def test_an_invalid_header_is_an_error_that_does_not_show_its_value(given: list[str], message: str) -> None:
    with pytest.raises(BadFlags) as caught:
        read_headers(given)
    assert str(caught.value) == message


def test_a_header_is_for_a_url() -> None:
    said = told(bespeak("call", "node server.js", "t", "--header", "X: hunter2"), 2)
    assert said == "bespeak: --header is for a server with a URL\n"


def test_the_command_line_is_repeated_without_the_values_of_headers() -> None:
    given = flags(headers=["Authorization: Bearer hunter2"], roots=["a b"])
    assert as_words(given) == ["server.py", "t", "--root=a b", "--header=Authorization:..."]


def test_the_command_line_is_repeated_without_the_options_that_have_their_default_values() -> None:
    assert as_words(flags()) == ["server.py", "t"]
    assert as_words(replace(flags(), seconds=TIMEOUT_SECONDS, rounds=ROUNDS)) == ["server.py", "t"]
    command: Any = get_command(app)
    (timeout,) = [one for one in command.commands["call"].params if one.name == "seconds"]
    assert timeout.default == TIMEOUT_SECONDS
    assert as_words(replace(flags(), seconds=5.0, rounds=3)) == ["server.py", "t", "--max-rounds=3", "--timeout=5"]


async def test_a_401_says_where_to_put_credentials_and_a_header_is_sent() -> None:
    seen: list[str] = []
    refuses = says(401, b"no")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.extend(value.decode() for name, value in scope["headers"] if name == b"authorization")
        await refuses(scope, receive, send)

    async with Listening(app) as server:
        words = ("call", server.url, "t", "--header", "Authorization: Bearer hunter2")
        result = await asyncio.to_thread(bespeak, *words)
    said = told(result, 3)
    assert "answered with HTTP status 401; it needs credentials: in a suite, give the server headers: " in said
    assert 'with bespeak call, use --header "Authorization: Bearer $TOKEN"\n' in said
    assert (set(seen), "hunter2" in result.output) == ({"Bearer hunter2"}, False)


async def test_a_call_over_http_is_resumed_by_the_line_that_is_printed(tmp_path: Path) -> None:
    from tests.cli.desks import served

    with served(tmp_path / "web_desk.py") as target:
        from bespeak.server.targets import load

        async with Listening(load(target).streamable_http_app()) as server:
            words = ("call", server.url, "trip", "--answer", "city=Rome", "--header", "Authorization: Bearer hunter2")
            pending = await asyncio.to_thread(bespeak, *words)
            assert (pending.exit_code, "hunter2" in pending.output) == (6, False)
            saved = json.loads(pending.stdout)
            assert saved["resume"] == (
                f"bespeak call {server.url} --resume FILE --header=Authorization:... --answer sure=..."
            )
            assert not saved.keys() & {"again", "note"}
            file = tmp_path / "call.json"
            file.write_text(pending.stdout)
            line = saved["resume"].replace("FILE", str(file)).replace("sure=...", "sure=true")
            ended = await asyncio.to_thread(bespeak, *shlex.split(line)[1:])
    assert (ended.exit_code, ended.stdout) == (0, "Rome True today\n")


# Calls that wait, of servers that end with the command


def test_a_server_whose_keys_live_for_the_process_is_not_said_to_be_resumable(tmp_path: Path) -> None:
    file = tmp_path / "forgetful.py"
    file.write_text(
        "from typing import Annotated\nfrom bespeak import Elicit, MCPServer, Resolve\nmcp = MCPServer('f')\n"
        "async def ask() -> Elicit[str]:\n    return Elicit('City?', str)\n"
        "@mcp.tool()\nasync def go(city: Annotated[str, Resolve(ask, key='city')]) -> str:\n    return city\n"
    )
    result = bespeak("call", str(file), "go")
    saved = json.loads(result.stdout)
    assert (result.exit_code, saved.keys() & {"resume", "conversation"}) == (6, set())
    assert saved["again"] == f"bespeak call {file} go --answer city=..."
    assert saved["note"] == (
        "this call is over, because the server has made its state keys for this process only; the command in 'again' makes a new "
        "call, with the answers that you fill in. To continue calls instead, set BESPEAK_STATE_KEYS (bespeak keys new)"
    )
    said = told(bespeak("call", str(file), "--resume", "-", "--answer", "city=Rome", stdin=result.stdout), 2)
    assert said == f"bespeak: --resume: that call cannot be continued; make it again: {saved['again']}\n"


def test_a_command_may_lose_its_keys_and_the_printed_call_says_what_to_do_then(raw: Raw) -> None:
    target = raw(asking(q=asks("?", x={"type": "string"})))
    result = bespeak("call", target, "t")
    saved = json.loads(result.stdout)
    assert saved["note"] == (
        "the server has ended with this command. The command in 'resume' continues this call if a new process of the server "
        "accepts the requestState of the old one, as Bespeak servers do if BESPEAK_STATE_KEYS is set; otherwise "
        "the command in 'again' makes a new call, with the answers that you fill in"
    )
    assert saved["again"].endswith(" t --answer q=...")
    Path(shlex.split(target)[-1]).write_text(
        json.dumps({"calls": [{"error": {"code": -32602, "message": "bad state"}}], "pages": [{"tools": []}]})
    )
    ended = bespeak("call", target, "--resume", "-", "--answer", "q=x", stdin=result.stdout)
    assert told(ended, 1) == (
        "bespeak: bad state (-32602)\n"
        "bespeak: a new process of the server can continue a call only if it accepts the requestState of the old one; "
        f"if it does not, make the call again: {saved['again']}\n"
    )


# Roots, and other questions outside the call


def test_roots_are_none_unless_some_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_connection_answers(flags()).roots is None
    found = read_connection_answers(flags(roots=["sub", "file:///a"])).roots
    assert found == [{"uri": (tmp_path / "sub").as_uri()}, {"uri": "file:///a"}]


def test_an_invalid_root_is_an_error() -> None:
    said = told(bespeak("call", "server.py", "t", "--root", "https://x"), 2)
    assert said == "bespeak: --root: the root 'https://x' must be a path, or a URI such as file:///srv/project\n"


@pytest.mark.long
def test_a_server_that_asks_for_roots_by_itself_is_told_that_there_are_none(tmp_path: Path) -> None:
    target = as_target(curious(tmp_path, initialized=[ROOTS], list=[ROOTS], beside=[ROOTS]))
    result = bespeak("call", target, "beside", "n=5")
    assert (result.exit_code, result.stdout) == (0, '"done"\n')
    assert result.stderr == (
        "bespeak: the server asked for roots outside the call, and was told that there are none; --root PATH names one\n"
    )
    assert json.loads(bespeak("call", target, "heard").stdout) == [NOTHING, NOTHING]  # the tools are listed first


@pytest.mark.long
def test_the_roots_of_the_command_line_are_given_and_nothing_is_said(tmp_path: Path) -> None:
    target = as_target(curious(tmp_path, initialized=[ROOTS]))
    result = bespeak("call", target, "heard", "--root", str(tmp_path))
    assert json.loads(result.stdout) == [{"result": {"roots": [{"uri": tmp_path.as_uri()}]}}]
    assert result.stderr == ""


@pytest.mark.long
def test_a_root_that_does_not_exist_is_named_and_given_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = as_target(curious(tmp_path, initialized=[ROOTS]))
    result = bespeak("call", target, "heard", "--root", "nosuch", "--root", "file:///not/checked")
    assert result.stderr == f"bespeak: --root: the root 'nosuch' does not exist ('{tmp_path / 'nosuch'}')\n"
    given = [{"uri": (tmp_path / "nosuch").as_uri()}, {"uri": "file:///not/checked"}]
    assert json.loads(result.stdout) == [{"result": {"roots": given}}]


@pytest.mark.long
def test_other_questions_outside_the_call_are_declined_and_a_line_says_so(tmp_path: Path) -> None:
    result = bespeak("call", as_target(curious(tmp_path, initialized=[CITY, SAMPLE, CITY])), "heard")
    declined = {"result": {"action": "decline"}}
    refused = {"error": {"code": -1, "message": "sampling was declined"}}
    assert json.loads(result.stdout) == [declined, refused, declined]
    assert result.stderr == (
        f"bespeak: the server asked a question outside the call; it was declined: {OTHERS}\n"
        f"bespeak: the server asked for a model's reply outside the call; it was declined: {OTHERS}\n"
    )


@pytest.mark.long
def test_an_answer_does_not_reach_a_question_outside_the_call(tmp_path: Path) -> None:
    result = bespeak("call", as_target(curious(tmp_path, initialized=[CITY])), "beside", "--answer", "city=Oslo")
    assert told(result, 1) == (
        f"bespeak: the server asked a question outside the call; it was declined: {OTHERS}\n"
        "bespeak: no question asked for --answer city; the server asked nothing in the call\n"
    )


def test_an_answer_that_a_profile_does_not_use_is_told(raw: Raw, tmp_path: Path, write: Write) -> None:
    write(
        "mute_client.py",
        "from bespeak.testing import Profile\n"
        "class Mute(Profile):\n"
        "    async def answers(self, questions, ask):\n"
        "        return {one.key: {'action': 'decline'} for one in questions}\n",
    )
    words = ["t", "--as", f"{tmp_path / 'mute_client.py'}:Mute", "--answer", "ask=yes"]
    result = bespeak("call", raw(asking(ask=asks("?", x={"type": "string"})), "echo"), *words)
    assert told(result, 1) == "bespeak: --answer ask was not used: the client of --as answered itself\n"


def test_an_answer_for_the_roots_of_the_call_is_used_in_the_call(tmp_path: Path) -> None:
    target = as_target(curious(tmp_path, within=[ROOTS]))
    result = bespeak("call", target, "within", "--answer", 'roots={"roots": ["file:///mine"]}')
    assert json.loads(result.stdout) == {"result": {"roots": [{"uri": "file:///mine"}]}}


def test_sampling_that_is_declined_is_an_error_for_an_older_server_and_its_call_goes_on(tmp_path: Path) -> None:
    target = as_target(curious(tmp_path, within=[SAMPLE]))
    result = bespeak("call", target, "within", "--answer", "sampling=decline")
    sent = {"error": {"code": -1, "message": "the user declined this request"}}
    assert (result.exit_code, json.loads(result.stdout)) == (0, sent)


# Answers that nobody asked for


@pytest.mark.parametrize(
    ("given", "meant"),
    [("confirm", "shop:confirm"), ("confrim", "shop:confirm"), ("shop:confrim", "shop:confirm"), ("note", None)],
)
def test_an_answer_under_a_name_that_is_almost_right_is_told_the_name(raw: Raw, given: str, meant: str | None) -> None:
    target = raw(asking(**{"shop:confirm": asks("?", x={"type": "string"})}))
    result = bespeak("call", target, "t", "--answer", f"{given}=x")
    assert result.exit_code == 6
    told = f"bespeak: --answer {given} answers no question so far; did you mean '{meant}'?\n"
    assert result.stderr == (told if meant else "")


@pytest.mark.parametrize(
    ("script", "answers", "message"),
    [
        (["echo"], ["q=x"], "no question asked for --answer q; the server asked nothing"),
        ([asking(q=asks("?", x={"type": "string"})), "echo"], ["q=x", "colour=red", "size=5"],
         "no question asked for --answer colour, size; the server asked 'q'"),
        ([{"error": {"code": 1, "message": "no"}}], ["q=x"], "no question asked for --answer q; the server asked nothing"),
    ],
)  # fmt: skip
def test_an_answer_that_no_question_asked_for_is_an_error(
    raw: Raw, script: list[Any], answers: list[str], message: str
) -> None:
    result = bespeak("call", raw(*script), "t", *(word for answer in answers for word in ("--answer", answer)))
    assert told(result, 1).endswith(f"bespeak: {message}\n")
    assert ("inputResponses" in result.stdout) == (len(script) == 2)


def test_an_answer_that_may_still_be_asked_for_is_no_error_while_the_call_waits(raw: Raw) -> None:
    result = bespeak("call", raw(asking(q=asks("?", x={"type": "string"}))), "t", "--answer", "later=x")
    assert (result.exit_code, result.stderr) == (6, "")
