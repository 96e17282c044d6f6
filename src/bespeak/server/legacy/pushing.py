"""Questions pushed to an older client: sent on the stream of the request they belong to, awaited and withdrawn.

Many such clients give up a request after a while without messages, even if the person they ask is still reading. While a
question is open, heartbeats tell every client that has asked for progress that the call is alive.
"""

import asyncio
import contextlib
import itertools
import secrets
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from uuid import uuid4

from pydantic import BaseModel, ValidationError

from bespeak.protocol.capabilities import NOT_DECLARED, AskingObstacle, lacking, requirements
from bespeak.protocol.legacy import JUNE, QuestionNotSupported, question_at
from bespeak.protocol.messages import RequestId, Response, write_notification, write_push
from bespeak.protocol.question_keys import KEY_META, bare_name
from bespeak.resolve.asking.form_schemas import Refused
from bespeak.resolve.asking.questions import Outcome, render, settle, too_often
from bespeak.resolve.errors import BadAnswer, MissingCapability, NotAnswered
from bespeak.resolve.markers import Question
from bespeak.server.calls.concurrency import Slot
from bespeak.server.features.progress_notifications import ProgressNotifications
from bespeak.server.legacy.waiting_calls import SessionCalls
from bespeak.transports.interfaces import Channel, OpenQuestions

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

EXCERPT = 200
MOST_GIVEN_UP = 100
"""How many withdrawn questions of one client are remembered, to explain late answers in the log."""
NOT_WAITING = "the client no longer waits for this call"

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A question that was withdrawn before it was answered."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """What happens to a question when its client's connection is lost and cannot be resumed."""

    seconds: float
    ends_it: Callable[[], bool]
    """Whether the question is withdrawn then."""


class AskingCall(Protocol):
    """The call whose questions are asked."""

    closed: bool
    """Whether an approval has been spent on it, so that it must not be broken off."""

    def kept_bytes(self, most: int) -> int:
        """Return about how many bytes of its request it keeps while it waits. Stops counting above `most`."""
        ...


class Questions:
    """The open questions of one client. Ids are never used twice."""

    def __init__(self, other_workers: OpenQuestions | None = None) -> None:
        self._other_workers = other_workers
        """Told of each question, because its answer may arrive at another worker; `None` if there are no others."""
        self._open: dict[RequestId, asyncio.Future[Response | NotAnswered | None]] = {}
        self._given_up: dict[RequestId, GivenUp] = {}
        """The last of them that were taken back, the oldest first."""
        self._name = f"q-{secrets.token_hex(4)}"
        """The prefix of its question ids: an answer to another server, or from before a restart, never matches."""
        self._ids = (f"{self._name}-{number}" for number in itertools.count(1))
        self._over: str | None = None

    def answered(self, response: Response) -> bool:
        """Take an answer. Return whether a question was waiting for it."""
        waiting = self._open.get(response.id) if response.id is not None else None
        if waiting is None or waiting.done():
            return False
        waiting.set_result(response)
        return True

    def knows(self, response: Response) -> bool:
        """Return whether an answer belongs to one of its questions, open or withdrawn."""
        return response.id is not None and (response.id in self._open or response.id in self._given_up)

    def given_up(self, response: Response) -> GivenUp | None:
        """Return the question that an answer came too late for; `None` for any other answer, and for a second one."""
        return self._given_up.pop(response.id, None) if response.id is not None else None

    def close(self, reason: str) -> None:
        """Called when the client is gone. Ends all waits for its answers."""
        self._over = reason
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_result(NotAnswered(reason))

    async def ask(
        self,
        channel: Channel,
        key: str,
        request: dict[str, Any],
        *,
        seconds: float,
        gone: "Gone",
        over: asyncio.Future[None],
        dropped: asyncio.Future[None] | None,
    ) -> Response | None:
        """Push a question and return its answer; `None` if `dropped` is done first.

        Raises `NotAnswered` if nobody answers in time, or the call is over.
        """
        if self._over is not None:
            raise NotAnswered(self._over)
        id_ = next(self._ids)
        if self._other_workers is not None:
            try:
                await self._other_workers.open(id_)  # before the client can answer
            except BaseException as error:
                self._other_workers.close(id_)
                if isinstance(error, ConnectionError):
                    raise NotAnswered(str(error)) from None
                raise
            if self._over is not None:  # meanwhile
                self._other_workers.close(id_)
                raise NotAnswered(self._over)
        loop = asyncio.get_running_loop()
        # Whatever ends the wait is put here, so that the call goes on in the next turn of the loop.
        waiting = self._open[id_] = loop.create_future()

        def abandon() -> None:
            if not waiting.done() and gone.ends_it():
                waiting.set_result(NotAnswered(f"the client's connection has been gone for {gone.seconds:g} s"))

        def take_back(reason: str) -> None:
            self._give_up(id_, GivenUp(bare_name(key), reason))
            with contextlib.suppress(ConnectionError):
                channel.push(write_notification("notifications/cancelled", {"requestId": id_, "reason": reason}))

        def withdraw(reason: str, ending: NotAnswered | None) -> None:
            if not waiting.done():
                take_back(reason)
                waiting.set_result(ending)

        def end(_: object) -> None:
            withdraw("the call has ended", NotAnswered(NOT_WAITING))

        def drop(_: object) -> None:
            withdraw("the call has ended", None)

        late = NotAnswered(f"nobody answered within {seconds:g} s")
        timer = loop.call_later(seconds, withdraw, "it took too long", late)
        over.add_done_callback(end)
        if dropped is not None:
            dropped.add_done_callback(drop)
        try:
            channel.push(write_push(id_, request))
            channel.when_gone(lambda: loop.call_later(gone.seconds, abandon))
            return _given(await waiting)
        except ConnectionError as error:
            raise NotAnswered(str(error)) from None
        except asyncio.CancelledError:
            if waiting.cancelled():
                take_back("the call has ended")
            raise
        finally:
            timer.cancel()
            over.remove_done_callback(end)
            if dropped is not None:
                dropped.remove_done_callback(drop)
            del self._open[id_]
            if self._other_workers is not None:
                self._other_workers.close(id_)

    def _give_up(self, id_: str, question: GivenUp) -> None:
        self._given_up[id_] = question
        if len(self._given_up) > MOST_GIVEN_UP:
            del self._given_up[next(iter(self._given_up))]


