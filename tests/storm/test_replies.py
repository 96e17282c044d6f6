"""How the replies of a storm count."""

import json
from typing import Any

import pytest
from storm.replies import Ending, read_reply

from bespeak.protocol.session_facts import SessionsUnavailable
from bespeak.resolve.errors import Aborted
from bespeak.state.ledger_errors import LedgerUnavailable, OutcomeUnknown, ResultGone, SettledOtherwise, StillRunning
from bespeak.transports.http.legacy.endpoint import WORKER_GONE


def message(**content: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, **content}).encode()


def tool_error(text: object) -> bytes:
    content = [{"type": "text", "text": f"Error executing tool charge: {text}"}]
    return message(result={"resultType": "complete", "isError": True, "content": content})


@pytest.mark.parametrize(
    ("error", "ending"),
    [
        (OutcomeUnknown(), Ending.OUTCOME_UNKNOWN),
        (StillRunning(), Ending.STILL_RUNNING),
        (LedgerUnavailable(), Ending.STORE_UNREACHABLE),
        (Aborted("consent", "decline"), Ending.DECLINED),
        (f"resolver 'consent' got no answer: {SessionsUnavailable()}", Ending.STORE_UNREACHABLE),
        (SettledOtherwise(), Ending.UNEXPECTED),
        (ResultGone(), Ending.UNEXPECTED),
        ("tool 'charge' failed", Ending.UNEXPECTED),
    ],
)
def test_only_some_tool_errors_are_clear(error: object, ending: Ending) -> None:
    assert read_reply(200, tool_error(error)).ending is ending


def test_a_question_is_no_end() -> None:
    assert read_reply(200, message(result={"resultType": "input_required"})).ending is Ending.ASKED


@pytest.mark.parametrize(
    ("status", "error", "ending"),
    [
        (400, {"code": -32603, "message": WORKER_GONE}, Ending.WORKER_GONE),
        (500, {"code": -32603, "message": WORKER_GONE}, Ending.UNEXPECTED),
        (503, {"code": -32603, "message": str(SessionsUnavailable())}, Ending.STORE_UNREACHABLE),
        (
            200,
            {
                "code": -32602,
                "message": "invalid or expired requestState; if the call may have taken effect, check before you start it again",
            },
            Ending.UNEXPECTED,
        ),
        (404, {"code": -32600, "message": "the session does not exist"}, Ending.UNEXPECTED),
    ],
)
def test_only_some_json_rpc_errors_are_clear(status: int, error: dict[str, Any], ending: Ending) -> None:
    assert read_reply(status, message(error=error)).ending is ending


@pytest.mark.parametrize(("status", "body"), [(500, b"Internal Server Error"), (200, b""), (202, b"{}"), (200, b"[]")])
def test_a_response_without_a_message_is_unexpected(status: int, body: bytes) -> None:
    assert read_reply(status, body).ending is Ending.UNEXPECTED


def test_an_answer_is_accepted_without_a_message() -> None:
    assert read_reply(202, b"").ending is Ending.ACCEPTED


def test_the_results_of_two_requests_are_compared_without_their_ids() -> None:
    one, same, other = (
        read_reply(200, b'{"jsonrpc":"2.0","id":%d,"result":{"content":[],"cents":%d}}' % numbers).result
        for numbers in ((1, 5), (2, 5), (1, 6))
    )
    assert one == same
    assert one != other
