"""`MockServer`: serves recorded conversations over every transport, in the eras in which they were recorded."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from mcp_types import SERVER_INFO_META_KEY

from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import METHOD_NOT_FOUND, UNSUPPORTED_PROTOCOL_VERSION, MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import LegacyRequest, Request, write_error, write_result
from bespeak.protocol.versions import SPOKEN, is_modern
from bespeak.server.running import RunnableServer
from bespeak.testing.mock.mock_peer import MockPeer
from bespeak.testing.mock.playback import Match, Playback, check_declared
from bespeak.testing.mock.recorded_lists import capabilities_of, listing
from bespeak.testing.mock.recorded_replies import notifications_of, recorded_error
from bespeak.testing.mock.tapes import Tape
from bespeak.transports.interfaces import Notify, OpenQuestions, SessionPeer, SharedSessions, WrittenResponse

INFO = {"name": "bespeak-mock", "version": "1"}


class MockServer(RunnableServer):
    """A server that answers as another one did when it was recorded."""

    def __init__(self, tapes: Sequence[Tape]) -> None:
        super().__init__()
        self._playback = Playback(tapes)
        recorded = {tape.revision for tape in tapes}
        self.revisions = [version for version in SPOKEN if version in recorded]
        """The revisions at which something was recorded, newest first."""

    @property
    def ready(self) -> bool:
        return True

    @property
    def attended(self) -> bool:
        return True

    @property
    def shared_sessions(self) -> SharedSessions | None:
        return None

    def peer(
        self,
        unaskable: AskingObstacle | None = None,
        assumed: str | None = None,
        other_workers: OpenQuestions | None = None,
    ) -> SessionPeer:
        return MockPeer(self._playback, [one for one in self.revisions if not is_modern(one)], INFO, assumed)

    def end_subscriptions(self) -> None:
        """Nothing of a recording ever changes, so nobody listens."""

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        yield

    def straight(self, message: Any, headers: Headers) -> None:
        """Return `None`: a recording has no tools that could be called."""

    def straight_older(self, request: LegacyRequest, version: str, headers: Headers) -> None:
        """Return `None`, for the same reason."""

    async def answer(
        self, request: Request, notify: Notify, headers: Headers | None = None, *, raise_exceptions: bool = False
    ) -> WrittenResponse:
        try:
            result = await self._result(request, notify)
        except MCPError as error:
            return WrittenResponse(write_error(request.id, error), error.code)
        meta = {SERVER_INFO_META_KEY: INFO, **result.get("_meta", {})}
        return WrittenResponse(write_result(request.id, {**result, "_meta": meta}))

    async def _result(self, request: Request, notify: Notify) -> dict[str, Any]:
        version = request.meta.protocol_version
        if version not in self.revisions:
            raise self._not_spoken(version, request.method)
        steps = self._playback.steps(version)
        if request.method == "server/discover":
            spoken = [one for one in self.revisions if is_modern(one)]
            found = {"supportedVersions": spoken, "capabilities": capabilities_of(steps)}
            return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **found}
        listed = listing(request.method, steps)
        if listed is not None and not any(step.method == request.method for step in steps):
            return listed
        match = self._playback.find(version, request.method, request.params)
        turn, recorded = match.step.response, match.step.tape.recorded
        if "asked" in turn:
            check_declared(recorded.questions(turn).values(), request.meta.capabilities)
        for message in notifications_of(match.step, match.step.end, request.meta):
            waiting = notify(message)
            if waiting is not None:
                await waiting
        if "error" in turn:
            raise recorded_error(recorded.error(turn))
        return self._with_state(recorded.result(turn), match)

    def _with_state(self, result: dict[str, Any], match: Match) -> dict[str, Any]:
        if "state" not in match.step.response:
            return result
        return {**result, "requestState": self._playback.hand_out(match)}

    def _not_spoken(self, version: str, method: str) -> MCPError:
        """The error for a revision at which nothing was recorded, in words that make a client of both eras shake hands."""
        if method == "server/discover" and not any(map(is_modern, self.revisions)):
            return MCPError(METHOD_NOT_FOUND, "server/discover is not known: nothing was recorded at 2026-07-28")
        data = {"supported": self.revisions, "requested": version}
        return MCPError(UNSUPPORTED_PROTOCOL_VERSION, f"nothing was recorded at revision {version}", data)
