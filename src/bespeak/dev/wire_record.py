"""The messages of a call as they are on the wire, recorded by the transport that sends and receives them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import httpx2

from bespeak.transports.http.client import HttpTransport
from bespeak.transports.interfaces import Ask, Outgoing

LONGEST = 60_000
"""How many characters of a message are shown."""
TITLE = 120


@dataclass(frozen=True, slots=True)
class WireMessage:
    """One message, as the timeline shows it."""

    way: str
    """`sent` or `received`, by the client."""
    kind: str
    """`request`, `response`, `error` or `notification`."""
    title: str
    text: str
    """The message as indented JSON, without the contents of `requestState`."""


Record = Callable[[WireMessage], None]
"""Takes each message, in order."""


class RecordedTransport(HttpTransport):
    """A client's side of HTTP that shows each message to a recorder."""

    def __init__(
        self,
        url: str,
        record: Record,
        *,
        headers: Mapping[str, str],
        http_client: httpx2.AsyncClient,
        unauthorized: str,
    ) -> None:
        super().__init__(url, headers=headers, http_client=http_client, unauthorized=unauthorized)
        self._record = record

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        self._put("sent", request.message)
        response = await super().exchange(request, self._seen(notify), self._asked(ask))
        self._put("received", response)
        return response

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        self._put("sent", message)
        await super().say(message, headers)

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        await super().begin(headers, self._seen(notify), self._asked(ask) or ask)

    def _seen(self, notify: Callable[[bytes], None]) -> Callable[[bytes], None]:
        def seen(message: bytes) -> None:
            self._put("received", message)
            notify(message)

        return seen

    def _asked(self, ask: Ask | None) -> Ask | None:
        if ask is None:
            return None

        def asked(request: dict[str, Any]) -> None:
            self._record(as_shown("received", request))
            ask(request)

        return asked

    def _put(self, way: str, message: bytes) -> None:
        self._record(as_shown(way, parsed(message)))


def parsed(message: bytes) -> Any:
    """Return a message as JSON, or as the text that it is."""
    try:
        return json.loads(message)
    except (ValueError, RecursionError):
        return message.decode(errors="replace")


def as_shown(way: str, message: Any) -> WireMessage:
    """Return a message as the timeline shows it."""
    if not isinstance(message, dict):
        return WireMessage(way, "error", "not a message", str(message)[:LONGEST])
    members = _sealed(cast("dict[str, Any]", message))
    text = json.dumps(members, indent=2, ensure_ascii=False)
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}\n(cut: the message has {len(text):,} characters)"
    kind, title = _described(way, members)
    return WireMessage(way, kind, title[:TITLE], text)


def _sealed(message: dict[str, Any]) -> dict[str, Any]:
    """A message without the contents of its state: they are enough to continue the call, and nobody can read them."""
    for part in ("params", "result"):
        given: Any = message.get(part)
        inner = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        state = inner.get("requestState")
        if isinstance(state, str):
            return {**message, part: {**inner, "requestState": f"(sealed, {len(state):,} characters)"}}
    return message


def _described(way: str, message: Mapping[str, Any]) -> tuple[str, str]:
    method: Any = message.get("method")
    if method is not None:
        params: Any = message.get("params")
        inner = cast("dict[str, Any]", params) if isinstance(params, dict) else {}
        named = next((inner[key] for key in ("name", "uri", "message") if isinstance(inner.get(key), str)), "")
        answered = ", with answers" if "inputResponses" in inner else ""
        return "request" if "id" in message else "notification", f"{method} {named}".strip() + answered
    if "error" in message:
        error: Any = message["error"]
        said: Any = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else error
        return "error", f"error: {said}"
    result: Any = message.get("result")
    members = cast("dict[str, Any]", result) if isinstance(result, dict) else {}
    if way == "sent":  # a client sends responses only to questions that were pushed to it
        action: Any = members.get("action")
        return "response", f"answer: {action}" if isinstance(action, str) else "answer"
    if members.get("resultType") != "input_required":
        return "response", "result" if members.get("isError") is not True else "result: the call failed"
    asked: Any = members.get("inputRequests")
    count = len(cast("dict[str, Any]", asked)) if isinstance(asked, dict) else 0
    return "response", f"input required: {count} question{'s' if count != 1 else ''}"
