"""What the page asks for below its token: its files, the lists and drawings of the server, and its calls."""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import parse_qs

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bespeak.dev.page_calls import CallRequest, CannotCall, PageCall, PageCalls
from bespeak.dev.page_files import FIRST, KINDS, page_file
from bespeak.dev.page_lists import list_everything
from bespeak.dev.page_responses import PICTURE_POLICY, page_headers, send_bytes, send_json, send_refusal
from bespeak.dev.person_script import NothingAsked
from bespeak.protocol.media_types import is_json
from bespeak.transports.http.asgi import (
    BodyTooLarge,
    Receive,
    Scope,
    Send,
    disconnected,
    read_body,
    when_stopping,
)
from bespeak.transports.interfaces import MESSAGE_LIMIT

BODY_SECONDS = 30.0
EVENTS = b"application/x-ndjson"
NOT_JSON = "the body must be JSON, and say so in its Content-Type"
NO_CALL = "this call has ended"
NOT_ASKED = "no question of this call is open"
NO_DRAWING = "the server has nothing of this name to draw"


@dataclass(frozen=True, slots=True)
class Drawing:
    """The graph of one tool, prompt or resource."""

    kind: str
    name: str
    summary: str
    tree: str
    svg: Callable[[], str]
    draws: bool = True
    """Whether there is anything to see: a function without resolvers has only arguments."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What the page shows of a server, beside what it gets as a client."""

    target: str
    started: str
    """Differs each time the server is started."""
    url: str
    """The endpoint."""
    name: str = ""
    drawings: Sequence[Drawing] = ()
    error: str | None = None
    """Why the server is not there: its file cannot be loaded."""


class Listing(BaseModel):
    """A request for the lists of the server."""

    model_config = ConfigDict(extra="forbid", strict=True)

    era: str = Field(max_length=20)
    authorization: str = Field(default="", max_length=8192)


class PageApi:
    """Serves the requests of the page that have passed its gate."""

    def __init__(self, shown: Shown) -> None:
        self._shown = shown
        self._calls = PageCalls(shown.url)

    async def serve(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request to a path below the token."""
        name = path or FIRST
        method: str = scope["method"]
        posted = path == "api/list" or path == "api/call" or path.startswith("api/call/")
        if method not in (("POST",) if posted else ("GET", "HEAD")):
            return await send_refusal(send, 405, f"{method} is not possible here")
        if name in KINDS:
            return await send_bytes(send, page_file(name), KINDS[name])
        if path == "api/server":
            return await self._server(send)
        if path == "api/graph":
            return await self._graph(scope, send)
        if not posted:
            return await send_refusal(send, 404, f"the page has no {path[:100]!r}")
        return await self._post(path, scope, receive, send)

    async def _server(self, send: Send) -> None:
        shown = self._shown
        drawings = [
            {"kind": one.kind, "name": one.name, "summary": one.summary, "tree": one.tree, "draws": one.draws}
            for one in shown.drawings
        ]
        await send_json(
            send,
            {
                "target": shown.target,
                "started": shown.started,
                "url": shown.url,
                "name": shown.name,
                "error": shown.error,
                "drawings": drawings,
            },
        )

    async def _graph(self, scope: Scope, send: Send) -> None:
        query = parse_qs(cast("bytes", scope["query_string"]).decode("latin-1"))
        wanted = (query.get("kind", [""])[0], query.get("name", [""])[0])
        found = next((one for one in self._shown.drawings if (one.kind, one.name) == wanted), None)
        if found is None:
            return await send_refusal(send, 404, NO_DRAWING)
        return await send_bytes(send, found.svg().encode(), b"image/svg+xml", PICTURE_POLICY)

    async def _post(self, path: str, scope: Scope, receive: Receive, send: Send) -> None:
        if not is_json(dict(scope["headers"]).get(b"content-type")):
            return await send_refusal(send, 415, NOT_JSON)
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await read_body(receive, MESSAGE_LIMIT)
            if body is None:
                return None
            sent: Any = json.loads(body)
        except BodyTooLarge:
            return await send_refusal(send, 413, "the body is too large")
        except TimeoutError:
            return await send_refusal(send, 408, "the body did not arrive in time")
        except (ValueError, RecursionError):
            return await send_refusal(send, 400, NOT_JSON)
        try:
            if path == "api/list":
                wanted = Listing.model_validate(sent)
                lists = await list_everything(self._shown.url, wanted.era, wanted.authorization)
                return await send_json(send, lists.as_json())
            if path == "api/call":
                return await self._call(self._calls.begin(CallRequest.read(sent)), scope, receive, send)
        except ValidationError:
            return await send_refusal(send, 400, "the request of the page is not valid")
        except CannotCall as error:
            return await send_refusal(send, 400, str(error))
        return await self._during_call(path, sent, send)

    async def _call(self, call: PageCall, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events of a call, one on each line, until it has ended or the page goes away."""
        when_stopping(scope, call.stop)
        await send({"type": "http.response.start", "status": 200, "headers": page_headers(EVENTS)})
        gone = asyncio.create_task(disconnected(receive), name="bespeak dev page gone")
        try:
            while not gone.done():
                waiting = asyncio.create_task(call.next_event())
                await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    waiting.cancel()
                    return
                event = waiting.result()
                await send({"type": "http.response.body", "body": event or b"", "more_body": event is not None})
                if event is None:
                    return
        finally:
            gone.cancel()
            await self._calls.end(call)

    async def _during_call(self, path: str, sent: Any, send: Send) -> None:
        """Take answers to the questions of a call, or end it."""
        id_, _, what = path.removeprefix("api/call/").partition("/")
        call = self._calls.find(id_)
        if call is None:
            return await send_refusal(send, 404, NO_CALL)
        if what == "stop":
            call.stop()
            return await send_json(send, {})
        answers: Any = cast("dict[str, Any]", sent).get("answers") if isinstance(sent, dict) else None
        if what != "answers" or not isinstance(answers, dict):
            return await send_refusal(send, 400, "the request of the page is not valid")
        try:
            problems = call.script.give(cast("dict[str, Any]", answers))
        except NothingAsked:
            return await send_refusal(send, 409, NOT_ASKED)
        return await send_json(send, {"problems": problems}, 422 if problems else 200)
