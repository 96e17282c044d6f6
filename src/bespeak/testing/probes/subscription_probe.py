"""The probe that opens a subscription, and ends it after its acknowledgement."""

import asyncio
from collections.abc import Mapping
from typing import Any

from bespeak.conversation.differences import shown
from bespeak.conversation.json_values import as_object
from bespeak.conversation.notification_checks import ACKNOWLEDGED
from bespeak.conversation.protocol_rules import Finding
from bespeak.protocol.errors import MCPError
from bespeak.protocol.methods import LISTEN, SUBSCRIPTION_ID_META
from bespeak.protocol.versions import is_modern
from bespeak.testing.altered_requests import NotReached
from bespeak.testing.probes.probe_wire import ProbeWire

_KINDS = {"tools": "toolsListChanged", "prompts": "promptsListChanged", "resources": "resourcesListChanged"}
"""What may be subscribed to, by the capability whose `listChanged` says so."""


async def subscription(wire: ProbeWire) -> list[Finding]:
    if not is_modern(wire.version):
        raise NotReached(f"revision {wire.version} has no subscriptions")
    declared = wire.connection.server
    asked = next(
        (kind for name, kind in _KINDS.items() if getattr(getattr(declared, name), "list_changed", None)), None
    )
    if asked is None:
        raise NotReached("the server declares no listChanged")
    messages: list[dict[str, Any]] = []
    heard = asyncio.Event()

    def take(message: dict[str, Any]) -> None:
        messages.append(message)
        heard.set()

    with wire.connection.listening(take):
        stream = wire.connection.session.open_stream(LISTEN, {"notifications": {asked: True}}, _nothing)
        waiting = asyncio.ensure_future(heard.wait())
        await asyncio.wait({waiting, stream.task}, timeout=wire.seconds, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        ended = stream.task.done()
        stream.task.cancel()
        (outcome,) = await asyncio.gather(stream.task, return_exceptions=True)
        await wire.connection.settle()  # what was sent before the end belongs to the subscription
    if messages:
        return _judged(asked, stream.id, messages[0])
    if ended and isinstance(outcome, OSError | MCPError):
        return [Finding("acknowledged", f"{LISTEN} failed: {outcome}")]
    return [Finding("acknowledged", f"{LISTEN} was not acknowledged within {wire.seconds:g} s")]


async def _nothing(id_: int, message: dict[str, Any]) -> None:
    """Do nothing: the connection hands over the same messages, and also those that name another subscription."""


def _judged(asked: str, id_: int, message: Mapping[str, Any]) -> list[Finding]:
    """What is wrong with the first message of a subscription."""
    params = as_object(message.get("params"))
    if message.get("method") != ACKNOWLEDGED:
        what = f"the first message of a subscription was {shown(message.get('method'))}"
        return [Finding("acknowledged", what)]
    found: list[Finding] = []
    named: Any = as_object(params.get("_meta")).get(SUBSCRIPTION_ID_META)
    if named != id_ or isinstance(named, bool):
        what = f"the acknowledgement of subscription {id_} carries the subscriptionId {shown(named)}"
        found.append(Finding("subscription-id", what))
    others = [name for name, wanted in as_object(params.get("notifications")).items() if wanted and name != asked]
    if others:
        what = f"a subscription to {asked} was acknowledged with {shown(others[0])}, too"
        found.append(Finding("subscription-filter", what))
    return found
