"""The shortest way from an HTTP request to a tool: for calls that send no notifications and that nobody follows.

Nearly all calls are like that. Everything else takes the general way through `Dispatch`, and so does everything that is wrong,
before anything has been done. Both ways give the same bytes, which tests compare.
"""

import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from bespeak.protocol.headers import Headers, is_plain
from bespeak.protocol.legacy import result_at
from bespeak.protocol.messages import LegacyRequest, Meta, Request, RequestId, read_meta, write_result
from bespeak.protocol.reserved_meta import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    LOG_LEVEL_META_KEY,
    PROTOCOL_VERSION_META_KEY,
)
from bespeak.protocol.versions import LATEST_MODERN_VERSION
from bespeak.server.call_log import SLOW_SECONDS, clock, log_result
from bespeak.server.call_log import logger as call_logger
from bespeak.server.calls.body import run_plain, run_straight
from bespeak.server.calls.by_hand import asks_by_hand
from bespeak.server.calls.serving import CallServing
from bespeak.server.dispatch import Dispatch
from bespeak.server.features.registered import Registry
from bespeak.server.features.tools import Tool
from bespeak.server.incoming import Incoming
from bespeak.server.tracing import is_tracing
from bespeak.transports.interfaces import StraightCall, WrittenResponse

_METHOD = "tools/call"
_METHOD_HEADER = _METHOD.encode()
_VERSION_HEADER = LATEST_MODERN_VERSION.encode()
_IDS = frozenset({int, str})
_TOKENS = frozenset({int, str, type(None)})
_DICTS = frozenset({dict})
_ABSENT: Any = None
_NO_HEADER = b"\n"
"""What no header can be, for names that are encoded in headers."""


