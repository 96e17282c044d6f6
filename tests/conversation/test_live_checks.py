"""What is found on a live connection besides responses: late messages, HTTP statuses, schemas of tools.

Each server is a raw one; most rules have theirs in broken_servers.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_settings import EVERYTHING
from bespeak.conversation.http_watch import HttpWatch
from bespeak.conversation.live_checks import LiveChecks
from bespeak.conversation.responses import Question
from bespeak.protocol.headers import SESSION_HEADER
from bespeak.transports.http.client import HttpTransport
from bespeak.transports.stdio.client import StdioServerParameters, StdioTransport
from tests.conversation import raw_servers
from tests.conversation.raw_runs import held, over_http
from tests.conversation.raw_servers import (
    LAST,
    MODERN,
    NOVEMBER,
    Json,
    Raw,
    done,
    failed,
    form,
    log,
    note,
    progress,
    pushed,
    result,
    said,
    written,
)
from tests.wires import Listening


async def nobody(question: Question) -> Any:
    raise AssertionError("nothing is asked")


async def findings(raw: Raw, folder: Path, calls: int = 1, log_level: Any = "info") -> list[tuple[str, str]]:
    """What is found in some calls, and after them."""
    if raw.http:
        async with Listening(over_http(raw)) as listening:
            return await called(
                Connection(HttpTransport(listening.url), raw.revision, EVERYTHING, 20, log_level=log_level), calls
            )
    (folder / "raw.json").write_text(written(raw))
    child = StdioServerParameters("python", [raw_servers.__file__, str(folder / "raw.json")])
    return await called(Connection(StdioTransport(child), raw.revision, EVERYTHING, 20, log_level=log_level), calls)


async def called(connection: Connection, calls: int) -> list[tuple[str, str]]:
    found: list[Any] = []
    async with connection:
        for _ in range(calls):
            found += (await connection.send("tools/call", {"name": "x"}, nobody)).findings
            await connection.settle()
            found += connection.astray()
    return [(one.rule, one.text) for one in found]


TWICE = "the server sent another response to request"
LATE: dict[str, tuple[list[Any], str, str]] = {
    "progress": ([done(), progress(1)], "after-final", "the server sent progress of request"),
    "a log": ([done(), log()], "after-final", "the server sent a log while no request was under way"),
    "a response": ([done(), done()], "after-final", TWICE),
    "a change": (
        [done(), note("tools/list_changed")],
        "unsubscribed",
        "the server sent notifications/tools/list_changed",
    ),
}


@pytest.mark.parametrize(
    ("what", "http"),
    [
        (what, http) for what in LATE for http in (True, False) if http or what != "a log"
    ],  # nothing ties it to a request
)
async def test_what_is_sent_after_a_response_is_found(what: str, http: bool, tmp_path: Path) -> None:
    messages, rule, text = LATE[what]
    ((found, told),) = await findings(said(*messages, http=http), tmp_path)
    assert found == rule
    assert told.startswith(text)


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ({"jsonrpc": "2.0", "id": 9, "method": "roots/list"}, "pushed"),
        ("nonsense", "after-final"),
        ("[1]", "after-final"),
    ],
)
async def test_anything_else_after_a_response_is_found_over_http_too(message: Any, rule: str, tmp_path: Path) -> None:
    assert [found for found, _ in await findings(said(done(), message, http=True), tmp_path)] == [rule]


@pytest.mark.long
async def test_progress_of_the_request_before_is_found(tmp_path: Path) -> None:
    late = Raw([[done()], [progress(1, LAST), done()]])
    ((rule, text),) = await findings(late, tmp_path, calls=2)
    assert rule == "after-final"
    assert text.endswith(" after its response")


async def test_progress_of_the_request_before_is_found_at_an_older_revision(tmp_path: Path) -> None:
    late = Raw([[done()], [progress(1, LAST), done()]], revision=NOVEMBER)
    assert {rule for rule, _ in await findings(late, tmp_path, calls=2)} == {"after-final"}


@pytest.mark.long
async def test_an_older_server_may_send_changes_and_logs_at_any_time(tmp_path: Path) -> None:
    assert await findings(said(done(), log(), note("tools/list_changed"), revision=NOVEMBER), tmp_path) == []


@pytest.mark.long
async def test_a_log_that_no_request_asked_for_is_found(tmp_path: Path) -> None:
    assert await findings(said(log("error"), done()), tmp_path, log_level=None) == [
        ("log-level", "the server sent a log of level error, but the request asked for none")
    ]


@pytest.mark.long
async def test_a_request_that_was_given_up_may_still_be_answered(tmp_path: Path) -> None:
    (tmp_path / "raw.json").write_text(written(Raw([["waiting"], [progress(1, LAST), {**done(), "id": LAST}, done()]])))
    child = StdioServerParameters("python", [raw_servers.__file__, str(tmp_path / "raw.json")])
    async with Connection(StdioTransport(child, stray=lambda _: None), MODERN, EVERYTHING, 20) as connection:
        connection.timeout = 0.05
        with pytest.raises(TimeoutError):
            await connection.send("tools/call", {"name": "x"}, nobody)
        connection.timeout = 20
        received = await connection.send("tools/call", {"name": "x"}, nobody)
        await connection.settle()
        assert received.findings + connection.astray() == []


# Errors that the protocol defines, and what a server declares


@pytest.mark.parametrize(
    ("needed", "is_declared"),
    [
        ({"elicitation": {}}, True),
        ({"elicitation": {"form": {}}}, True),
        ({"sampling": {"tools": {}}, "roots": {}}, True),
        ({"elicitation": {"video": {}}}, False),
        ({"extensions": {"com.example/x": {}}}, False),
        ({}, False),
    ],
)
async def test_an_error_for_a_missing_capability_names_one_that_is_missing(
    needed: Json, is_declared: bool, tmp_path: Path
) -> None:
    found = await findings(said(failed(-32021, data={"requiredCapabilities": needed})), tmp_path)
    names = ", ".join(f"'{name}'" for name in needed)
    text = f"the error -32021 asks for {names}, which the client declared"
    assert found == ([("error-meaning", text)] if is_declared else [])


async def test_an_error_for_headers_needs_a_transport_with_headers(tmp_path: Path) -> None:
    assert await findings(said(failed(-32020)), tmp_path) == [
        ("error-meaning", "the error -32020 came over a transport without headers")
    ]
    assert await findings(said(failed(-32020), http=True, status=400), tmp_path) == []


async def test_an_error_for_the_revision_does_not_say_that_it_is_supported(tmp_path: Path) -> None:
    data = {"supported": [MODERN], "requested": MODERN}
    text = f"the error -32022 says that {MODERN} is supported, which is the revision of the request"
    assert await findings(said(failed(-32022, data=data)), tmp_path) == [("error-meaning", text)]
    assert await findings(said(failed(-32022, data={**data, "supported": ["2031-01-01"]})), tmp_path) == []


async def test_completion_had_no_capability_at_2024_11_05(tmp_path: Path) -> None:
    values = result(completion={"values": []})
    for revision, rules in (("2024-11-05", []), ("2025-03-26", ["capability"])):
        server = Raw([[values]], revision=revision, capabilities={})
        (tmp_path / "raw.json").write_text(written(server))
        child = StdioServerParameters("python", [raw_servers.__file__, str(tmp_path / "raw.json")])
        async with Connection(StdioTransport(child), revision, EVERYTHING, 20) as connection:
            received = await connection.send("completion/complete", {}, nobody)
        assert [one.rule for one in received.findings] == rules


# HTTP


async def test_ids_begin_anew_in_a_new_session_and_without_one() -> None:
    old = over_http(said(done(), revision=NOVEMBER))
    async with (
        Listening(old) as listening,
        Connection(HttpTransport(listening.url), NOVEMBER, EVERYTHING, 20) as connection,
    ):
        checks = LiveChecks(connection.session, "info", HttpWatch(), EVERYTHING)
        checks.asked(1)
        checks.asked(1)
        for session in ("a", "b"):
            checks.responded(1, 200, {SESSION_HEADER: session}, streamed=False)
            checks.asked(1)
        assert checks.taken() == []
        checks.asked(1)
        assert [one.text for one in checks.taken()] == ["the server sent another request with the id 1"]


async def test_a_status_that_was_sent_before_the_error_was_known_is_right(tmp_path: Path) -> None:
    assert await findings(said(log(), failed(-32601), http=True), tmp_path) == []


@pytest.mark.parametrize(
    ("code", "status", "found"),
    [
        (-32601, 404, []),
        (-32601, 200, [("error-status", "the error -32601 came with the HTTP status 200, not 404")]),
        (-32602, 200, []),
        (-32602, 400, []),
    ],
)
async def test_some_errors_have_a_status_of_their_own(code: int, status: int, found: Any, tmp_path: Path) -> None:
    assert await findings(said(failed(code), http=True, status=status), tmp_path) == found


async def test_an_older_server_may_have_a_session(tmp_path: Path) -> None:
    old = said(done(), http=True, headers={"Mcp-Session-Id": "abc"}, revision=NOVEMBER)
    assert await findings(old, tmp_path) == []


def test_the_newest_revision_is_the_one_that_is_checked_most() -> None:
    assert said(done()).revision == MODERN


# Requests of a server of an older revision that cannot be answered


@pytest.mark.parametrize("http", [False, True])
@pytest.mark.parametrize(("id_", "told"), [(None, "null"), (1.5, "1.5"), (True, "true"), ({"a": 1}, '{"a": 1}')])
async def test_a_question_whose_id_is_neither_text_nor_an_integer_is_found(
    id_: Any, told: str, http: bool, tmp_path: Path
) -> None:
    sent = said({**pushed(form()), "id": id_}, done(), revision=NOVEMBER, http=http)
    assert await findings(sent, tmp_path) == [("request-id-type", f"the server sent a request with the id {told}")]


@pytest.mark.timing
async def test_a_server_that_waits_for_the_answer_to_such_a_question_is_told_apart_from_one_that_is_slow(
    tmp_path: Path,
) -> None:
    sent = said({**pushed(form()), "id": None}, revision=NOVEMBER)
    (tmp_path / "raw.json").write_text(written(sent))
    child = StdioServerParameters("python", [raw_servers.__file__, str(tmp_path / "raw.json")])
    async with Connection(StdioTransport(child), NOVEMBER, EVERYTHING, 20) as connection:
        connection.timeout = 0.2
        with pytest.raises(TimeoutError):
            await connection.send("tools/call", {"name": "x"}, nobody)
        assert [one.rule for one in connection.astray()] == ["request-id-type"]
        connection.hurry()


async def test_a_question_with_the_id_of_an_open_one_is_found(tmp_path: Path) -> None:
    twice = "\n".join([json.dumps(pushed(form()))] * 2)
    result_ = await held(said(twice, done(resultType=...), revision=NOVEMBER), tmp_path)
    assert [one.rule for one in result_.failures] == ["request-id"]
