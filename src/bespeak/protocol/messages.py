"""JSON-RPC envelopes: from bytes to one request, and from a result, an error or a notification to bytes."""

import json
from typing import Any, NamedTuple, cast

from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from pydantic_core import from_json, to_json

from bespeak.protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    MCPError,
)
from bespeak.protocol.versions import is_modern

RequestId = str | int
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
CAPABILITIES = ("elicitation", "sampling", "roots", "extensions", "experimental")
KEY_META = "bespeak/key"
"""Where a pushed question carries the key it would have in a round."""
MOST_IN_A_BATCH = 100
ONE_AT_A_TIME = "one JSON-RPC message at a time: the body must be an object"
NOT_FOR_A_BATCH = "this request must come alone, and not in a batch"
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Meta(NamedTuple):
    """What a request says about its sender, in `params._meta`."""

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: dict[str, Any] | None
    log_level: str | None
    progress_token: str | int | None
    raw: dict[str, Any]


class Request(NamedTuple):
    """One request, its envelope checked and its metadata read."""

    id: RequestId
    method: str
    params: dict[str, Any]
    meta: Meta


class Bare(NamedTuple):
    """A request that does not say which revision it speaks: a handshake has said so, or is one."""

    id: RequestId
    method: str
    params: dict[str, Any]


class Notification(NamedTuple):
    """One message that wants no answer."""

    method: str
    params: dict[str, Any]


class Response(NamedTuple):
    """An older client's answer to a request that was pushed to it."""

    id: RequestId | None
    result: Any
    error: Any
    """`None` unless the client refused."""


class Batch(NamedTuple):
    """Several messages at once, which some older revisions allow."""

    messages: "tuple[Message | Malformed, ...]"


class Malformed(Exception):
    """A message that cannot be served: the error to answer with, and the id if it could be read."""

    def __init__(self, error: MCPError, id: RequestId | None) -> None:
        self.error = error
        self.id = id
        super().__init__(error.message)


Message = Request | Bare | Notification | Response


def read_message(raw: bytes | bytearray) -> Message | Batch:
    """The message in some bytes. Raises `Malformed`."""
    try:
        message = from_json(raw, allow_inf_nan=False)
    except ValueError:
        raise Malformed(MCPError(PARSE_ERROR, "the message is not valid JSON"), None) from None
    if isinstance(message, dict):
        return _read(cast("dict[str, Any]", message))
    if not isinstance(message, list):
        raise no_batch()
    messages = cast("list[Any]", message)
    if not messages or len(messages) > MOST_IN_A_BATCH:
        what = (
            "this batch is empty"
            if not messages
            else f"and a batch, where it is allowed, holds {MOST_IN_A_BATCH} at most"
        )
        raise Malformed(MCPError(INVALID_REQUEST, f"{ONE_AT_A_TIME}; {what}"), None)
    return Batch(tuple(map(_read_one, messages)))


def no_batch() -> Malformed:
    """The answer to several messages at once where that is not allowed."""
    return Malformed(MCPError(INVALID_REQUEST, ONE_AT_A_TIME), None)


def not_for_a_batch(message: Message) -> bool:
    """Whether a message must come alone, where batches are allowed."""
    return isinstance(message, Request) or (isinstance(message, Bare) and message.method == "initialize")


def _read_one(message: Any) -> "Message | Malformed":
    if not isinstance(message, dict):
        return Malformed(MCPError(INVALID_REQUEST, "each message of a batch must be an object"), None)
    try:
        return _read(cast("dict[str, Any]", message))
    except Malformed as malformed:
        return malformed


