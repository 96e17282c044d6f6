"""Watches the responses over HTTP for what a client has no use for: ids of events, and how a notification is answered."""

from collections.abc import AsyncIterator
from functools import cache
from typing import TYPE_CHECKING, Any

from bespeak.conversation.json_values import as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.protocol.server_sent_events import EventReader, EventTooLong
from bespeak.transports.http.received_responses import media_type, parsed
from bespeak.transports.interfaces import ANSWER_LIMIT, MissingExtra

if TYPE_CHECKING:
    import ssl

    import httpx2

ACCEPTED = 202
EVENTS = "text/event-stream"


class HttpWatch:
    """What is found in the responses of one server."""

    def __init__(self) -> None:
        self._found: list[Finding] = []

    def client(self) -> "httpx2.AsyncClient":
        """Return an HTTP client whose responses are watched. Raises `MissingExtra`."""
        try:
            import httpx2
        except ImportError:
            raise MissingExtra("a client over HTTP needs httpx2: pip install 'bespeak[http]'") from None
        return httpx2.AsyncClient(verify=certificates(), event_hooks={"response": [self._responded]})

    def taken(self) -> list[Finding]:
        """Return what was found since the last time."""
        found, self._found = self._found, []
        return found

    async def _responded(self, response: "httpx2.Response") -> None:
        """Called when the head of a response has arrived."""
        request = response.request
        if request.method != "POST":
            return
        sent = as_object(parsed(request.content))
        if sent and not ("method" in sent and "id" in sent):
            self._note_accepted(response, str(sent.get("method", "a response")))
        elif sent and response.is_success and media_type(response) not in (EVENTS, "application/json"):
            what = f"{sent.get('method')} was answered with the content type {media_type(response) or 'none'}"
            self._found.append(Finding("content-type", what))
        elif media_type(response) == EVENTS and "content-encoding" not in response.headers:
            response.stream = _watched(response, self._found)

    def _note_accepted(self, response: "httpx2.Response", what: str) -> None:
        if not response.is_success:  # which is another fault, or the server's right to refuse it
            return
        if response.status_code != ACCEPTED:
            self._found.append(
                Finding("accepted", f"{what} was answered with the status {response.status_code}, not 202")
            )
        elif response.headers.get("content-length", "0") != "0":
            self._found.append(Finding("accepted", f"{what} was answered with a body"))


def _watched(response: "httpx2.Response", found: list[Finding]) -> Any:
    """The stream of a response. It is read as before, and the ids of its events are noted."""
    import httpx2

    stream = response.stream
    assert isinstance(stream, httpx2.AsyncByteStream), "an asynchronous client has asynchronous responses"

    class Watched(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            reader = EventReader(ANSWER_LIMIT)
            async for piece in stream:
                _read(reader, piece, found)
                yield piece

        async def aclose(self) -> None:
            await stream.aclose()

    return Watched()


def _read(reader: EventReader, piece: bytes, found: list[Finding]) -> None:
    before = reader.last_id
    try:
        for _ in reader.feed(piece):
            pass
    except EventTooLong:  # which ends the response where it is read in earnest
        return
    if before is None and reader.last_id is not None:
        found.append(Finding("event-ids", "the server sent an event with an id"))


@cache
def certificates() -> "ssl.SSLContext":
    """The trusted certificates. Cached: reading them takes longer than most calls."""
    import httpx2

    return httpx2.create_ssl_context()
