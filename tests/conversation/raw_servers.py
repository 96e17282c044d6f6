"""Small servers written by hand, over stdio and HTTP: what each sends is given as raw JSON, right or wrong.

This file is also the server over stdio: `python raw_servers.py CONFIG`. So it imports nothing but the standard library.
"""

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]
MODERN, NOVEMBER, JUNE = "2026-07-28", "2025-11-25", "2025-06-18"
ID, TOKEN, LAST = "$id", "$token", "$last"
"""Placeholders: the id of the request, its progress token, and the token of the request before it."""
CACHED: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
CAPABILITIES: Json = {"tools": {}, "prompts": {}, "resources": {}, "logging": {}}
SCHEMA: Json = {"type": "object"}


def result(**members: Any) -> Json:
    """The response of a call."""
    return {"jsonrpc": "2.0", "id": ID, "result": members}


def done(**members: Any) -> Json:
    """A response that is right, with some members changed; `None` leaves one out."""
    whole = {"resultType": "complete", "content": [{"type": "text", "text": "ok"}], **members}
    return result(**{name: value for name, value in whole.items() if value is not ...})


def failed(code: Any, message: Any = "no", **more: Any) -> Json:
    return {"jsonrpc": "2.0", "id": ID, "error": {"code": code, "message": message, **more}}


def asks(question: Any = None, state: Any = "s", key: str = "q", **members: Any) -> Json:
    """A response that asks one question."""
    asked: Json = {"inputRequests": {key: question or form()}, "requestState": state, **members}
    return result(resultType="input_required", **{name: one for name, one in asked.items() if one is not ...})


def form(field_: Any = None, **schema: Any) -> Json:
    """A form with one field."""
    properties = {"value": {"type": "string"} if field_ is None else field_}
    requested = {"type": "object", "properties": properties, **schema}
    return {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": requested}}


def page(url: str, **more: Any) -> Json:
    return {"method": "elicitation/create", "params": {"mode": "url", "message": "Open", "url": url, **more}}


def pushed(question: Json) -> Json:
    """A question as servers of older revisions send it."""
    return {"jsonrpc": "2.0", "id": "push", **question}


def note(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}


def progress(value: Any, token: Any = TOKEN) -> Json:
    return note("progress", progressToken=token, progress=value)


def log(level: Any = "info", **more: Any) -> Json:
    return note("message", level=level, **({"data": "x"} | more))


@dataclass(frozen=True)
class Raw:
    """A server and the test that meets it."""

    calls: list[list[Any]]
    """What it sends for each call, in order; the last one is repeated. A text is sent as it is."""
    revision: str = MODERN
    capabilities: Json = field(default_factory=lambda: dict(CAPABILITIES))
    tools: list[Json] = field(default_factory=lambda: [{"name": "x", "inputSchema": SCHEMA}])
    test: str = ""
    """What the test says, in YAML; if nothing, it calls a tool and answers questions with a text."""
    profile: str | None = None
    """The client that is played."""
    by_state: bool = False
    """Whether the state tells the call, and not how many calls there were before."""
    http: bool = False
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Headers of the responses to calls."""
    kind: str = "application/json"
    """The content type of the responses to calls."""
    event: str = ""
    """The lines of each event before its data."""
    accepted: int = 202
    """The status of the response to a notification."""
    later_scope: str | None = None
    """The cacheScope of a second page of tools."""
    answers: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    """What it sends for other methods."""
    older: list[str] = field(default_factory=list[str])
    """The older revisions that it says it speaks."""
    agreed: str | None = None
    """The revision that its handshake agrees to."""
    answers_notifications: bool = False
    shuffles: bool = False
    """Whether its tools come in another order each time."""
    gate: Json = field(default_factory=dict[str, Any])
    """What stands before it over HTTP; see `gates`."""

    @property
    def whole_test(self) -> str:
        asks_ = any(part in json.dumps(self.calls) for part in ("inputRequests", "requestedSchema"))
        return self.test or ("tool: x, inputResponses: [{otherwise: y}]" if asks_ else "tool: x")


def said(*messages: Any, **more: Any) -> Raw:
    """A server that sends these for each call."""
    return Raw([list(messages)], **more)


class Script:
    """What a raw server answers."""

    def __init__(self, raw: Json) -> None:
        self._raw = raw
        self._calls = 0
        self._last: Any = None

    @property
    def answers_notifications(self) -> bool:
        return self._raw["answers_notifications"]

    def messages(self, request: Json) -> list[str]:
        """All that is sent for a request, as texts."""
        raw, method, id_ = self._raw, request["method"], request["id"]
        old = raw["revision"] != MODERN
        if method in raw["answers"]:
            return filled(raw["answers"][method], id_)
        if method == "server/discover":
            whole = {**CACHED, "supportedVersions": [MODERN, *raw["older"]], "capabilities": raw["capabilities"]}
            return filled([failed(-32601) if old else result(**whole)], id_)
        if method == "initialize":
            info = {"name": "raw", "version": "1"}
            agreed = {
                "protocolVersion": raw["agreed"] or raw["revision"],
                "capabilities": raw["capabilities"],
                "serverInfo": info,
            }
            return filled([result(**agreed)], id_)
        if method == "tools/list":
            more = {} if old else dict(CACHED)
            if raw["later_scope"] is not None:
                more |= {"cacheScope": raw["later_scope"]} if "cursor" in request["params"] else {"nextCursor": "2"}
            if raw["shuffles"]:
                raw["tools"].reverse()
            later = "cursor" in request.get("params", {})
            return filled([result(**more, tools=[] if later else raw["tools"])], id_)
        if method == "prompts/list":
            return filled([result(**({} if old else CACHED), prompts=[])], id_)
        if method in ("ping", "logging/setLevel"):
            return filled([result()], id_)
        called = int("requestState" in request["params"]) if raw["by_state"] else self._calls
        messages = raw["calls"][min(called, len(raw["calls"]) - 1)]
        self._calls += 1
        last, self._last = self._last, id_
        return filled(messages, id_, last)


def filled(messages: list[Any], id_: Any, last: Any = None) -> list[str]:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in messages]
    for place, value in ((ID, id_), (TOKEN, id_), (LAST, last)):
        texts = [text.replace(json.dumps(place), json.dumps(value)) for text in texts]
    return texts


def serve(script: Script) -> None:
    """Answer over stdio. A question is sent, and its answer awaited, before anything else is."""
    for line in sys.stdin:
        request = json.loads(line)
        if "method" not in request or "id" not in request:
            if script.answers_notifications:
                print(json.dumps({**failed(-32600), "id": None}), flush=True)
            continue
        for text in script.messages(request):
            if text == "$exit":
                return
            print(text, flush=True)
            if '"id": "push"' in text:
                while "method" in json.loads(sys.stdin.readline()):
                    pass


def written(raw: Raw) -> str:
    """The config of a server over stdio."""
    return json.dumps(asdict(raw))


if __name__ == "__main__":
    serve(Script(json.loads(Path(sys.argv[1]).read_text())))
