"""JSON-RPC messages: reading requests, notifications and responses from bytes, and writing them as bytes."""

import json
from typing import Any, NamedTuple, cast

from pydantic_core import from_json, to_json

from bespeak.protocol.capabilities import CLIENT_CAPABILITIES
from bespeak.protocol.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    MCPError,
)
from bespeak.protocol.reserved_meta import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from bespeak.protocol.versions import is_modern

RequestId = str | int
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_ABSENT: Any = None
MOST_IN_A_BATCH = 100
ONE_AT_A_TIME = "one JSON-RPC message at a time: the body must be an object"
NOT_FOR_A_BATCH = "this request must not be part of a batch; send it alone"
LOG_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Meta(NamedTuple):
    """The metadata of a request, from `params._meta`."""

    protocol_version: str
    capabilities: dict[str, Any]
    client_info: dict[str, Any] | None
    log_level: str | None
    progress_token: str | int | None
    raw: dict[str, Any]


class Request(NamedTuple):
    """A modern request: it carries its metadata itself."""

    id: RequestId
    method: str
    params: dict[str, Any]
    meta: Meta


class LegacyRequest(NamedTuple):
    """A request of an older client, without a protocol version in `_meta`: the `initialize` request has agreed on one."""

    id: RequestId
    method: str
    params: dict[str, Any]
    by_hand: Any = None
    """What its tool asks by hand, if the tool has run already and turned out to ask."""


class Notification(NamedTuple):
    """A message that expects no response."""

    method: str
    params: dict[str, Any]


class Response(NamedTuple):
    """An older client's response to a request that the server sent to it."""

    id: RequestId | None
    result: Any
    error: Any
    """`None` if the client sent a result."""


class Batch(NamedTuple):
    """Several messages in one array, which some older revisions allow."""

    messages: "tuple[Message | MalformedMessage, ...]"


class MalformedMessage(Exception):
    """A message that cannot be processed: the error to respond with, and the id of the message if it was readable."""

    def __init__(self, error: MCPError, id: RequestId | None) -> None:
        self.error = error
        self.id = id
        super().__init__(error.message)


Message = Request | LegacyRequest | Notification | Response


def read_message(raw: bytes | bytearray) -> Message | Batch:
    """Read one message or a batch. Raises `MalformedMessage`."""
    return message_of(read_json(raw))


def read_json(raw: bytes | bytearray) -> Any:
    """Return the JSON of a message. Raises `MalformedMessage`."""
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError:
        raise MalformedMessage(MCPError(PARSE_ERROR, "the message is not valid JSON"), None) from None


def message_of(message: Any) -> Message | Batch:
    """Return the message or the batch that JSON stands for. Raises `MalformedMessage`."""
    # Every request passes here and below: `type(...) is dict` takes less than `isinstance` and a cast.
    body: dict[str, Any] = message
    if type(message) is dict:
        return _read(body)
    if not isinstance(message, list):
        raise no_batch()
    messages = cast("list[Any]", message)
    if not messages or len(messages) > MOST_IN_A_BATCH:
        what = (
            "this batch is empty"
            if not messages
            else f"a batch, where allowed, may contain at most {MOST_IN_A_BATCH} messages"
        )
        raise MalformedMessage(MCPError(INVALID_REQUEST, f"{ONE_AT_A_TIME}; {what}"), None)
    return Batch(tuple(map(_read_one, messages)))


def no_batch() -> MalformedMessage:
    """Return the error for a batch where batches are not allowed."""
    return MalformedMessage(MCPError(INVALID_REQUEST, ONE_AT_A_TIME), None)


def not_for_a_batch(message: Message) -> bool:
    """Return whether a message must not be part of a batch, even where batches are allowed."""
    return isinstance(message, Request) or (isinstance(message, LegacyRequest) and message.method == "initialize")


def _read_one(message: Any) -> "Message | MalformedMessage":
    if not isinstance(message, dict):
        return MalformedMessage(MCPError(INVALID_REQUEST, "each message of a batch must be an object"), None)
    try:
        return _read(cast("dict[str, Any]", message))
    except MalformedMessage as malformed:
        return malformed


def _read(message: dict[str, Any]) -> Message:
    id_: Any = message.get("id")
    known: RequestId | None = id_ if type(id_) is int or type(id_) is str else None
    method: Any = message.get("method")
    params: Any = message.get("params", {})
    sent: dict[str, Any] = params
    if message.get("jsonrpc") != "2.0":
        raise MalformedMessage(MCPError(INVALID_REQUEST, 'the message must contain "jsonrpc": "2.0"'), known)
    if not isinstance(method, str):
        if method is None and ("result" in message or "error" in message):
            return Response(known, message.get("result"), message.get("error"))
        raise MalformedMessage(MCPError(INVALID_REQUEST, "the message has no method"), known)
    if "id" not in message:
        return Notification(method, sent if type(params) is dict else {})
    if type(params) is not dict:
        raise MalformedMessage(MCPError(INVALID_PARAMS, "params must be an object"), known)
    if known is None:
        raise MalformedMessage(MCPError(INVALID_REQUEST, "the id must be a string or an integer"), None)
    meta: Any = sent.get("_meta")
    if type(meta) is not dict or PROTOCOL_VERSION_META_KEY not in meta:  # older clients may send a `_meta` without it
        return LegacyRequest(known, method, sent)
    try:
        return Request(known, method, sent, read_meta(sent))
    except MCPError as error:
        raise MalformedMessage(error, known) from None


