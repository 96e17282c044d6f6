"""Questions that a server of the legacy era sends as requests of its own, while a request of the client is open.

While a person answers such a question, the time limit of the request that it belongs to is paused.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import Any, cast

from pydantic_core import to_json

from bespeak.client.errors import CallbackFailed, Declined, InvalidServerResponse, Undeclared
from bespeak.client.open_request import OpenRequest
from bespeak.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from bespeak.protocol.messages import is_id
from bespeak.protocol.methods import ELICIT, QUESTIONS
from bespeak.protocol.question_keys import KEY_META
from bespeak.transports.interfaces import Lost

logger = logging.getLogger("bespeak.client")

MAX_QUESTIONS = 64
"""Questions that are answered at the same time, by default."""
MOST_OPEN = 100
"""Other requests of the server that are processed at the same time."""
AT_ONCE = 8
"""Answers that are sent at the same time."""
REFUSED = -1
"""The error code for a question that the client does not answer."""


Answer = Callable[[str, Mapping[str, Any]], Awaitable[dict[str, Any]]]
"""Returns the answer to a question with this key. Raises `CallbackFailed`, `Declined` or `InvalidServerResponse`."""
AnswerOutside = Callable[[Mapping[str, Any], bool], Mapping[str, Any] | None]
"""Returns the result or the error for a question that belongs to no request of the client; `None` if it belongs to one.
The second argument says whether the question came on the stream of a request."""

Dropped = Callable[[Any], object]
"""Called with the id of a request that cannot be answered, because the id is invalid or already in use."""


class PushedQuestions:
    """Answers the requests that one server sends."""

    def __init__(
        self,
        answer: Answer,
        say: Callable[[bytes], Awaitable[None]],
        max_questions: int = MAX_QUESTIONS,
        answer_outside: AnswerOutside | None = None,
        dropped: Dropped | None = None,
    ) -> None:
        self._answer = answer
        self._answer_outside = answer_outside
        """If it is not given, every question must belong to a request of the client."""
        self._dropped = dropped
        self._say = say
        self._max_questions = max_questions
        self._open: dict[str | int, asyncio.Task[None]] = {}
        self._belongs: dict[str | int, set[OpenRequest]] = {}
        """The client's requests that each of them may belong to."""
        self._asked: set[str | int] = set()
        """The questions among them that are being answered."""
        self._dropping = False
        self._saying = asyncio.Semaphore(AT_ONCE)
        self._closed = False
        self.requests: set[OpenRequest] = set()
        """The client's requests that are open."""

    def take(self, during: OpenRequest | None, request: dict[str, Any]) -> None:
        """Answer a request of the server. `during` is the client's request that it belongs to; `None` if not known."""
        if self._closed:  # it belongs to an earlier handshake
            if during is not None:
                during.fail(Lost("the request", "the server has forgotten this session and sent a question"))
                during.end()
            return
        id_: Any = request.get("id")
        if not is_id(id_) or id_ in self._open:
            logger.warning("The server sent a request with the id %.80r, which is invalid or already in use.", id_)
            if self._dropped is not None:
                self._dropped(id_)
            return
        if len(self._open) - len(self._asked) >= MOST_OPEN:
            if not self._dropping:
                logger.warning("The server sends more requests than this client can process. Some are not answered.")
            self._dropping = True
            return
        outside = self._outside(request, on_its_stream=during is not None)
        if outside is not None:
            self._start(None, set(), id_, request, outside)
            return
        if during is None and len(self.requests) == 1:
            (during,) = self.requests  # it cannot belong to any other
        refused = None
        if request.get("method") in QUESTIONS:
            if len(self._asked) < self._max_questions:
                self._asked.add(id_)
            else:
                most = self._max_questions
                refused = _error(REFUSED, f"the client answers at most {most} questions at a time, and {most} are open")
        self._start(during, {during} if during is not None else set(self.requests), id_, request, refused)

    def _outside(self, request: dict[str, Any], *, on_its_stream: bool) -> dict[str, Any] | None:
        """The reply to a question that belongs to no request of the client."""
        if self._answer_outside is None or request.get("method") not in QUESTIONS:
            return None
        if not isinstance(request.get("params", {}), dict):
            return _error(INVALID_PARAMS, "params must be an object")
        reply = self._answer_outside(request, on_its_stream)
        return None if reply is None else dict(reply)

    def _start(
        self,
        during: OpenRequest | None,
        belongs: set[OpenRequest],
        id_: str | int,
        request: dict[str, Any],
        reply: dict[str, Any] | None,
    ) -> None:
        task = asyncio.create_task(self._serve(during, id_, request, reply), name="bespeak pushed question")
        self._open[id_] = task
        self._belongs[id_] = belongs
        task.add_done_callback(lambda _: self._forget(id_))

    def _forget(self, id_: str | int) -> None:
        del self._open[id_], self._belongs[id_]
        self._asked.discard(id_)
        self._dropping = self._dropping and bool(self._open)

    def ended(self, request: OpenRequest) -> None:
        """Called when a request has ended. Cancels the questions that cannot belong to another one."""
        self.requests.discard(request)
        for id_, requests in self._belongs.items():
            if request in requests:
                requests.discard(request)
                if not requests:
                    self._open[id_].cancel()

    def take_back(self, params: Mapping[str, Any]) -> None:
        """Called when the server no longer expects an answer."""
        id_: Any = params.get("requestId")
        task = self._open.get(id_) if is_id(id_) else None
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Cancel all questions: the connection has ended."""
        self._closed = True
        tasks = list(self._open.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(
        self, during: OpenRequest | None, id_: str | int, request: dict[str, Any], known: dict[str, Any] | None
    ) -> None:
        reply, failure = (known, None) if known is not None else await self._reply(during, id_, request)
        self._asked.discard(id_)  # the next question may be answered
        if during is not None and failure is not None:
            during.fail(failure)
        try:
            async with self._saying:
                await self._say(to_json({"jsonrpc": "2.0", "id": id_, **reply}))
        except (OSError, RuntimeError) as error:
            if request.get("method") == "ping":
                return
            failure = failure or Lost(
                "the request", f"the answer to the server's question could not be delivered ({error})"
            )
            for one in (during,) if during is not None else tuple(self._belongs[id_]):
                one.fail(failure)
                one.end()
        if during is not None and failure is not None:
            during.end()

    async def _reply(
        self, during: OpenRequest | None, id_: str | int, request: dict[str, Any]
    ) -> tuple[dict[str, Any], Exception | None]:
        """Return the response to send, and the error on this side if there was one."""
        method, params = request.get("method"), request.get("params", {})
        if method == "ping":
            return {"result": {}}, None
        if method not in QUESTIONS:
            return _error(METHOD_NOT_FOUND, f"unknown method {method!r}"), None
        if not isinstance(params, dict):
            return _error(INVALID_PARAMS, "params must be an object"), None
        if not self.requests:
            return _error(INVALID_PARAMS, "questions are only allowed while a request of the client is open"), None
        meta: Any = cast("dict[str, Any]", params).get("_meta")
        key: Any = cast("dict[str, Any]", meta).get(KEY_META) if isinstance(meta, dict) else None
        with ExitStack() as paused:
            for one in (during,) if during is not None else tuple(self.requests):
                paused.enter_context(one.paused())
            try:
                return {"result": await self._answer(key if isinstance(key, str) else str(id_), request)}, None
            except Declined as error:
                return _error(REFUSED, str(error)), None
            except Undeclared as error:
                return _error(INVALID_PARAMS if method == ELICIT else METHOD_NOT_FOUND, str(error)), error
            except InvalidServerResponse as error:
                return _error(INVALID_PARAMS, str(error)), error
            except CallbackFailed as error:
                return _error(REFUSED, "the client could not answer this question"), error


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
