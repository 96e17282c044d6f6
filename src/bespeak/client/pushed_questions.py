"""Questions that a server of an older revision pushes: answered beside the request they belong to.

A person's time is not the server's: while a question is open, the time of the request it belongs to stands still.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from pydantic_core import to_json

from bespeak.client.errors import CallbackFailed, InvalidServerResponse, Undeclared
from bespeak.client.result_reading import ASKABLE
from bespeak.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from bespeak.protocol.messages import KEY_META, is_id
from bespeak.protocol.methods import ELICIT
from bespeak.transports.interfaces import Lost

logger = logging.getLogger("bespeak.client")

MAX_QUESTIONS = 64
"""Questions that are answered at the same time, unless somebody says otherwise."""
MOST_OPEN = 100
"""Pushed requests beside them that are looked at at the same time."""
AT_ONCE = 8
"""Answers that are sent at the same time."""
REFUSED = -1
"""The code for a question that somebody does not want answered."""


class Leg:
    """One request under way, and how long it may still take."""

    def __init__(self, seconds: float | None) -> None:
        self._left = seconds
        self._limit: asyncio.Timeout | None = None
        self._questions = 0
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Set when there is no use in waiting for the response."""
        self._doom: Exception | None = None

    async def run(self, work: Awaitable[bytes], what: str) -> bytes:
        """Wait for the response. Raises `TimeoutError`, and what the request was failed with."""
        seconds = self._left
        exchanging = asyncio.ensure_future(work)
        try:
            async with asyncio.timeout(seconds) as self._limit:
                await asyncio.wait({exchanging, self.failed}, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise TimeoutError(f"no answer to {what} within {seconds:g} s") from None
        finally:
            self._limit = None
            if not exchanging.done():
                exchanging.cancel()
                await asyncio.wait({exchanging})
            elif not exchanging.cancelled():
                exchanging.exception()  # which is not looked at if something else has gone wrong
        if self._doom is not None:
            raise self._doom
        return exchanging.result()

    def doom(self, error: Exception) -> None:
        """One of the request's questions could not be answered: whatever comes of it, this is what went wrong."""
        self._doom = error

    def end(self) -> None:
        """Do not wait for the response."""
        if not self.failed.done():
            self.failed.set_result(None)

    @contextmanager
    def standing_still(self) -> Generator[None]:
        """Do not count the time."""
        self._questions += 1
        if self._questions == 1 and self._limit is not None and not self._limit.expired():
            when = self._limit.when()
            self._left = None if when is None else when - asyncio.get_running_loop().time()
            self._limit.reschedule(None)
        try:
            yield
        finally:
            self._questions -= 1
            limit = None if self._questions else self._limit
            if limit is not None and self._left is not None and not limit.expired():
                limit.reschedule(asyncio.get_running_loop().time() + self._left)


Answer = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""The answer to a question, by its key. Raises `CallbackFailed` or `InvalidServerResponse`."""


class PushedQuestions:
    """Answers what one server pushes."""

    def __init__(
        self, answer: Answer, say: Callable[[bytes], Awaitable[None]], max_questions: int = MAX_QUESTIONS
    ) -> None:
        self._answer = answer
        self._say = say
        self._max_questions = max_questions
        self._open: dict[str | int, asyncio.Task[None]] = {}
        self._belongs: dict[str | int, set[Leg]] = {}
        """The requests each of them may belong to."""
        self._asked: set[str | int] = set()
        """Those that are put to somebody."""
        self._dropping = False
        self._saying = asyncio.Semaphore(AT_ONCE)
        self._closed = False
        self.legs: set[Leg] = set()
        """The requests under way."""

    def take(self, leg: Leg | None, request: dict[str, Any]) -> None:
        """See to it that a pushed request is answered. Without a leg, nobody knows which request it belongs to."""
        if self._closed:  # what has been agreed on since is not what this server, or this session of it, knows of
            if leg is not None:
                leg.doom(Lost("the request", "the server no longer knows this client and asks it something"))
                leg.end()
            return
        id_: Any = request.get("id")
        if not is_id(id_) or id_ in self._open:
            logger.warning("the server sent a request with the id %.80r, which cannot be answered", id_)
            return
        if len(self._open) - len(self._asked) >= MOST_OPEN:
            if not self._dropping:
                logger.warning("the server asks more than anybody could answer; some of it is not answered")
            self._dropping = True
            return
        if leg is None and len(self.legs) == 1:
            (leg,) = self.legs  # there is only one that it can belong to
        refused = None
        if request.get("method") in ASKABLE:
            if len(self._asked) < self._max_questions:
                self._asked.add(id_)
            else:
                most = self._max_questions
                refused = _error(REFUSED, f"the client answers {most} questions at one time, and so many are open")
        task = asyncio.create_task(self._serve(leg, id_, request, refused), name="bespeak pushed question")
        self._open[id_] = task
        self._belongs[id_] = {leg} if leg is not None else set(self.legs)
        task.add_done_callback(lambda _: self._forget(id_))

    def _forget(self, id_: str | int) -> None:
        del self._open[id_], self._belongs[id_]
        self._asked.discard(id_)
        self._dropping = self._dropping and bool(self._open)

    def ended(self, leg: Leg) -> None:
        """A request is over: so are the questions that can belong to no other."""
        self.legs.discard(leg)
        for id_, legs in self._belongs.items():
            if leg in legs:
                legs.discard(leg)
                if not legs:
                    self._open[id_].cancel()

    def take_back(self, params: Mapping[str, Any]) -> None:
        """The server no longer wants an answer."""
        id_: Any = params.get("requestId")
        task = self._open.get(id_) if is_id(id_) else None
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Nobody is there any more to be answered."""
        self._closed = True
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(
        self, leg: Leg | None, id_: str | int, request: dict[str, Any], refused: dict[str, Any] | None
    ) -> None:
        reply, failure = (refused, None) if refused is not None else await self._reply(leg, id_, request)
        self._asked.discard(id_)  # whoever answered can answer the next
        if leg is not None and failure is not None:
            leg.doom(failure)
        try:
            async with self._saying:
                await self._say(to_json({"jsonrpc": "2.0", "id": id_, **reply}))
        except (OSError, RuntimeError) as error:
            if request.get("method") == "ping":
                return
            failure = failure or Lost("the request", f"the server did not take the answer to its question ({error})")
            for one in (leg,) if leg is not None else tuple(self._belongs[id_]):
                one.doom(failure)
                one.end()
        if leg is not None and failure is not None:
            leg.end()

    async def _reply(
        self, leg: Leg | None, id_: str | int, request: dict[str, Any]
    ) -> tuple[dict[str, Any], Exception | None]:
        """What to answer, and what went wrong on this side."""
        method, params = request.get("method"), request.get("params", {})
        if method == "ping":
            return {"result": {}}, None
        if method not in ASKABLE:
            return _error(METHOD_NOT_FOUND, f"unknown method {method!r}"), None
        if not isinstance(params, dict):
            return _error(INVALID_PARAMS, "params must be an object"), None
        if not self.legs:
            return _error(INVALID_PARAMS, "a question belongs to a request, and none is under way"), None
        meta: Any = cast("dict[str, Any]", params).get("_meta")
        key: Any = cast("dict[str, Any]", meta).get(KEY_META) if isinstance(meta, dict) else None
        with ExitStack() as paused:
            for one in (leg,) if leg is not None else tuple(self.legs):
                paused.enter_context(one.standing_still())
            try:
                return {"result": await self._answer(key if isinstance(key, str) else str(id_), request)}, None
            except Undeclared as error:
                return _error(INVALID_PARAMS if method == ELICIT else METHOD_NOT_FOUND, str(error)), error
            except InvalidServerResponse as error:
                return _error(INVALID_PARAMS, str(error)), error
            except CallbackFailed as error:
                return _error(REFUSED, "the client could not answer this question"), error


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
