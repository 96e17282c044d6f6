"""Worker processes on ports of their own that share one store, are killed and start again."""

import asyncio
import contextlib
import os
import random
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bespeak.state.seal import KEYS_VARIABLE
from storm.book import BOOK_VARIABLE
from storm.ports import reserved_ports
from storm.records import Exit

TILL = Path(__file__).parent / "till.py"
WORKERS = 4
LEAST_READY = 2
"""How many workers are spared, so that clients are always served."""
START_SECONDS = 30.0
STOP_SECONDS = 20.0
POLL_SECONDS = 0.05
STOPPED = (0, -signal.SIGTERM)
"""The statuses of a worker that was told to stop."""


class Worker:
    """One worker, through all its lives."""

    def __init__(self, port: int, command: list[str], environment: dict[str, str], log: Path) -> None:
        self.port = port
        self.log = log
        self._command = command
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self.ready = False
        """Whether it listens."""

    @property
    def pid(self) -> int:
        assert self._process is not None, "it was started"
        return self._process.pid

    @property
    def status(self) -> int | None:
        assert self._process is not None, "it was started"
        return self._process.poll()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment
            )

    async def end(self, number: signal.Signals) -> int:
        """Send a signal, and return the exit status. A worker that does not stop in time is killed."""
        assert self._process is not None, "it was started"
        self.ready = False
        self._process.send_signal(number)
        try:
            return await asyncio.to_thread(self._process.wait, STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return await asyncio.to_thread(self._process.wait)

    async def listen(self) -> None:
        """Return when it listens, or has ended. Raises `TimeoutError` if that takes too long."""
        async with asyncio.timeout(START_SECONDS):
            while self.status is None:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                    writer.close()
                    self.ready = True
                    return
                await asyncio.sleep(POLL_SECONDS)


class Fleet:
    """All workers of a storm."""

    def __init__(self, workers: list[Worker]) -> None:
        self.workers = workers
        self.killed: list[int] = []
        self.exits: list[Exit] = []

    async def start(self) -> None:
        for worker in self.workers:
            worker.start()
        await asyncio.gather(*(worker.listen() for worker in self.workers))
        if not all(worker.ready for worker in self.workers):
            raise ConnectionError(f"a worker did not start:\n{self.workers[0].log.read_text()}")

    async def kill_some(self, chance: random.Random, shortest: float, longest: float) -> None:
        """Kill a random worker after each pause and start it again at once, until cancelled."""
        starting: set[asyncio.Task[None]] = set()
        try:
            while True:
                await asyncio.sleep(chance.uniform(shortest, longest))
                for worker in self._note_exits():
                    self._start_again(worker, starting)
                ready = [worker for worker in self.workers if worker.ready]
                if len(ready) > LEAST_READY:
                    worker = chance.choice(ready)
                    self.killed.append(worker.pid)
                    await worker.end(signal.SIGKILL)
                    self._start_again(worker, starting)
        finally:
            await asyncio.gather(*starting)

    def _note_exits(self) -> list[Worker]:
        """Return the workers that have exited by themselves."""
        exited: list[Worker] = []
        for worker in self.workers:
            status = worker.status
            if status is not None and worker.pid not in self.killed:
                worker.ready = False
                self.exits.append(Exit(worker.pid, status))
                exited.append(worker)
        return exited

    def _start_again(self, worker: Worker, starting: set[asyncio.Task[None]]) -> None:
        worker.start()
        task = asyncio.create_task(worker.listen())
        starting.add(task)
        task.add_done_callback(starting.discard)

    async def stop(self) -> None:
        """Stop all workers, and note those that do not stop in order."""
        running = [worker for worker in self.workers if worker.status is None]
        self._note_exits()
        statuses = await asyncio.gather(*(worker.end(signal.SIGTERM) for worker in running))
        self.exits += [
            Exit(worker.pid, status) for worker, status in zip(running, statuses, strict=True) if status not in STOPPED
        ]


@asynccontextmanager
async def fleet(store: str, directory: Path, book: Path) -> AsyncGenerator[Fleet]:
    """Start workers with one store and one set of keys, with their logs in a directory. All are gone when the block ends."""
    environment = {**os.environ, KEYS_VARIABLE: secrets.token_urlsafe(32), BOOK_VARIABLE: str(book)}
    run = [sys.executable, "-m", "bespeak.cli", "run", str(TILL), "--http", "--store", store, "--port"]
    with reserved_ports(WORKERS) as ports:
        workers = [
            Worker(port, [*run, str(port)], environment, directory / f"worker-{number}.log")
            for number, port in enumerate(ports)
        ]
        made = Fleet(workers)
        try:
            await made.start()
            yield made
        finally:
            for worker in workers:
                if worker.status is None:
                    await worker.end(signal.SIGKILL)