class Asker:
    """Puts the questions of one request to its client: the engine's `Push`, on the stream of that request."""

    def __init__(
        self,
        questions: Questions,
        channel: Channel,
        *,
        version: str,
        declared: Mapping[str, Any],
        unaskable: AskingObstacle | None,
        seconds: float,
        progress: ProgressNotifications,
        heartbeat: float | None,
        room: SessionCalls,
        address: str | None,
    ) -> None:
        self._questions = questions
        self._room = room
        self._address = address
        self._open = 0
        """How many of its questions are open: a body may ask several at once."""
        self.asked = 0
        """How many questions it has asked so far."""
        self._weight = 0
        self.call: AskingCall | None = None
        self.by_hand: InputRequiredResult | None = None
        """What its tool asks by hand, if the tool has run already."""
        self.slot: Slot | None = None
        """The place of its call among those that run, if their number is bounded."""
        self._channel = channel
        self._version = version
        self._seconds = seconds
        self.declared = declared
        self._unaskable = unaskable
        self.progress = progress
        self._heartbeat = heartbeat if progress.wanted else None
        """Seconds of silence after which the client is told that the call is alive; `None` if it is not told."""
        self.pause = channel.pause
        self.over = False
        """Whether the request is answered, or its client no longer wants it to be."""
        self._end: asyncio.Future[None] | None = None
        """Done when it is over. There if something was asked."""

    def end(self) -> None:
        """Called when the request is over. Sends and asks nothing more, and stops waiting for answers."""
        self.over = True
        if self._end is not None and not self._end.done():
            self._end.set_result(None)

    def obstacle(self, request: Mapping[str, Any], missing: Mapping[str, Any]) -> AskingObstacle | None:
        if self._unaskable is not None:
            return self._unaskable
        if "elicitation" in missing and self._version < JUNE:
            return AskingObstacle("not_declared", f"a client of {self._version} cannot be asked with a form")
        if missing:
            return NOT_DECLARED
        try:
            question_at(self._version, request)
        except QuestionNotSupported as reason:
            return AskingObstacle("not_declared", str(reason))
        return None

    async def ask(self, key: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the client's answer to a question that nothing but the end of its call takes back."""
        answer = await self(key, request)
        assert answer is not None, "only a question that may be dropped goes without an answer"
        return answer

    async def __call__(
        self, key: str, request: Mapping[str, Any], dropped: asyncio.Future[None] | None = None
    ) -> dict[str, Any] | None:
        if self.over:
            raise NotAnswered(NOT_WAITING)
        pushed = question_at(self._version, request)
        params: dict[str, Any] = dict(pushed.get("params") or {})
        if params.get("mode") == "url":
            params.setdefault("elicitationId", str(uuid4()))
        params["_meta"] = {**params.get("_meta", {}), KEY_META: key}
        question = {**pushed, "params": params}
        if self._end is None:
            self._end = asyncio.get_running_loop().create_future()
        gone = Gone(self._room.limits.gone_seconds, lambda: self.call is None or not self.call.closed)
        with self._counted():
            async with self._heartbeats():
                response = await self._questions.ask(
                    self._channel,
                    key,
                    question,
                    seconds=self._seconds,
                    gone=gone,
                    over=self._end,
                    dropped=dropped,
                )
        if response is None:
            return None
        if response.error is not None:
            raise NotAnswered(f"the client answered with an error{_spell(response.error)}")
        if not isinstance(response.result, dict):
            raise BadAnswer(f"the answer to {bare_name(key)!r} is not an object")
        return cast("dict[str, Any]", response.result)

    @contextlib.contextmanager
    def _counted(self) -> Generator[None]:
        """Have the call counted among those that wait. Raises `NotAnswered` if no more may."""
        call = self.call
        if not self._open:
            self._weight = self._room.enter(call.kept_bytes if call is not None else lambda _: 0, self._address)
        self._open += 1
        self.asked += 1
        if self.slot is not None:
            self.slot.pause()
        try:
            yield
        finally:
            self._open -= 1
            if self.slot is not None and not self._open:
                self.slot.resume()
            if not self._open:
                self._room.leave(self._weight, self._address)

    @contextlib.asynccontextmanager
    async def _heartbeats(self) -> AsyncGenerator[None]:
        """Have heartbeats sent while the block is open."""
        if self._heartbeat is None:
            yield
            return
        beating = asyncio.create_task(self._beat(self._heartbeat), name="bespeak heartbeat")
        try:
            yield
        finally:
            beating.cancel()

    async def _beat(self, seconds: float) -> None:
        # The client counts the silence of its request, and so does this: what was silent before the question counts too.
        due = seconds - self.progress.silence()
        with contextlib.suppress(ConnectionError):  # the question learns by itself that the client is gone
            while True:
                await asyncio.sleep(due)
                if self.over:
                    return
                due = seconds - self.progress.silence()
                if due <= 0:
                    due = seconds
                    await self._say_alive()

    async def _say_alive(self) -> None:
        heartbeat = self.progress.heartbeat() if self._channel.has_reader else None
        behind = self._channel.notify(heartbeat) if heartbeat is not None else None
        if behind is not None:
            await behind


def _given(answer: Response | NotAnswered | None) -> Response | None:
    """Return the answer. Raises `NotAnswered` if there will be none."""
    if isinstance(answer, NotAnswered):
        raise NotAnswered(
            str(answer)
        )  # a new one: its traceback would hold the call as long as somebody holds the first
    return answer


async def ask_request(asker: Asker, key: str, request: Mapping[str, Any]) -> dict[str, Any]:
    """Send a question that is already a wire request, and return the answer.

    Raises `MissingCapability` if the client cannot answer it.
    """
    check_askable(asker, request)
    return await asker.ask(key, request)


def check_askable(asker: Asker, request: Mapping[str, Any]) -> None:
    """Raise `MissingCapability` if the client cannot be asked this."""
    needs = requirements(request["method"], request.get("params") or {})
    missing = lacking(needs, asker.declared)
    obstacle = asker.obstacle(request, missing)
    if obstacle is not None:
        raise MissingCapability(missing or needs, obstacle.words)


def read_as(model: type[ModelT], key: str, answer: Mapping[str, Any]) -> ModelT:
    """An answer as a wire type. Raises `BadAnswer`."""
    try:
        return model.model_validate(answer)
    except ValidationError:
        raise BadAnswer(f"the answer to {key!r} is not a valid {model.__name__}") from None


async def ask_once(asker: Asker, key: str, marker: Question) -> Outcome:
    """Ask from within a body, and return the outcome.

    After an invalid answer the question is asked again, up to its number of attempts.
    """
    question = render(key, marker, lenient=True)
    check_askable(asker, question.request())
    note: str | None = None
    for _ in range(question.attempts):
        try:
            return settle(question, await asker.ask(key, question.request(note)), "")[1]
        except Refused as slip:
            note = str(slip)
    raise too_often(question, note)


def _spell(error: Any) -> str:
    """What the client says of its error, if that is anything to read."""
    if not isinstance(error, dict):
        return ""
    known = cast("dict[str, Any]", error)
    return f" ({known.get('code')}): {str(known.get('message', ''))[:EXCERPT]}"
