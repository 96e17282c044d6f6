"""The wire of a small server at 2026-07-28, without any framework: JSON lines on stdin and stdout, raw dicts inside.

What is the same for every till: the envelope, `_meta`, discovery, the list of tools. What a call does is up to the server.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

REVISION = "2026-07-28"
PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602
MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32021, -32022
META = "io.modelcontextprotocol/"

Json = dict[str, Any]


class Refused(Exception):
    """The request is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Json | None = None) -> None:
        super().__init__(message)
        self.error: Json = {"code": code, "message": message} | ({} if data is None else {"data": data})


class Failed(Exception):
    """The call ends with a result that is an error, and this text."""


@dataclass(frozen=True, slots=True)
class Call:
    """A `tools/call`, its envelope read and nothing else."""

    tool: str
    arguments: Json
    responses: Any
    """The `inputResponses` as they came; `None` if there were none."""
    state: str | None
    capabilities: Json
    """What the client declared in this request."""


class Server(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def tools(self) -> Sequence[Json]:
        """As `tools/list` tells them."""
        ...

    def call(self, call: Call) -> Json | None:
        """The result. `None`: this request is never answered."""
        ...


def told(text: str, *, structured: Json | None = None, is_error: bool = False) -> Json:
    """The result of a call that is over."""
    result: Json = {"resultType": "complete", "content": [{"type": "text", "text": text}], "isError": is_error}
    return result if structured is None else result | {"structuredContent": structured}


def as_object(value: Any) -> Json:
    """The value if it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def serve(server: Server) -> None:
    """Answer what comes on stdin, one after another, until it ends."""
    for line in sys.stdin.buffer:
        response = respond(server, line)
        if response is not None:
            print(json.dumps(response), flush=True)


def respond(server: Server, line: bytes) -> Json | None:
    """The response to a line; `None` if there is none."""
    try:
        message: Any = json.loads(line)
    except ValueError:
        return {"jsonrpc": "2.0", "error": Refused(PARSE_ERROR, "the line is no JSON").error}
    request = as_object(message)
    id_ = request.get("id")
    if "id" not in request and "method" in request:
        return None
    if type(id_) not in (str, int) or not isinstance(request.get("method"), str):
        return {"jsonrpc": "2.0", "error": Refused(INVALID_REQUEST, "the line is no request").error}
    try:
        result = _result(server, request["method"], as_object(request.get("params")))
    except Refused as refusal:
        return {"jsonrpc": "2.0", "id": id_, "error": refusal.error}
    if result is None:
        return None
    info = {"name": server.name, "version": "1.0.0"}
    return {"jsonrpc": "2.0", "id": id_, "result": result | {"_meta": {f"{META}serverInfo": info}}}


def _result(server: Server, method: str, params: Json) -> Json | None:
    capabilities = _declared(params)
    cached: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    if method == "server/discover":
        return cached | {"supportedVersions": [REVISION], "capabilities": {"tools": {}}}
    if method == "tools/list":
        return cached | {"tools": list(server.tools)}
    if method != "tools/call":
        raise Refused(METHOD_NOT_FOUND, f"unknown method {method!r}")
    try:
        return server.call(_call(params, capabilities))
    except Failed as failure:
        return told(str(failure), is_error=True)


def _declared(params: Json) -> Json:
    """The capabilities of the client, in a request of our revision."""
    meta = as_object(params.get("_meta"))
    version, capabilities = meta.get(f"{META}protocolVersion"), meta.get(f"{META}clientCapabilities")
    if not isinstance(version, str) or not isinstance(capabilities, dict):
        raise Refused(INVALID_PARAMS, f"_meta lacks {META}protocolVersion or {META}clientCapabilities")
    if version != REVISION:
        raise Refused(
            UNSUPPORTED_VERSION, f"only {REVISION} is spoken here", {"supported": [REVISION], "requested": version}
        )
    return cast("Json", capabilities)


def _call(params: Json, capabilities: Json) -> Call:
    tool, arguments, state = params.get("name"), params.get("arguments", {}), params.get("requestState")
    if not isinstance(tool, str) or not isinstance(arguments, dict):
        raise Refused(INVALID_PARAMS, "name is a string, and arguments are an object")
    if state is not None and not isinstance(state, str):
        raise Refused(INVALID_PARAMS, "requestState is a string")
    return Call(tool, cast("Json", arguments), params.get("inputResponses"), state, capabilities)
