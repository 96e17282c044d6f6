"""Calls the methods of a profile, which may be anybody's: what they return is checked before it is used."""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, cast

from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.connection import Received
from bespeak.conversation.json_values import kind_of
from bespeak.conversation.profiles.profile import Ask, Profile, Send
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question, Reading


async def sent_by(client: Profile, send: Send) -> Received:
    """Return the response that reaches the client. Raises `CannotAnswer` for a profile that returns none."""
    returned = await _awaited(client, "send", client.send(send))
    if not isinstance(returned, Received):
        raise _wrong(client, "send", returned, "return what `await send()` returned")
    return returned


async def answered_by(client: Profile, questions: Sequence[Question], ask: Ask) -> dict[str, Any]:
    """Return what the client sends for the questions of a round. Raises `StartOver` and `CannotAnswer`."""
    returned = await _awaited(client, "answers", client.answers(questions, ask))
    if not isinstance(returned, Mapping):
        raise _wrong(client, "answers", returned, "return a map of key to answer, such as what `await ask()` returned")
    answers = dict(cast("Mapping[str, Any]", returned))
    asked = [one.key for one in questions]
    if unknown := [key for key in answers if key not in asked]:
        keys = ", ".join(map(repr, asked)) or "nothing"
        raise CannotAnswer(f"{_name(client)}: answers() answered {unknown[0]!r}; the server asked {keys}")
    return answers


def judged_by(client: Profile, response: Any, read: Reading) -> list[Finding]:
    """Return the faults that the client sees. Raises `CannotAnswer` for a profile that returns something else."""
    returned: Any = client.judge(response, read)
    entries = cast("Sequence[Any]", returned) if isinstance(returned, list | tuple) else (returned,)
    if not all(isinstance(one, Finding) for one in entries):
        raise _wrong(client, "judge", returned, "return a list of Finding, or () for none")
    return list(cast("Sequence[Finding]", entries))


async def _awaited(client: Profile, method: str, returned: Any) -> Any:
    if not inspect.isawaitable(returned):
        raise CannotAnswer(f"{_name(client)}: {method}() must be asynchronous; write `async def {method}`")
    return await returned


def _wrong(client: Profile, method: str, returned: Any, what: str) -> CannotAnswer:
    kinds = (type(None), bool, int, float, str, list, dict)
    kind = "None" if returned is None else kind_of(returned) if isinstance(returned, kinds) else type(returned).__name__
    return CannotAnswer(f"{_name(client)}: {method}() returned {kind}; {what}")


def _name(client: Profile) -> str:
    return f"profile {type(client).__name__}"
