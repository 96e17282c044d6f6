"""Questions that belong to no call: how they are told from those of a call, and how they are answered."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.connection import DECLINED, Connection, Push, Scripts, nothing
from bespeak.conversation.connection_answers import ConnectionAnswers, read_roots
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.responses import Question
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.stdio.client import StdioServerParameters, StdioTransport
from tests.curious_server import CITY, NOTHING, ROOTS, SAMPLE, curious
from tests.transports.http.old_http import OldHttp, event, for_ever, streams
from tests.waiting import eventually
from tests.wires import Listening

Json = dict[str, Any]
HERE: Json = {"uri": "file:///here"}
AT_HOME = ConnectionAnswers([HERE])
DECLINED_FORM: Json = {"result": {"action": "decline"}}
NO_SAMPLE: Json = {"error": {"code": -1, "message": "sampling was declined"}}


async def nobody(question: Question) -> Any:
    raise AssertionError(f"nobody should be asked {question.key!r}")


async def rome(question: Question) -> Any:
    return {"action": "accept", "content": {question.key: "Rome"}}


@asynccontextmanager
async def connected(
    command: list[str], answers: ConnectionAnswers | None = None, declared: Json = EVERYTHING
) -> AsyncGenerator[Connection]:
    transport = StdioTransport(StdioServerParameters(command[0], command[1:]), patience=5)
    async with Connection(transport, "legacy", declared, 10, answers) as connection:
        yield connection


async def said(connection: Connection, tool: str, push: Push = nobody, scripts: Scripts = nothing) -> Any:
    """What a tool returns."""
    received = await connection.send("tools/call", {"name": tool, "arguments": {}}, push, scripts)
    return json.loads(received.envelope["result"]["content"][0]["text"])


async def heard(connection: Connection, count: int = 1) -> list[Json]:
    """What the server was answered, once it has heard so much."""
    answers: list[Json] = []
    for _ in range(100):
        answers = await said(connection, "heard")
        if len(answers) >= count:
            break
    return answers


# Where a question belongs to no call


@pytest.mark.parametrize(
    ("question", "answers", "sent"),
    [
        (ROOTS, None, NOTHING),
        (ROOTS, AT_HOME, {"result": {"roots": [HERE]}}),
        (ROOTS, ConnectionAnswers([]), NOTHING),
        (CITY, None, DECLINED_FORM),
        (SAMPLE, None, NO_SAMPLE),
    ],
)
@pytest.mark.long
async def test_what_is_asked_right_after_the_handshake_is_answered_before_the_first_call(
    tmp_path: Path, question: Json, answers: ConnectionAnswers | None, sent: Json
) -> None:
    async with connected(curious(tmp_path, initialized=[question]), answers) as connection:
        assert await said(connection, "heard") == [sent]
        assert [outside.question.method for outside in connection.outside] == [question["method"]]


@pytest.mark.parametrize(
    ("question", "written", "sent"),
    [
        (CITY, {"city": "Oslo"}, {"result": {"action": "accept", "content": {"city": "Oslo"}}}),
        (CITY, {"city": "decline"}, DECLINED_FORM),
        (CITY, {"city": "cancel"}, {"result": {"action": "cancel"}}),
        (CITY, {"city": {"raw": {"x": 1}}}, {"result": {"x": 1}}),
        (CITY, [{"when": {"message": {"contains": "City"}}, "answer": "Bonn"}],
         {"result": {"action": "accept", "content": {"city": "Bonn"}}}),
        (ROOTS, {"roots": {"roots": ["file:///a"]}}, {"result": {"roots": [{"uri": "file:///a"}]}}),
        (ROOTS, {"roots": "decline"}, {"error": {"code": -1, "message": "the roots are not shared"}}),
        (SAMPLE, {"sampling": "decline"}, NO_SAMPLE),
        (SAMPLE, {"sampling": {"sample": "Hi"}},
         {"result": {"role": "assistant", "model": "bespeak-test", "stopReason": "endTurn",
                     "content": {"type": "text", "text": "Hi"}}}),
    ],
)  # fmt: skip
@pytest.mark.long
async def test_the_answers_of_a_connection_have_the_forms_of_a_suite(
    tmp_path: Path, question: Json, written: Any, sent: Json
) -> None:
    answers = ConnectionAnswers(fixture=InputResponseFixture(written))
    async with connected(curious(tmp_path, initialized=[question]), answers) as connection:
        assert await said(connection, "heard") == [sent]
        assert connection.outside[0].prepared


@pytest.mark.long
async def test_questions_during_a_request_that_is_no_call_belong_to_no_call(tmp_path: Path) -> None:
    async with connected(curious(tmp_path, list=[ROOTS, CITY, SAMPLE])) as connection:
        listed = await connection.session.request("tools/list", {})
        assert [tool["name"] for tool in listed["tools"]] == ["beside"]
        assert await heard(connection, 3) == [NOTHING, DECLINED_FORM, NO_SAMPLE]


@pytest.mark.long
async def test_a_server_that_asks_again_after_roots_have_changed_is_answered_again(tmp_path: Path) -> None:
    async with connected(curious(tmp_path, initialized=[ROOTS], changed=[ROOTS]), AT_HOME) as connection:
        for count in (2, 3):
            await connection.session.send_roots_list_changed()
            assert await heard(connection, count) == [{"result": {"roots": [HERE]}}] * count
        assert [outside.question.key for outside in connection.outside] == ["roots"] * 3


@pytest.mark.long
async def test_a_server_gets_time_to_use_an_answer_before_the_next_call(tmp_path: Path) -> None:
    async with connected(curious(tmp_path, initialized=[ROOTS])) as connection:
        assert await said(connection, "since") > 0.1


@pytest.mark.long
async def test_a_flood_of_questions_is_answered_and_only_the_first_are_kept(tmp_path: Path) -> None:
    async with connected(curious(tmp_path, initialized=[ROOTS] * 60)) as connection:
        assert await heard(connection, 60) == [NOTHING] * 60
        assert len(connection.outside) == 20


@pytest.mark.long
async def test_roots_that_come_with_the_response_of_a_call_are_answered_although_the_call_has_ended(
    tmp_path: Path,
) -> None:
    async with connected(curious(tmp_path, beside=[ROOTS]), AT_HOME) as connection:
        assert await said(connection, "beside") == "done"
        assert await heard(connection) == [{"result": {"roots": [HERE]}}]


# Where it is not known whether it belongs to the open call


async def test_over_stdio_roots_that_the_call_does_not_script_belong_to_the_connection(tmp_path: Path) -> None:
    async with connected(curious(tmp_path, within=[ROOTS])) as connection:
        assert await said(connection, "within") == NOTHING


async def test_over_stdio_roots_that_the_call_scripts_are_its_own(tmp_path: Path) -> None:
    async def scripted(question: Question) -> Any:
        return {"roots": [{"uri": "file:///scripted"}]}

    async with connected(curious(tmp_path, within=[ROOTS]), AT_HOME) as connection:
        sent = await said(connection, "within", scripted, lambda question: question.key == "roots")
        assert sent == {"result": {"roots": [{"uri": "file:///scripted"}]}}
        assert connection.outside == []


async def test_any_other_question_in_a_call_is_its_own(tmp_path: Path) -> None:
    async with connected(curious(tmp_path, within=[CITY])) as connection:
        sent = await said(connection, "within", rome)
        assert sent == {"result": {"action": "accept", "content": {"city": "Rome"}}}


@pytest.mark.long
async def test_what_the_connection_answers_and_the_call_does_not_script_belongs_to_the_connection(
    tmp_path: Path,
) -> None:
    answers = ConnectionAnswers(fixture=InputResponseFixture({"city": "Oslo"}))
    async with connected(curious(tmp_path, within=[CITY]), answers) as connection:
        oslo, italy = ({"result": {"action": "accept", "content": {"city": city}}} for city in ("Oslo", "Rome"))
        assert await said(connection, "within") == oslo
        assert await said(connection, "within", rome, lambda _: True) == italy


async def test_a_person_can_decline_what_has_no_answer_for_that(tmp_path: Path) -> None:
    async def declines(question: Question) -> Any:
        return DECLINED

    async with connected(curious(tmp_path, within=[SAMPLE])) as connection:
        sent = await said(connection, "within", declines)
        assert sent == {"error": {"code": -1, "message": "the user declined this request"}}


@pytest.mark.parametrize(("question", "code"), [(ROOTS, -32601), (SAMPLE, -32601), (CITY, -32602)])
@pytest.mark.long
async def test_a_question_that_was_not_declared_gets_an_error(tmp_path: Path, question: Json, code: int) -> None:
    async with connected(curious(tmp_path, initialized=[question]), AT_HOME, {}) as connection:
        told = {"code": code, "message": "the client did not declare this capability"}
        assert await said(connection, "heard") == [{"error": told}]


async def test_roots_that_were_not_declared_are_the_fault_of_the_call_they_come_in(tmp_path: Path) -> None:
    asked: list[str] = []

    async def noted(question: Question) -> Any:
        asked.append(question.key)
        return {"roots": []}

    async with connected(curious(tmp_path, within=[ROOTS]), None, {}) as connection:
        await said(connection, "within", noted)
    assert asked == ["roots"]


@pytest.mark.parametrize(
    "question",
    [
        {"method": "elicitation/create", "params": {"message": 5}},
        {"method": "elicitation/create", "params": {"requestedSchema": [], "message": "?"}},
        {"method": "sampling/createMessage"},
    ],
)
@pytest.mark.long
async def test_a_malformed_question_outside_a_call_gets_an_error(tmp_path: Path, question: Json) -> None:
    answers = ConnectionAnswers(fixture=InputResponseFixture([{"otherwise": {"raw": {}}}]))
    async with connected(curious(tmp_path, initialized=[question]), answers) as connection:
        (sent,) = await said(connection, "heard")
        assert sent == {"error": {"code": -32602, "message": "the question is not valid"}}


async def test_params_that_are_no_object_get_an_error(tmp_path: Path) -> None:
    async with connected(curious(tmp_path, initialized=[{**ROOTS, "params": [1]}])) as connection:
        (sent,) = await said(connection, "heard")
        assert sent == {"error": {"code": -32602, "message": "params must be an object"}}


@pytest.mark.parametrize(
    ("question", "written", "problem", "sent"),
    [
        (CITY, {"city": 5}, "the answer to 'city' does not fit its form: city: must be a string", DECLINED_FORM),
        (CITY, {"city": "omit"}, "'city' was asked outside a call and cannot be omitted", DECLINED_FORM),
        (ROOTS, {"roots": "x"}, "'roots' asks for roots/list, which is answered with {roots: [file:///...]}", NOTHING),
    ],
)
@pytest.mark.long
async def test_an_answer_that_does_not_fit_is_told_once_and_no_call_fails(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, question: Json, written: Any, problem: str, sent: Json
) -> None:
    answers = ConnectionAnswers(fixture=InputResponseFixture(written))
    async with connected(curious(tmp_path, initialized=[question]), answers) as connection:
        assert await said(connection, "heard") == [sent]
        assert connection.unfit_answers() == [problem]
        assert connection.unfit_answers() == []
    assert caplog.records == []


# Over HTTP


def asked(question: Json, id_: str = "q1") -> bytes:
    return event({"jsonrpc": "2.0", "id": id_, **question})


def replies(server: OldHttp) -> list[Json]:
    """What the server was answered."""
    return [got.message for got in server.at("a reply")]


@asynccontextmanager
async def over_http(server: OldHttp, answers: ConnectionAnswers | None = None) -> AsyncGenerator[Connection]:
    async with (
        Listening(server) as listening,
        Connection(HttpTransport(listening.url), "legacy", EVERYTHING, 10, answers) as connection,
    ):
        yield connection


@pytest.mark.parametrize(("question", "sent"), [(ROOTS, NOTHING), (CITY, DECLINED_FORM), (SAMPLE, NO_SAMPLE)])
async def test_what_comes_on_the_standing_stream_between_calls_belongs_to_the_connection(
    question: Json, sent: Json
) -> None:
    server = OldHttp(gets=[streams(asked(question), for_ever)])
    async with over_http(server):
        await eventually(lambda: replies(server))
    assert replies(server) == [{"jsonrpc": "2.0", "id": "q1", **sent}]


async def test_roots_on_the_stream_of_a_call_are_its_own_even_if_it_does_not_script_them() -> None:
    server = OldHttp(streams(asked(ROOTS), lambda: eventually(lambda: replies(server)), response=True))

    async def found(question: Question) -> Any:
        return {"roots": [{"uri": "file:///found"}]}

    async with over_http(server) as connection:
        await connection.send("tools/call", {"name": "x"}, found)
        assert connection.outside == []
    assert replies(server)[0]["result"] == {"roots": [{"uri": "file:///found"}]}


async def test_roots_on_the_standing_stream_during_a_call_belong_to_the_connection() -> None:
    server = OldHttp(
        streams(lambda: eventually(lambda: replies(server)), response=True),
        gets=[streams(lambda: eventually(lambda: server.at("tools/call")), asked(ROOTS), for_ever)],
    )  # fmt: skip
    async with over_http(server, AT_HOME) as connection:
        await connection.send("tools/call", {"name": "x"}, nobody)
    assert replies(server)[0]["result"] == {"roots": [HERE]}


# Roots as they are written


def test_roots_are_paths_from_a_folder_or_uris_with_or_without_names(tmp_path: Path) -> None:
    written = ["a b", "..", "/srv", "file:///x/é", {"uri": "sub", "name": "Sub"}, {"uri": "file:///y"}]
    assert read_roots(written, tmp_path) == [
        {"uri": (tmp_path / "a b").as_uri()},
        {"uri": tmp_path.parent.as_uri()},
        {"uri": "file:///srv"},
        {"uri": "file:///x/%C3%A9"},
        {"uri": (tmp_path / "sub").as_uri(), "name": "Sub"},
        {"uri": "file:///y"},
    ]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("here", "roots must be a list of paths, of file:// URIs, or of {uri, name}"),
        ([5], "a root is a path, a file:// URI, or {uri, name}"),
        ([""], "a root is a path, a file:// URI, or {uri, name}"),
        ([{"name": "x"}], "a root is a path, a file:// URI, or {uri, name}"),
        ([{"uri": "x", "more": 1}], "a root is a path, a file:// URI, or {uri, name}"),
        ([{"uri": "x", "name": 5}], "the name of a root must be a string"),
        (["https://x.example"], "the root 'https://x.example' must be a path, or a URI such as file:///srv/project"),
        (["~nobody-at-all/x"], "the root '~nobody-at-all/x' must be a path that can be found"),
    ],
)
def test_anything_else_is_an_error_that_says_what_a_root_is(written: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        read_roots(written, Path("/"))
