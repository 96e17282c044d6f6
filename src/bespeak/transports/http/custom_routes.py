"""Custom routes next to the MCP endpoint: requests, responses, and the limits on their bodies."""

import inspect
import json
import logging
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from bespeak.protocol.headers import Headers
from bespeak.protocol.origins import Gate
from bespeak.transports.http.asgi import (
    JSON,
    ASGIApp,
    BodyTooLarge,
    BodyTooSlow,
    BoundedBody,
    Message,
    Receive,
    Scope,
    Send,
    declares_more,
    read_body,
    respond,
)
from bespeak.transports.http.large_bodies import LargeBody
from bespeak.transports.http.refusals import NO_ROOM, RETRY

logger = logging.getLogger("bespeak.http")

Handler = Callable[[Any], Awaitable["HttpResponse | ASGIApp"]]
_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_CLOSE = (b"connection", b"close")
"""The rest of the body is not read."""
_BODILESS = (204, 304)
_PARAMETER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ClientGone(ConnectionError):
    """The client disconnected before it had sent everything."""


class HttpRequest:
    """A request to a custom route."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._body: bytes | None = None
        self.scope = scope
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self.headers = Headers(scope["headers"])
        query: bytes = scope["query_string"]
        self.query_params: Mapping[str, str] = dict(parse_qsl(query.decode("latin-1"), keep_blank_values=True))
        self.path_params: Mapping[str, str] = scope.get("path_params", {})

    async def body(self) -> bytes:
        """Return the whole body. Raises `ConnectionError` if the client disconnects before its end."""
        if self._body is None:
            body = await read_body(self._receive, sys.maxsize)  # what it receives from has the limit
            self._body = bytes(body) if body is not None else None
            if self._body is None:
                raise ClientGone("the client went away")
        return self._body

    async def json(self) -> Any:
        """Return the body, read as JSON. Raises `ValueError` if it is not JSON."""
        return json.loads(await self.body())


class HttpResponse:
    """A response of a custom route: text, bytes, or anything that JSON can represent."""

    def __init__(self, content: Any = b"", status_code: int = 200, headers: Mapping[str, str] | None = None) -> None:
        kind = b"application/json"
        if isinstance(content, bytes):
            kind = b"application/octet-stream"
        elif isinstance(content, str):
            kind = _TEXT[1]
        self.status_code = status_code
        self.body = content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else None
        if self.body is None:
            self.body = json.dumps(content, allow_nan=False).encode()
        given = {name.lower(): value for name, value in (headers or {}).items()}
        self.headers = {"content-type": kind.decode(), **given}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self.headers.items()]
        await respond(send, self.status_code, self.body or b"", *headers)


@dataclass(frozen=True, slots=True)
class Route:
    """One custom route."""

    pattern: re.Pattern[str]
    methods: frozenset[str]
    handler: Handler
    request_type: Callable[[Scope, Receive], Any]
    protected: bool = False
    """Whether `Host` and `Origin` are checked, as for the MCP endpoint."""

    @staticmethod
    def of(path: str, methods: list[str], handler: Handler, *, protected: bool = False) -> "Route":
        """Return a route. Its handler gets the request as the class of its annotation, such as Starlette's `Request`;
        without annotation, as `HttpRequest`."""
        if not path.startswith("/"):
            raise ValueError(f"the path of a route must start with '/'; got {path!r}")
        if isinstance(methods, str) or not methods:
            raise ValueError("a route needs a list of methods, such as ['GET']")
        if re.search(r"[{}]", _PARAMETER.sub("", path)):
            raise ValueError(f"{path!r} is not a valid path: write a parameter as {{name}}; it matches one segment")
        pattern = "".join(
            f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part) for place, part in enumerate(_PARAMETER.split(path))
        )
        wanted = frozenset(method.upper() for method in methods)
        if "GET" in wanted:
            wanted |= {"HEAD"}
        names = _PARAMETER.findall(path)
        if len(set(names)) != len(names):
            raise ValueError(f"{path!r} has two parameters with the same name")
        if not inspect.iscoroutinefunction(handler):
            raise ValueError(f"the handler of {path!r} must be an async function")
        try:
            parameters = list(inspect.signature(handler, eval_str=True).parameters.values())
        except NameError as error:
            raise ValueError(
                f"the annotation of the handler of {path!r} cannot be read: {error}. Import the name at run time, or leave the "
                "parameter without annotation"
            ) from None
        if len(parameters) != 1:
            raise ValueError(f"the handler of {path!r} must take one parameter, the request")
        annotated: Any = parameters[0].annotation
        named = isinstance(annotated, type) and annotated not in (inspect.Parameter.empty, Any, object)
        request_type: Any = annotated if named else HttpRequest
        return Route(re.compile(pattern), wanted, handler, request_type, protected)

    def match(self, path: str) -> dict[str, str] | None:
        """Return the parameters of a path; `None` if the path does not match this route."""
        found = self.pattern.fullmatch(path)
        return found.groupdict() if found else None


Matches = list[tuple[Route, dict[str, str]]]
"""The routes that match the path of a request, each with the parameters in that path."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of every custom route."""

    gate: Gate
    body_limit: int
    body_seconds: float
    large: Callable[[Scope], LargeBody | None]
    """The room for a request's body, if it may be large."""


