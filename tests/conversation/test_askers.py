"""Who asks: the server, what was called, the words of the round, and the latest progress."""

from typing import Any

import pytest

from bespeak.conversation.askers import asker_of, progress_in
from bespeak.conversation.call_rounds import Conversation
from bespeak.terminal.prompt_types import Asker
from tests.testing.canned import asking


def progress(**params: Any) -> dict[str, Any]:
    return {"method": "notifications/progress", "params": params}


@pytest.mark.parametrize(
    ("notifications", "text"),
    [
        ([], ""),
        ([{"method": "notifications/message", "params": {"data": "x"}}], ""),
        ([progress(progress=1), progress(progress=2, total=5, message="Looking")], "2 of 5: Looking"),
        ([progress(progress=0.5)], "0.5"),
        ([progress(message="Looking")], "Looking"),
        ([progress(progress=True, total="x", message=5)], ""),
        ([{"method": "notifications/progress", "params": [1]}], ""),
        ([{"method": "notifications/progress"}], ""),
    ],
)
def test_the_latest_progress_is_told_in_one_line(notifications: list[Any], text: str) -> None:
    assert progress_in(notifications) == text


@pytest.mark.parametrize(
    ("method", "params", "tool"),
    [
        ("tools/call", {"name": "book"}, "book"),
        ("resources/read", {"uri": "till://log"}, "till://log"),
        ("tools/call", {"name": 5}, ""),
        ("tools/call", {}, ""),
    ],
)
def test_a_question_comes_from_a_server_and_what_was_called(method: str, params: Any, tool: str) -> None:
    conversation = Conversation(method, params)
    assert asker_of("desk", conversation) == Asker("desk", tool)
    envelope = {"jsonrpc": "2.0", "id": 1, "result": {**asking("city"), "description": "To book"}}
    conversation.receive(envelope)
    assert asker_of("desk", conversation).description == "To book"