class StraightCalls:
    """The straight calls of one server."""

    def __init__(self, tools: Registry[Tool], dispatch: Dispatch, serving: CallServing) -> None:
        self._tools = tools
        self._dispatch = dispatch
        self._serving = serving
        self._name_headers: dict[str, bytes] = {}

    def begin(self, message: Any, headers: Headers) -> StraightCall | None:
        """Return a straight call, ready to be run; `None` for any other message."""
        envelope: dict[str, Any] = message
        if type(message) is not dict or envelope.get("method") != _METHOD or envelope.get("jsonrpc") != "2.0":
            return None
        params = envelope.get("params", _ABSENT)
        sent: dict[str, Any] = params
        if type(params) is not dict or type(sent.get("name")) is not str:
            return None
        tool = self._tools.get(sent["name"])
        if tool is None or self._is_watched():
            return None
        straight = tool.straight
        if not straight and not tool.silent:
            return None
        id_ = envelope.get("id", _ABSENT)
        if (
            type(id_) not in _IDS
            or type(sent.get("_meta")) is not dict
            or type(sent.get("arguments")) is not dict
            or not self._is_ordinary(sent["_meta"])
            or not self._is_routed(tool.name, headers)
        ):
            return None
        if not straight:
            return StraightCall(self._round(tool, sent, id_, headers), id_)
        if "requestState" in sent or "inputResponses" in sent:
            return None
        return StraightCall(self._call(tool, sent, id_, headers), id_)

    def older(
        self, request: LegacyRequest, version: str, headers: Headers
    ) -> Coroutine[Any, Any, WrittenResponse | LegacyRequest] | None:
        """Return a call of a client of an older revision that never waits, ready to be run; `None` for any other request.

        Nobody can cancel it, and nothing is sent before its response. It returns the request, for the general way to go on
        with, if the tool asks by hand although its annotation does not say so.
        """
        name, sent = request.params.get("name"), request.params.get("arguments", _ABSENT)
        tool = self._tools.get(name) if request.method == _METHOD and type(name) is str else None
        if tool is None or type(sent) is not dict or not tool.ends_at_once or self._is_watched():
            return None
        return self._older(tool, request, version, headers)

    @staticmethod
    def _is_ordinary(meta: dict[str, Any]) -> bool:
        """Whether the metadata of a request is valid, and asks for nothing that a straight call could give."""
        capabilities: Any = meta.get(CLIENT_CAPABILITIES_META_KEY)
        if (
            meta.get(PROTOCOL_VERSION_META_KEY) != LATEST_MODERN_VERSION
            or type(capabilities) is not dict
            or LOG_LEVEL_META_KEY in meta
            or type(meta.get("progressToken")) not in _TOKENS
        ):
            return False
        declared: dict[str, Any] = meta[CLIENT_CAPABILITIES_META_KEY]
        return _DICTS.issuperset(map(type, declared.values()))

    def _is_routed(self, name: str, headers: Headers) -> bool:
        """Whether the routing headers are there once each, and agree with the body."""
        last = headers.last
        wanted = self._name_headers.get(name)
        if wanted is None:
            wanted = self._name_headers[name] = name.encode() if is_plain(name) else _NO_HEADER
        return (
            last.get(b"mcp-name") == wanted
            and last.get(b"mcp-method") == _METHOD_HEADER
            and last.get(b"mcp-protocol-version") == _VERSION_HEADER
            and len(last) == len(headers.raw)
        )

    def _is_watched(self) -> bool:
        """Whether somebody follows every call: hooks, bounds, spans, or a log of everything."""
        return (
            bool(self._dispatch.hooks or self._serving.hooks)
            or self._serving.bounded
            or is_tracing()
            or call_logger.isEnabledFor(logging.DEBUG)
        )

    async def _call(self, tool: Tool, params: dict[str, Any], id_: RequestId, headers: Headers) -> WrittenResponse:
        began = clock()
        sent: dict[str, Any] = params["arguments"]
        try:
            if tool.plain:
                result = await run_plain(tool, sent, raise_exceptions=False)
                if asks_by_hand(result):
                    result = await self._serving.ask(tool, sent, self._incoming(params, id_, headers), result)
            else:
                result = await run_straight(tool, sent, None, raise_exceptions=False)
            if result.get("isError") or clock() - began > SLOW_SECONDS:
                log_result(self._incoming(params, id_, headers), result, began)
            return _written(tool, id_, result, self._dispatch.stamped)
        except Exception as error:  # noqa: BLE001 - the last edge, as in `Dispatch`
            return self._dispatch.failed(self._incoming(params, id_, headers), error, began)

    async def _older(
        self, tool: Tool, request: LegacyRequest, version: str, headers: Headers
    ) -> WrittenResponse | LegacyRequest:
        began = clock()
        sent: dict[str, Any] = request.params["arguments"]
        try:
            run = (
                run_plain(tool, sent, raise_exceptions=False)
                if tool.plain
                else run_straight(tool, sent, None, raise_exceptions=False)
            )
            result = await run
            if asks_by_hand(result):
                return request._replace(by_hand=result)
            if result.get("isError") or clock() - began > SLOW_SECONDS:
                log_result(self._incoming_older(request, version, headers), result, began)
            return _written(tool, request.id, result, functools.partial(result_at, version, _METHOD))
        except Exception as error:  # noqa: BLE001 - the last edge, as in `Dispatch`
            return self._dispatch.failed(self._incoming_older(request, version, headers), error, began)

    async def _round(self, tool: Tool, params: dict[str, Any], id_: RequestId, headers: Headers) -> WrittenResponse:
        """Run one round of a call that may ask."""
        began = clock()
        meta: dict[str, Any] = params["_meta"]
        info = meta.get(CLIENT_INFO_META_KEY)
        read = Meta(
            LATEST_MODERN_VERSION,
            meta[CLIENT_CAPABILITIES_META_KEY],
            info if type(info) is dict else None,
            None,
            meta.get("progressToken"),
            meta,
        )
        incoming = Incoming(Request(id_, _METHOD, params, read), _no_notifications, headers)
        try:
            result = await self._serving.serve(tool, params["arguments"], incoming)
            log_result(incoming, result, began)
            return self._dispatch.written(incoming, result)
        except Exception as error:  # noqa: BLE001 - the last edge, as in `Dispatch`
            return self._dispatch.failed(incoming, error, began)

    @staticmethod
    def _incoming(params: dict[str, Any], id_: RequestId, headers: Headers) -> Incoming:
        """The request as the general way sees it."""
        return Incoming(Request(id_, _METHOD, params, read_meta(params)), _no_notifications, headers)

    @staticmethod
    def _incoming_older(request: LegacyRequest, version: str, headers: Headers) -> Incoming:
        meta = Meta(version, {}, None, None, None, {})
        return Incoming(Request(request.id, request.method, request.params, meta), _no_notifications, headers)


def _written(
    tool: Tool, id_: RequestId, result: dict[str, Any], finish: Callable[[dict[str, Any]], dict[str, Any]]
) -> WrittenResponse:
    """Return the response with a result. What JSON cannot carry is a failure of the tool, as in `Dispatch`."""
    try:
        return WrittenResponse(write_result(id_, finish(result)))
    except ValueError as error:
        return WrittenResponse(write_result(id_, finish(tool.failure(error))))


def _no_notifications(_notification: bytes) -> None:
    """Nobody in such a call has a context with which to send one."""
