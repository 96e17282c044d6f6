"""The sessions of older clients on several workers: any worker may get a message, and one of them has the stream it belongs to.

Since 2026-07-28 every request carries all that a worker needs. An older client makes a handshake once, is asked on the stream of
its request, and sends the answer with another request, which may reach another worker. So workers share through a store what was
said in the handshake, which worker serves which request, and which one waits for which answer. What concerns a request or a
question of another worker is sent there by mail.

Records and mail are sealed with the state keys: who can write to the store cannot invent a session, an answer or a principal.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json

from bespeak.aio.tasks import cancel_all
from bespeak.protocol.messages import RequestId, Response
from bespeak.protocol.session_facts import Delivery, SessionFacts, SessionLimits, SessionsUnavailable
from bespeak.state.seal import InvalidRequestState, Seal
from bespeak.state.stores.session_store import BEAT_SECONDS, SessionRow, SessionStore
from bespeak.state.stores.store import StoreFull, StoreUnavailable

if TYPE_CHECKING:
    from bespeak.transports.interfaces import LocalSession

logger = logging.getLogger("bespeak.state")

T = TypeVar("T")

TAKEN_SECONDS = 5.0
"""How long the worker that asked may take to fetch an answer. After that it counts as gone."""
TAKEN_POLL_SECONDS = 0.02
REPEAT_SECONDS = 1.0
"""How often an answer is handed over again until the worker that asked has fetched it."""
RETRY_SECONDS = 1.0
"""The pause after the store could not be reached."""
SWEEP_SECONDS = 60.0
"""How often sessions are searched for those that were idle for too long, at least."""
_facts = TypeAdapter(SessionFacts)


class SessionWorker:
    """One worker among all that serve the sessions of a server: an event loop of a process."""

    def __init__(
        self,
        store: SessionStore,
        seal: Seal,
        wants_changes: Callable[[], bool],
        take_change: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.name = secrets.token_hex(8)
        self._store = store
        self._seal = seal
        self._wants_changes = wants_changes
        """Whether a client of this worker wants to be told of changes."""
        self._take_change = take_change
        self._local: dict[bytes, LocalSession] = {}
        self._requests: dict[tuple[bytes, str], None] = {}
        """The requests that this worker serves. What else the store has of it was left by an answer that was lost."""
        self._questions: dict[tuple[bytes, str], None] = {}
        """Its open questions."""
        self._changing = asyncio.Lock()
        """Held while a session is changed: changes that meet would be tried again and again."""
        self._idle_seconds: float | None = None
        self._listening = False
        self._stirred = asyncio.Event()
        """Set when there is a new reason to look for mail."""
        self._changes: dict[bytes, None] = {}
        """Changes that other workers are to be told of, each once."""
        self._changed = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()
        self._stopping = False
        """Read by the tasks of the worker, because a client of a store may swallow a cancellation that comes with its answer."""
        self._loop = asyncio.get_running_loop()

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Give signs of life, fetch mail and send changes while the block is open."""
        await self._beat()
        tasks = [
            asyncio.create_task(work, name=f"bespeak worker, {name}")
            for name, work in (("life", self._live()), ("mail", self._fetch()), ("changes", self._send_changes()))
        ]
        try:
            yield
        finally:
            self._stopping = True
            await cancel_all(tasks)
            if self._background:
                await asyncio.wait(self._background, timeout=TAKEN_SECONDS)
            with suppress(SessionsUnavailable):
                await self._reach(self._store.leave(self.name))

    # Sessions

    async def add(self, id_: str, facts: SessionFacts, address: str | None, limits: SessionLimits) -> None:
        """Add a session. Raises `TooManySessions` or `TooManyOfOne`."""
        key = _key(id_)
        self._idle_seconds = limits.idle_seconds
        await self._reach(self._store.add_session(key, self._sealed(key, facts), address, limits))

    async def use(
        self, id_: str, requests: Sequence[RequestId], *, used: bool, idle_seconds: float | None
    ) -> SessionFacts | None:
        """Return what is known of a session; `None` if it does not exist or has ended. Its requests belong to this worker then."""
        self._idle_seconds = idle_seconds
        key, names = _key(id_), _names(requests)
        self._requests.update(dict.fromkeys((key, name) for name in names))
        try:
            row = await self._reach(
                self._store.use_session(key, self.name, names, used=used, idle_seconds=idle_seconds)
            )
            facts = self._opened(key, row) if row is not None else None
        except BaseException:
            self.release(id_, requests)
            raise
        if facts is None:
            self.release(id_, requests)
        self._stirred.set()
        return facts

    def attach(self, id_: str, session: "LocalSession") -> None:
        """Have mail for a session handed to its part on this worker."""
        self._local[_key(id_)] = session
        self._stirred.set()

    def detach(self, id_: str) -> None:
        """The session has nothing under way on this worker any more."""
        self._local.pop(_key(id_), None)

    def release(self, id_: str, requests: Sequence[RequestId]) -> None:
        """Record in the background that requests of a session are over."""
        key, names = _key(id_), _names(requests)
        for name in names:
            self._requests.pop((key, name), None)
        if names:
            self._later(self._store.end_requests(key, self.name, names))

    async def change(self, id_: str, change: Callable[[SessionFacts], SessionFacts]) -> None:
        """Change what all workers know of a session, and tell those that serve requests of it."""
        key = _key(id_)
        async with self._changing:
            while True:
                row = await self._reach(
                    self._store.use_session(key, self.name, (), used=False, idle_seconds=self._idle_seconds)
                )
                facts = self._opened(key, row) if row is not None else None
                if row is None or facts is None:
                    return  # it has ended
                changed = change(facts)
                if changed == facts:
                    return
                if await self._reach(self._store.save_session(key, self._sealed(key, changed), row.version)):
                    break
        local = self._local.get(key)
        if local is not None:
            local.refresh(replace(changed, changes=row.version + 1))
        workers = [one for one in await self._reach(self._store.workers_of(key)) if one != self.name]
        await self._send(workers, {"kind": "refresh", "session": key.hex()})

    async def end(self, id_: str, reason: str) -> None:
        """End a session on all workers."""
        key = _key(id_)
        workers = [one for one in await self._reach(self._store.end_session(key)) if one != self.name]
        await self._send(workers, {"kind": "end", "session": key.hex(), "reason": reason})

    async def cancel(self, id_: str, request: RequestId) -> None:
        """Cancel a request that another worker serves."""
        key = _key(id_)
        workers = await self._reach(self._store.workers_of(key, *_names([request])))
        others = [one for one in workers if one != self.name]
        await self._send(others, {"kind": "cancel", "session": key.hex(), "request": request})

    async def is_served_by(self, id_: str, worker: str) -> bool:
        """Return whether another worker is alive and serves requests of a session."""
        return worker != self.name and worker in await self._reach(self._store.workers_of(_key(id_)))

    # Questions

    async def open_question(self, id_: str, question: str) -> None:
        """Have answers to a question sent to this worker."""
        self._questions[_key(id_), question] = None
        self._stirred.set()
        await self._reach(self._store.open_question(_key(id_), question, self.name))

    def close_question(self, id_: str, question: str) -> None:
        """Record in the background that this worker waits no longer."""
        self._questions.pop((_key(id_), question), None)
        self._later(self._store.close_question(_key(id_), question))

    async def answer(self, id_: str, response: Response) -> Delivery:
        """Hand an answer to the worker that asked, and return when it has it."""
        key, question = _key(id_), response.id
        if not isinstance(question, str):
            return Delivery.UNKNOWN  # all ids of questions are text
        message = {
            "kind": "answer",
            "session": key.hex(),
            "id": question,
            "result": response.result,
            "error": response.error,
        }
        mail = self._mail(message)
        delivery = await self._reach(self._store.answer_question(key, question, mail))
        if delivery is not Delivery.SENT:
            return delivery
        give_up, repeat = self._loop.time() + TAKEN_SECONDS, self._loop.time() + REPEAT_SECONDS
        while await self._reach(self._store.is_question_open(key, question)):
            if self._loop.time() > give_up:
                return Delivery.WORKER_GONE
            if self._loop.time() > repeat:
                repeat += REPEAT_SECONDS
                await self._reach(self._store.answer_question(key, question, mail))
            await asyncio.sleep(TAKEN_POLL_SECONDS)
        return Delivery.SENT

    # Changes

    async def listen(self) -> None:
        """Have this worker told of changes. Returns when the others know."""
        if not self._listening:
            await self._beat()
            self._stirred.set()

    def publish(self, change: Mapping[str, Any]) -> None:
        """Tell the clients of other workers of a change. May be called from any thread."""
        with suppress(RuntimeError):  # the loop is closed, and this worker gone
            self._loop.call_soon_threadsafe(self._note_change, to_json(change))

    def _note_change(self, change: bytes) -> None:
        self._changes[change] = None
        self._changed.set()

    async def _send_changes(self) -> None:
        while not self._stopping:
            await self._changed.wait()
            self._changed.clear()
            while self._changes:
                change = next(iter(self._changes))
                del self._changes[change]
                mail = self._mail({"kind": "change", "change": from_json(change)})
                with suppress(SessionsUnavailable):  # the change is lost, as it would be if the client were away
                    await self._reach(self._store.send_to_listeners(self.name, mail))

    # Mail

    async def _fetch(self) -> None:
        """Fetch mail while this worker has something that mail could be for."""
        while not self._stopping:
            if not self._local and not self._questions and not self._wants_changes():
                self._stirred.clear()
                await self._stirred.wait()
                continue
            try:
                pause = self._store.pause(urgent=bool(self._questions))
                if pause:
                    self._stirred.clear()
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await self._stirred.wait()
                messages = await self._reach(self._store.receive(self.name))
            except SessionsUnavailable:
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for mail in messages:
                try:
                    await self._received(mail)
                except SessionsUnavailable:  # logged already
                    continue
                except Exception:  # one message must not keep the others from arriving
                    logger.exception("a message from another worker could not be handled")

    async def _received(self, mail: bytes) -> None:
        try:
            message: dict[str, Any] = from_json(self._seal.open_shared("mail", mail))
        except (InvalidRequestState, ValueError) as error:
            logger.warning("a message from another worker was refused: %s", error)
            return
        if message["kind"] == "change":
            self._take_change(message["change"])
            return
        key = bytes.fromhex(message["session"])
        session = self._local.get(key)
        if session is None:
            return
        if message["kind"] == "answer":
            session.answered(Response(message["id"], message["result"], message["error"]))
        elif message["kind"] == "cancel":
            session.cancelled(message["request"])
        elif message["kind"] == "end":
            session.ended(message["reason"])
        elif message["kind"] == "refresh":
            row = await self._reach(
                self._store.use_session(key, self.name, (), used=False, idle_seconds=self._idle_seconds)
            )
            facts = self._opened(key, row) if row is not None else None
            if facts is not None:
                session.refresh(facts)

    async def _send(self, workers: Sequence[str], message: Mapping[str, Any]) -> None:
        if workers:
            await self._reach(self._store.send(workers, self._mail(message)))

    def _mail(self, message: Mapping[str, Any]) -> bytes:
        return self._seal.close_shared("mail", to_json(message))

    # Signs of life

    async def _beat(self) -> None:
        listening = self._wants_changes()
        await self._reach(self._store.beat(self.name, listening=listening))
        self._listening = listening

    async def _live(self) -> None:
        swept = self._loop.time()
        while not self._stopping:
            await asyncio.sleep(BEAT_SECONDS)
            with suppress(SessionsUnavailable):
                await self._beat()
                await self._reach(self._store.retain(self.name, list(self._requests), list(self._questions)))
                idle = self._idle_seconds
                if idle is not None and swept + min(idle / 10, SWEEP_SECONDS) <= self._loop.time():
                    swept = self._loop.time()
                    await self._reach(self._store.end_idle_sessions(idle))

    # The store

    async def _reach(self, work: Awaitable[T]) -> T:
        try:
            return await work
        except (StoreUnavailable, StoreFull) as error:
            logger.error("%s", str(error) or "the store is full")
            raise SessionsUnavailable from None

    def _later(self, work: Awaitable[None]) -> None:
        async def run() -> None:
            with suppress(SessionsUnavailable):
                await self._reach(work)

        task = asyncio.create_task(run(), name="bespeak worker, release")
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _sealed(self, key: bytes, facts: SessionFacts) -> bytes:
        stored = replace(facts, changes=0)
        return self._seal.close_shared(f"session {key.hex()}", _facts.dump_json(stored))

    def _opened(self, key: bytes, row: SessionRow) -> SessionFacts | None:
        """Return what a record says; `None` if it was sealed with other keys, or for another session."""
        try:
            facts = _facts.validate_json(self._seal.open_shared(f"session {key.hex()}", row.record))
            return replace(facts, changes=row.version)
        except (InvalidRequestState, ValidationError) as error:
            logger.warning("the record of a session was refused: %s", error)
            return None


def _key(id_: str) -> bytes:
    """A digest, because the id is all that a client needs to use the session."""
    return blake2b(id_.encode(), digest_size=16).digest()


def _names(requests: Sequence[RequestId]) -> list[str]:
    """Ids of requests as text: 1 and "1" are two ids."""
    return [to_json(id_).decode() for id_ in requests]
