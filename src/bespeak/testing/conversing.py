"""One conversation from Python code: scripted answers, either era, any server."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bespeak.protocol.versions import LATEST_MODERN_VERSION
from bespeak.testing.answers import CannotAnswer
from bespeak.testing.chain import DEFAULT_MAX_ELICITATION_ROUNDS, Conversation
from bespeak.testing.connection import Connection
from bespeak.testing.findings import Finding
from bespeak.testing.fixtures import InputResponseFixture, MissingAnswer
from bespeak.testing.judging import text_of
from bespeak.testing.results import Round
from bespeak.testing.scripts import FixtureScript, paste
from bespeak.testing.suite import EVERYTHING, TIMEOUT_SECONDS
from bespeak.testing.talking import BrokenRule, Talk
from bespeak.transports.http_client import HttpTransport
from bespeak.transports.memory import MemoryTransport
from bespeak.transports.stdio_client import StdioServerParameters, StdioTransport
from bespeak.transports.transport import Answering, Transport


class ConversationFailed(AssertionError):
    """A conversation went otherwise than it was scripted: an answer was missing or not asked for, or a rule was broken."""


@dataclass(frozen=True, slots=True)
class Conversed:
    """What came of a conversation."""

    envelope: dict[str, Any]
    """The response that ended it, as it came."""
    rounds: list[Round]
    asked: list[str]
    """The keys of all questions, in their order."""
    notifications: list[dict[str, Any]]
    version: str
    """The revision that was spoken."""

    @property
    def result(self) -> dict[str, Any]:
        """The result; empty if there was an error."""
        return cast("dict[str, Any]", self.envelope.get("result", {}))

    @property
    def error(self) -> dict[str, Any] | None:
        """The JSON-RPC error, if that was how it ended."""
        return self.envelope.get("error")

    @property
    def text(self) -> str:
        return text_of(self.result)

    @property
    def structured(self) -> Any:
        return self.result.get("structuredContent")

    @property
    def is_error(self) -> bool:
        return self.error is not None or self.result.get("isError") is True


async def converse(
    server: Answering | Transport | StdioServerParameters | str,
    tool: str,
    arguments: dict[str, Any] | None = None,
    *,
    answers: Mapping[str, Any] | Sequence[Any] | None = None,
    era: str = LATEST_MODERN_VERSION,
    declare: Mapping[str, Any] | None = None,
    max_rounds: int = DEFAULT_MAX_ELICITATION_ROUNDS,
    timeout: float = TIMEOUT_SECONDS,
) -> Conversed:
    """Call a tool, and answer what it asks as a suite's `inputResponses` would.

    Strict both ways: a question without an answer and an answer without a question raise `ConversationFailed`, and so does
    whatever the protocol does not allow. `era` is a revision, `auto` or `legacy`.
    """
    strays: list[bytes] = []
    connection = Connection(_transport(server, strays.append), era, EVERYTHING if declare is None else declare, timeout)
    async with connection:
        params = {"name": tool, "arguments": arguments or {}}
        conversation = Conversation("tools/call", params, max_rounds, connection.capabilities)
        script = FixtureScript(InputResponseFixture(answers))
        talk = Talk(connection, conversation, script)
        try:
            await talk.hold()
        except MissingAnswer as error:
            raise ConversationFailed(f"{error}\n{paste(error.questions)}") from None
        except CannotAnswer as error:
            raise ConversationFailed(str(error)) from None
        except BrokenRule as error:
            raise ConversationFailed(str(error)) from None
        for line in strays:
            connection.stray(line)
        problems = [*map(str, _findings(conversation)), *(failure.message for failure in script.leftovers())]
        if problems:
            raise ConversationFailed("\n".join(problems))
        return Conversed(talk.envelope, conversation.rounds, talk.asked, talk.notifications, connection.version)


def _findings(conversation: Conversation) -> list[Finding]:
    return list({str(finding): finding for finding in conversation.findings}.values())


def _transport(server: Any, stray: Any) -> Transport:
    if isinstance(server, str):
        return HttpTransport(server, stray=stray)
    if isinstance(server, StdioServerParameters):
        return StdioTransport(server, stray=stray)
    return MemoryTransport(server) if hasattr(server, "running") else server