def is_id(value: Any) -> bool:
    """Return whether a value is a valid request id."""
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def read_meta(params: dict[str, Any]) -> Meta:
    """Read the metadata that every modern request must carry. Raises `MCPError`.

    Whether the version is supported is checked later. Members that a future revision may define differently are checked
    for supported versions only.
    """
    raw = params.get("_meta", _ABSENT)
    meta: dict[str, Any] = raw
    if type(raw) is not dict:
        raise MCPError(INVALID_PARAMS, "params._meta is missing; it must contain the protocol version of the request")
    version = meta.get(PROTOCOL_VERSION_META_KEY)
    if not isinstance(version, str):
        raise MCPError(INVALID_PARAMS, f"params._meta must contain {PROTOCOL_VERSION_META_KEY}, a string")
    capabilities = meta.get(CLIENT_CAPABILITIES_META_KEY, _ABSENT)
    declared: dict[str, Any] = capabilities
    if type(capabilities) is not dict:
        raise MCPError(INVALID_PARAMS, f"params._meta must contain {CLIENT_CAPABILITIES_META_KEY}, an object")
    for name, value in declared.items():
        if not isinstance(value, dict) and value is not None and name in CLIENT_CAPABILITIES:
            raise MCPError(INVALID_PARAMS, f"{CLIENT_CAPABILITIES_META_KEY}: {name} must be an object")
    level = meta.get(LOG_LEVEL_META_KEY)
    if level is not None and level not in LOG_LEVELS and is_modern(version):
        raise MCPError(INVALID_PARAMS, f"{LOG_LEVEL_META_KEY} must be one of {', '.join(LOG_LEVELS)}")
    token = meta.get("progressToken")
    if token is not None and not is_id(token) and is_modern(version):
        raise MCPError(INVALID_PARAMS, "progressToken must be a string or an integer")
    info = meta.get(CLIENT_INFO_META_KEY, _ABSENT)
    return Meta(version, declared, info if type(info) is dict else None, level, token, meta)


def _write(message: dict[str, Any]) -> bytes:
    """Write a message as JSON. NaN and infinity, which JSON does not know, become null."""
    return to_json(message, inf_nan_mode="null")


def write_result(id_: RequestId, result: dict[str, Any]) -> bytes:
    """Write a response with a result."""
    return to_json({"jsonrpc": "2.0", "id": id_, "result": result}, inf_nan_mode="null")  # as `_write`


def write_result_alone(result: dict[str, Any]) -> bytes:
    """Write a result that several responses have: see `write_written_result`."""
    return _write(result)


def write_written_result(id_: RequestId, result: bytes) -> bytes:
    """Write a response with a result that is written already."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (to_json(id_), result)


def write_error(id_: RequestId | None, error: MCPError) -> bytes:
    """Write a response with an error; without an id if the request's id was not readable."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "error": error.body()}
    if id_ is not None:
        message["id"] = id_
    return _write(message)


def write_notification(method: str, params: dict[str, Any]) -> bytes:
    """Write a notification."""
    return _write({"jsonrpc": "2.0", "method": method, "params": params})


def write_push(id_: RequestId, request: dict[str, Any]) -> bytes:
    """Write a request that a server sends to an older client."""
    return _write({"jsonrpc": "2.0", "id": id_, **request})


def write_request(id_: RequestId, method: str, params: dict[str, Any]) -> bytes:
    """Write a client's request. Raises `TypeError` if the params are not JSON; NaN is not."""
    try:
        return _encode({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise TypeError(
            _unwritable(method, params) or f"the params of {method} {_CANNOT_BE_SENT} them ({error})"
        ) from None


_CANNOT_BE_SENT = "cannot be sent: JSON cannot carry"


def _unwritable(method: str, params: dict[str, Any]) -> str | None:
    """Which argument of a request cannot be written as JSON, and why; `None` if it is none of them."""
    arguments = params.get("arguments")
    for name, value in cast("dict[Any, Any]", arguments).items() if isinstance(arguments, dict) else ():
        try:
            _encode({name: value}).encode()
        except (TypeError, ValueError, RecursionError) as error:
            return f"the argument {name!r} of {method} {_CANNOT_BE_SENT} it ({error})"
    return None