def _read(message: dict[str, Any]) -> Message:
    id_: Any = message.get("id")
    known = id_ if is_id(id_) else None
    method: Any = message.get("method")
    params: Any = message.get("params", {})
    if message.get("jsonrpc") != "2.0":
        raise Malformed(MCPError(INVALID_REQUEST, 'the message must say "jsonrpc": "2.0"'), known)
    if not isinstance(method, str):
        if method is None and ("result" in message or "error" in message):
            return Response(known, message.get("result"), message.get("error"))
        raise Malformed(MCPError(INVALID_REQUEST, "the message has no method"), known)
    if "id" not in message:
        return Notification(method, cast("dict[str, Any]", params) if isinstance(params, dict) else {})
    if not isinstance(params, dict):
        raise Malformed(MCPError(INVALID_PARAMS, "params must be an object"), known)
    if known is None:
        raise Malformed(MCPError(INVALID_REQUEST, "the id must be a string or an integer"), None)
    sent = cast("dict[str, Any]", params)
    if not _says_version(sent):
        return Bare(known, method, sent)
    try:
        return Request(known, method, sent, read_meta(sent))
    except MCPError as error:
        raise Malformed(error, known) from None


def _says_version(params: dict[str, Any]) -> bool:
    """Whether a request names its revision itself; a bare `_meta` is no sign of that."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta


def is_id(value: Any) -> bool:
    """Whether a value may be the id of a request."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def read_meta(params: dict[str, Any]) -> Meta:
    """The metadata every modern request must carry. Raises `MCPError`.

    Whether the version is spoken here is another question, asked later: what a future revision may say otherwise is not
    held against it.
    """
    raw = params.get("_meta")
    if not isinstance(raw, dict):
        raise MCPError(INVALID_PARAMS, "params._meta is missing; every request carries its protocol version there")
    meta = cast("dict[str, Any]", raw)
    version = meta.get(PROTOCOL_VERSION_META_KEY)
    if not isinstance(version, str):
        raise MCPError(INVALID_PARAMS, f"params._meta must name its {PROTOCOL_VERSION_META_KEY}")
    capabilities = meta.get(CLIENT_CAPABILITIES_META_KEY)
    if not isinstance(capabilities, dict):
        raise MCPError(INVALID_PARAMS, f"params._meta must hold {CLIENT_CAPABILITIES_META_KEY}, an object")
    declared = cast("dict[str, Any]", capabilities)
    for name, value in declared.items():
        if not isinstance(value, dict) and value is not None and name in CAPABILITIES:
            raise MCPError(INVALID_PARAMS, f"{CLIENT_CAPABILITIES_META_KEY}: {name} must be an object")
    level = meta.get(LOG_LEVEL_META_KEY)
    if level is not None and level not in LOG_LEVELS and is_modern(version):
        raise MCPError(INVALID_PARAMS, f"{LOG_LEVEL_META_KEY} must be one of {', '.join(LOG_LEVELS)}")
    token = meta.get("progressToken")
    if token is not None and not is_id(token) and is_modern(version):
        raise MCPError(INVALID_PARAMS, "progressToken must be a string or an integer")
    info = meta.get(CLIENT_INFO_META_KEY)
    client_info = cast("dict[str, Any]", info) if isinstance(info, dict) else None
    return Meta(version, declared, client_info, level, token, meta)


def _write(message: dict[str, Any]) -> bytes:
    """A message as JSON, which has no NaN: such a number is null."""
    return to_json(message, inf_nan_mode="null")


def write_result(id_: RequestId, result: dict[str, Any]) -> bytes:
    """A successful response."""
    return _write({"jsonrpc": "2.0", "id": id_, "result": result})


def write_error(id_: RequestId | None, error: MCPError) -> bytes:
    """An error response; without an id when the request's could not be read."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "error": error.body()}
    if id_ is not None:
        message["id"] = id_
    return _write(message)


def write_notification(method: str, params: dict[str, Any]) -> bytes:
    """A notification."""
    return _write({"jsonrpc": "2.0", "method": method, "params": params})


def write_push(id_: RequestId, request: dict[str, Any]) -> bytes:
    """A question that is pushed to a client."""
    return _write({"jsonrpc": "2.0", "id": id_, **request})


def write_request(id_: RequestId, method: str, params: dict[str, Any]) -> bytes:
    """A request, as a client sends it. Raises `TypeError` or `ValueError` for what JSON cannot carry, NaN included."""
    return _encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode()
