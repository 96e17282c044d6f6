"""Who asks, for the person at the prompt: the server, the tool, and how far the call is."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from bespeak.conversation.call_rounds import Conversation
from bespeak.conversation.json_values import is_number
from bespeak.terminal.prompt_types import Asker


def asker_of(server: str, conversation: Conversation, notifications: Sequence[Mapping[str, Any]] = ()) -> Asker:
    """Return who asks the open questions of a conversation."""
    target: Any = conversation.params.get("name", conversation.params.get("uri"))
    pending = conversation.pending
    about = (pending.description if pending is not None else None) or ""
    return Asker(server, target if isinstance(target, str) else "", about, progress_in(notifications))


def progress_in(notifications: Sequence[Mapping[str, Any]]) -> str:
    """Return the latest progress among notifications, such as `2 of 5: Looking for seats`; empty if there is none."""
    reports = [one.get("params") for one in notifications if one.get("method") == "notifications/progress"]
    latest = cast("dict[str, Any]", reports[-1]) if reports and isinstance(reports[-1], dict) else {}
    message: Any = latest.get("message")
    numbers = [f"{one:g}" for one in map(latest.get, ("progress", "total")) if is_number(one)]
    return ": ".join(filter(None, [" of ".join(numbers), message if isinstance(message, str) else ""]))
