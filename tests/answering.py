"""Scripted people: callbacks that answer by the key of the question, and remember what they were asked."""

from collections.abc import Mapping
from typing import Any

from mcp_types import CallToolResult, ElicitRequestFormParams, ElicitRequestParams, ElicitResult, TextContent

from bespeak.client import ClientRequestContext
from bespeak.protocol.question_keys import bare_name

DECLINE = ElicitResult(action="decline")
CANCEL = ElicitResult(action="cancel")


_FOLLOWS = {
    "decline": ". A person said no. Do not try again in another way.",
    "cancel": ". The question was dismissed without an answer.",
}


def unresolved(parameter: str, action: str) -> str:
    """The end of the error of a call whose parameter cannot do with an outcome."""
    ended = f"Resolver for parameter {parameter!r} could not resolve: elicitation was {action}"
    return ended + _FOLLOWS.get(action, "")


def accept(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


class Person:
    """An elicitation callback. Answers may be given by the name in a key, or by its end after the last colon or dot.

    A list of answers is used up one by one, when a question is asked several times.
    """

    def __init__(self, answers: Mapping[str, ElicitResult | list[ElicitResult]] | None = None) -> None:
        self._answers = {
            key: list(value) if isinstance(value, list) else value for key, value in (answers or {}).items()
        }
        self.asked: list[str] = []
        """Ends of names, in the order they were asked."""
        self.messages: list[str] = []
        self.schemas: list[dict[str, Any]] = []

    async def __call__(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        assert isinstance(params, ElicitRequestFormParams)
        self.asked.append(short(context.key))
        self.messages.append(params.message)
        self.schemas.append(params.requested_schema)
        answer = self._answers.get(bare_name(context.key), self._answers.get(short(context.key)))
        if answer is None:
            raise AssertionError(f"nobody scripted an answer to {context.key!r}: {params.message}")
        return answer.pop(0) if isinstance(answer, list) else answer


def short(key: str) -> str:
    """The last name in a wire key: `tests.x:test_y.<locals>.confirm#1~0a1b2c3d` is `confirm#1`."""
    return bare_name(key).rpartition(":")[2].rpartition(".")[2]


def text(result: CallToolResult) -> str:
    """The text of a result that is one block of text."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text
