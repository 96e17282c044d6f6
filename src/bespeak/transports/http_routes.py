"""Routes of an author's own beside the MCP endpoint."""

import inspect
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from bespeak.protocol.headers import Headers
from bespeak.transports.asgi import ASGIApp, BodyTooLarge, Receive, Scope, Send, read_body, respond
from bespeak.transports.transport import MESSAGE_LIMIT

logger = logging.getLogger("bespeak.http")

Handler = Callable[[Any], Awaitable["HttpResponse | ASGIApp"]]
_TEXT = (b"content-type", b"text/plain; charset=utf-8")
_PARAMETER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class ClientGone(ConnectionError):
    """The client went away before it had sent everything."""


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
        """The whole body. Raises `ConnectionError` if the client goes away before its end."""
        if self._body is None:
            self._body = await read_body(self._receive, MESSAGE_LIMIT)
            if self._body is None:
                raise ClientGone("the client went away")
        return self._body

    async def json(self) -> Any:
        return json.loads(await self.body())


class HttpResponse:
    """A response of a custom route: text, bytes, or anything JSON can carry."""

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
    """One path of an author's own."""

    pattern: re.Pattern[str]
    methods: frozenset[str]
    handler: Handler
    request_type: Callable[[Scope, Receive], Any]

    @staticmethod
    def of(path: str, methods: list[str], handler: Handler) -> "Route":
        """A route. The request comes as the class its handler's parameter is annotated with: `HttpRequest` if with none,
        and Starlette's `Request` if that is what it says."""
        if not path.startswith("/"):
            raise ValueError(f"a route's path must start with '/', unlike {path!r}")
        if isinstance(methods, str) or not methods:
            raise ValueError("a route needs a list of methods, such as ['GET']")
        if re.search(r"[{}]", _PARAMETER.sub("", path)):
            raise ValueError(f"{path!r}: a parameter of a path is written {{name}} and stands for one segment")
        pattern = "".join(
            f"(?P<{part}>[^/]+)" if place % 2 else re.escape(part) for place, part in enumerate(_PARAMETER.split(path))
        )
        wanted = frozenset(method.upper() for method in methods)
        if "GET" in wanted:
            wanted |= {"HEAD"}
        names = _PARAMETER.findall(path)
        if len(set(names)) != len(names):
            raise ValueError(f"{path!r} has two parameters of one name")
        if not inspect.iscoroutinefunction(handler):
            raise ValueError(f"the handler of {path!r} must be an async function")
        try:
            parameters = list(inspect.signature(handler, eval_str=True).parameters.values())
        except NameError as error:
            raise ValueError(
                f"the handler of {path!r}: {error}; import it where it is there at run time, or leave the parameter unannotated"
            ) from None
        if len(parameters) != 1:
            raise ValueError(f"the handler of {path!r} must take one parameter, the request")
        annotated: Any = parameters[0].annotation
        named = isinstance(annotated, type) and annotated not in (inspect.Parameter.empty, Any, object)
        request_type: Any = annotated if named else HttpRequest
        return Route(re.compile(pattern), wanted, handler, request_type)

    def match(self, path: str) -> dict[str, str] | None:
        """The parameters of a path; `None` if it is not this route's."""
        found = self.pattern.fullmatch(path)
        return found.groupdict() if found else None


Matches = list[tuple[Route, dict[str, str]]]
"""Routes whose path is the request's, with the parameters they found in it."""


async def serve_routes(routes: Matches, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request to a path that these routes share, each with other methods."""
    for route, params in routes:
        if scope["method"] in route.methods:
            return await _serve_route(route, params, scope, receive, send)
    allowed = ", ".join(sorted(frozenset[str]().union(*(route.methods for route, _ in routes)))).encode()
    return await respond(send, 405, b"method not allowed", _TEXT, (b"allow", allowed))


async def _serve_route(route: Route, params: dict[str, str], scope: Scope, receive: Receive, send: Send) -> None:
    """A handler that fails is logged, and the client sees only that."""
    try:
        response = await route.handler(route.request_type({**scope, "path_params": params}, receive))
        if not callable(response):
            raise TypeError(f"a custom route must return HttpResponse or an ASGI app, not {type(response).__name__}")
    except BodyTooLarge:
        return await respond(send, 413, b"the body is too large", _TEXT)
    except ClientGone:
        return None
    except Exception as error:
        status = getattr(error, "status_code", None)
        if isinstance(status, int):  # an HTTP error of the framework whose request the handler takes
            return await respond(send, status, str(getattr(error, "detail", "")).encode(), _TEXT)
        logger.exception("the custom route %s failed", scope["path"])
        return await respond(send, 500, b"internal server error", _TEXT)
    return await response(scope, receive, send)
