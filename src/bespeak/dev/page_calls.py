"""The calls that the page makes: each is one conversation with the endpoint, and lasts as long as the page reads its events."""

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_json

from bespeak.client.errors import CallbackFailed, InvalidServerResponse
from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.call_rounds import Conversation, MalformedResponse, RoundsExceeded
from bespeak.conversation.exchange import BrokenRule, Stopped, Talk
from bespeak.conversation.responses import Question
from bespeak.conversation.result_text import text_of
from bespeak.dev.page_client import connected
from bespeak.dev.person_script import PersonScript
from bespeak.dev.wire_record import LONGEST, WireMessage
from bespeak.protocol.errors import MCPError

logger = logging.getLogger("bespeak.dev")

MOST_ROUNDS = 50
MOST_CALLS = 20
"""How many calls of the page may be under way."""
MOST_MESSAGES = 1000
"""How many messages of a call the timeline shows."""
STOPPED = "You stopped the call."
TOO_MANY = f"{MOST_CALLS} calls are under way; stop one of them"


class CannotCall(Exception):
    """A call cannot be made. The message says why."""


class CallRequest(BaseModel):
    """A call as the page asks for it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    era: Literal["2026-07-28", "2025-11-25"]
    method: Literal["tools/call", "prompts/get", "resources/read"]
    params: dict[str, Any]
    authorization: str = Field(default="", max_length=8192)

    @classmethod
    def read(cls, sent: Any) -> "CallRequest":
        """Return the call that the page wants. Raises `CannotCall`."""
        try:
            return cls.model_validate(sent)
        except ValidationError as error:
            places = sorted({".".join(map(str, detail["loc"])) for detail in error.errors()})
            raise CannotCall(f"the request of the page is not valid: see {', '.join(places) or 'all of it'}") from None


class PageCall:
    """One call, from its first request to its result. It is made in the background."""

    def __init__(self, url: str, wanted: CallRequest) -> None:
        self.id = secrets.token_urlsafe(12)
        self.script = PersonScript(self._show)
        self._url = url
        self._wanted = wanted
        self._events: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._messages = 0
        self._rounds = 0
        loop = asyncio.get_running_loop()
        self._clock, self._began = loop.time, loop.time()
        self._put({"type": "call", "id": self.id})
        self._task = asyncio.create_task(self._run(), name="bespeak dev call")

    async def next_event(self) -> bytes | None:
        """Return the next event as a line of JSON; `None` after the last one."""
        return await self._events.get()

    def stop(self) -> None:
        """Go away: the open questions are not answered, and a request under way is cancelled."""
        if self.script.waits:
            self.script.stop()
        else:
            self._task.cancel()

    async def close(self) -> None:
        """End the call, if it has not ended, because nobody reads its events any more."""
        self._task.cancel()
        await asyncio.wait({self._task})

    # What happens

    async def _run(self) -> None:
        try:
            await self._hold()
        except (Stopped, asyncio.CancelledError):
            self._put({"type": "failed", "message": STOPPED})
        except (CannotAnswer, RoundsExceeded, BrokenRule, MalformedResponse, ValueError) as error:
            self._put({"type": "failed", "message": str(error)})
        except (OSError, InvalidServerResponse, CallbackFailed, MCPError) as error:
            self._put({"type": "failed", "message": f"the call was cut off: {error}"})
        except Exception as error:  # the page must learn that nothing more will come
            logger.exception("a call of the page failed")
            self._put({"type": "failed", "message": f"{type(error).__name__}: {error}"})
        finally:
            self._events.put_nowait(None)

    async def _hold(self) -> None:
        wanted = self._wanted
        async with connected(self._url, wanted.era, wanted.authorization, self._wire) as connection:
            conversation = Conversation(wanted.method, wanted.params, MOST_ROUNDS, connection.capabilities)
            talk = Talk(connection, conversation, self.script)
            try:
                await talk.hold()
            finally:
                notes = list(dict.fromkeys(str(finding) for finding in conversation.findings))
                self._put({"type": "notes", "notes": notes})
            self._put(_outcome(talk.envelope))

    def _show(self, questions: Sequence[Question], *, pushed: bool) -> None:
        self._rounds += 1
        shown = [
            {"key": one.key, "name": one.name, "method": one.method, "message": one.message, "params": dict(one.params)}
            for one in questions
        ]
        self._put({"type": "questions", "round": self._rounds, "pushed": pushed, "questions": shown})

    def _wire(self, message: WireMessage) -> None:
        self._messages += 1
        if self._messages <= MOST_MESSAGES:
            self._put({"type": "wire", **asdict(message)})
        elif self._messages == MOST_MESSAGES + 1:
            self._put({"type": "notes", "notes": [f"the timeline shows only the first {MOST_MESSAGES:,} messages"]})

    def _put(self, event: Mapping[str, Any]) -> None:
        elapsed = round((self._clock() - self._began) * 1000)
        self._events.put_nowait(to_json({**event, "ms": elapsed}, inf_nan_mode="strings") + b"\n")


def _outcome(envelope: Any) -> dict[str, Any]:
    """How the call ended, for the page."""
    message = cast("dict[str, Any]", envelope)
    if "error" in message:
        error = cast("dict[str, Any]", message["error"])
        return {"type": "result", "failed": True, "text": str(error.get("message", "")), "whole": _indented(error)}
    result = cast("dict[str, Any]", message["result"])
    return {
        "type": "result",
        "failed": result.get("isError") is True,
        "text": text_of(result)[:LONGEST],
        "whole": _indented(result),
    }


def _indented(value: Any) -> str:
    return to_json(value, indent=2, inf_nan_mode="strings").decode()[:LONGEST]


class PageCalls:
    """The calls of the page that are under way."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._calls: dict[str, PageCall] = {}

    def begin(self, wanted: CallRequest) -> PageCall:
        """Make a call. Raises `CannotCall`."""
        if len(self._calls) >= MOST_CALLS:
            raise CannotCall(TOO_MANY)
        call = PageCall(self._url, wanted)
        self._calls[call.id] = call
        return call

    def find(self, id_: str) -> PageCall | None:
        """Return a call that is under way; `None` if it has ended."""
        return self._calls.get(id_)

    async def end(self, call: PageCall) -> None:
        """Called when nobody reads the events of a call any more."""
        self._calls.pop(call.id, None)
        await call.close()
