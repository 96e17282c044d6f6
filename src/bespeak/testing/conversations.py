"""`converse`: call any server from Python code with scripted answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from bespeak.conversation.answer_examples import example
from bespeak.conversation.answer_sources import FixtureScript, not_used_so_far
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.call_rounds import (
    DEFAULT_MAX_ELICITATION_ROUNDS,
    Conversation,
    MalformedResponse,
    Round,
    RoundsExceeded,
)
from bespeak.conversation.connection_settings import EVERYTHING, TIMEOUT_SECONDS, mode_of
from bespeak.conversation.exchange import BrokenRule, Talk
from bespeak.conversation.fixtures import InputResponseFixture, MissingAnswer
from bespeak.conversation.profiles.known_profiles import find_profile
from bespeak.conversation.profiles.profile import Profile
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.result_text import text_of
from bespeak.protocol.versions import LATEST_MODERN_VERSION, is_modern
from bespeak.testing.expect.expectations import ended
from bespeak.testing.redaction.redactor import Redactor
from bespeak.testing.server_connections import AnyServer, connected


class ConversationFailed(AssertionError):
    """A conversation did not follow its script: an answer was missing or unused, or the server broke a rule."""


@dataclass(frozen=True, slots=True)
class Conversed:
    """The outcome of a conversation."""

    envelope: dict[str, Any]
    """The final response, as it was received."""
    rounds: list[Round]
    """What was asked and answered, by question name."""
    asked: list[str]
    """The names of all questions, in the order they arrived."""
    keys: list[str]
    """Their keys, as the server wrote them."""
    notifications: list[dict[str, Any]]
    version: str
    """The protocol revision that was used."""
    advice: list[Finding] = field(default_factory=list[Finding])
    """What the server should do otherwise: clauses of the protocol with SHOULD that it does not follow."""

    @property
    def result(self) -> dict[str, Any]:
        """The result; empty after an error."""
        return cast("dict[str, Any]", self.envelope.get("result", {}))

    @property
    def error(self) -> dict[str, Any] | None:
        """The JSON-RPC error, or `None`."""
        return self.envelope.get("error")

    @property
    def text(self) -> str:
        """The text of the result: of its content, its messages or the resource."""
        return text_of(self.result)

    @property
    def structured(self) -> Any:
        """The structured content of the result, or `None`."""
        return self.result.get("structuredContent")

    @property
    def is_error(self) -> bool:
        """Whether it ended with a JSON-RPC error, or with a result that says that the tool failed."""
        return self.error is not None or self.result.get("isError") is True


async def converse(
    server: AnyServer,
    tool: str | None = None,
    arguments: dict[str, Any] | None = None,
    *,
    prompt: str | None = None,
    resource: str | None = None,
    answers: Mapping[str, Any] | Sequence[Any] | None = None,
    era: str = LATEST_MODERN_VERSION,
    declare: Mapping[str, Any] | None = None,
    max_rounds: int = DEFAULT_MAX_ELICITATION_ROUNDS,
    timeout: float = TIMEOUT_SECONDS,
    profile: str | type[Profile] | None = None,
) -> Conversed:
    """Call a tool, get a prompt or read a resource. `answers` has the form of a suite's `inputResponses`.

    `server` is an `MCPServer`, `StdioServerParameters`, a transport, or a target as on the command line: a URL,
    `FILE[:OBJECT]`, `MODULE[:OBJECT]` or a command, as one string. A server that cannot be reached, or does not speak the
    revision, raises `ConnectionError`.

    Raises `ConversationFailed` for a question without an answer, an answer without a question, and anything that the protocol
    does not allow. `era` is a revision, or `auto`, `modern` or `legacy`. `profile` is a client to play, as for `--as`,
    or a class.
    """
    if sum(target is not None for target in (tool, prompt, resource)) != 1:
        raise TypeError("pass exactly one of tool, prompt= and resource=")
    mode, client = mode_of(era), _client(profile)
    declared = next((one for one in (declare, client.declares) if one is not None), EVERYTHING)
    async with connected(server, mode, declared, timeout) as connection:
        if client.needs_rounds and not is_modern(connection.version):
            raise ValueError(f"this profile answers rounds, which revision {connection.version} does not have")
        method = "tools/call" if tool is not None else "prompts/get" if prompt is not None else "resources/read"
        params: dict[str, Any] = {"name": tool or prompt, "arguments": arguments or {}}
        if resource is not None:
            params = {"uri": resource}
        conversation = Conversation(method, params, max_rounds, connection.capabilities)
        script = FixtureScript(InputResponseFixture(answers), "answers")
        talk = Talk(connection, conversation, script, client=client)
        problems = await _problems(talk, script)
        await talk.settle()
        broken = [str(one) for one in conversation.findings if not one.is_advice]
        problems = [*dict.fromkeys(broken), *problems]
        if not problems and not client.answers_itself:
            problems = script.leftovers()
            problems += [ended(talk.envelope).removeprefix("; ")] if problems else []
        if problems:
            raise ConversationFailed(Redactor(tokens=conversation.states).message("\n".join(problems)))
        return Conversed(
            talk.envelope,
            [one.named() for one in conversation.rounds],
            talk.asked,
            [question.key for question in talk.questions],
            talk.notifications,
            connection.version,
            list(dict.fromkeys(one for one in conversation.findings if one.is_advice)),
        )


def _client(profile: str | type[Profile] | None) -> Profile:
    if profile is None:
        return Profile()
    return find_profile(profile).make() if isinstance(profile, str) else profile()


async def _problems(talk: Talk, script: FixtureScript) -> list[str]:
    """Hold a conversation. Return why it did not end, apart from broken rules."""
    try:
        await talk.hold()
    except MissingAnswer as error:
        hints = f"{not_used_so_far(script.unused_names())}{script.nearly(error.questions)}"
        return [f"{error}{hints}; answers={example(error.questions)!r}"]
    except (CannotAnswer, RoundsExceeded) as error:
        return [str(error)]
    except TimeoutError as error:
        return [f"the server did not respond: {error}"]
    except (BrokenRule, MalformedResponse):
        pass  # they are among the findings
    return []