async def serve_routes(routes: Matches, bounds: Bounds, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request to a path that these routes share. Each has different methods."""
    for route, params in routes:
        if scope["method"] in route.methods:
            problem = bounds.gate.refusal(Headers(scope["headers"])) if route.protected else None
            if problem is not None:
                return await respond(send, 403, problem.encode(), _TEXT)
            return await _serve_bounded(route, params, bounds, scope, receive, send)
    allowed = ", ".join(sorted(frozenset[str]().union(*(route.methods for route, _ in routes)))).encode()
    return await respond(send, 405, b"method not allowed", _TEXT, (b"allow", allowed))


async def _serve_bounded(
    route: Route, params: dict[str, str], bounds: Bounds, scope: Scope, receive: Receive, send: Send
) -> None:
    """Serve a route with bounds on the body, whether the handler reads it or the app that the handler returns."""
    if declares_more(scope["headers"], bounds.body_limit):
        return await respond(send, 413, b"the body is too large", _TEXT, _CLOSE)
    started = False

    async def watched(message: Message) -> None:
        nonlocal started
        started = True
        await send(message)

    large = bounds.large(scope)
    body = BoundedBody(receive, bounds.body_limit, bounds.body_seconds, large)
    try:
        return await _serve_route(route, params, scope, body, watched)
    except (BodyTooLarge, BodyTooSlow) as error:
        if started:  # the response cannot be taken back, only be broken off
            raise
        if isinstance(error, BodyTooLarge):
            return await respond(send, 413, b"the body is too large", _TEXT, _CLOSE)
        if large is not None and large.kept_waiting:
            return await respond(send, 503, NO_ROOM.encode(), _TEXT, _CLOSE, RETRY)
        late = f"the body did not arrive within {bounds.body_seconds:g} s"
        return await respond(send, 408, late.encode(), _TEXT, _CLOSE)
    finally:
        if large is not None:
            large.let_out()


async def _serve_route(route: Route, params: dict[str, str], scope: Scope, receive: Receive, send: Send) -> None:
    """A handler that fails is logged, and the client sees only that."""
    try:
        response = await route.handler(route.request_type({**scope, "path_params": params}, receive))
        if not callable(response):
            raise TypeError(f"a custom route must return HttpResponse or an ASGI app, not {type(response).__name__}")
    except (BodyTooLarge, BodyTooSlow):
        raise
    except Exception as error:
        if isinstance(error, _of_starlette("requests", "ClientDisconnect", ClientGone)):
            return None
        if isinstance(error, _of_starlette("exceptions", "HTTPException")):
            return await _http_error(error, send)
        logger.exception("the custom route %s failed", scope["path"])
        return await respond(send, 500, b"internal server error", _TEXT)
    return await response(scope, receive, send)


def _of_starlette(module: str, name: str, *others: type[Exception]) -> tuple[type[Exception], ...]:
    """A class of Starlette, if Starlette is in use, and others."""
    found: Any = getattr(sys.modules.get(f"starlette.{module}"), name, None)
    return others if found is None else (*others, found)


async def _http_error(error: Any, send: Send) -> None:
    """Send the response that an `HTTPException` of Starlette or FastAPI stands for."""
    more: Mapping[str, str] = error.headers or {}
    detail: Any = b"" if error.status_code in _BODILESS else error.detail
    if isinstance(detail, str):
        detail = detail.encode()
    kind = _TEXT if isinstance(detail, bytes) else JSON
    given = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in more.items()]
    body = detail if isinstance(detail, bytes) else json.dumps(detail).encode()
    await respond(send, error.status_code, body, kind, *given)
