"""The mock's side of a connection with a client of an older revision: the handshake, and recorded questions pushed again."""

import asyncio
import itertools
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, cast
from uuid import uuid4

from bespeak.conversation.json_values import as_object
from bespeak.protocol.errors import INVALID_PARAMS, INVALID_REQUEST, UNSUPPORTED_PROTOCOL_VERSION, MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.legacy import capabilities_at, result_at
from bespeak.protocol.messages import (
    LOG_LEVELS,
    LegacyRequest,
    Meta,
    Notification,
    Response,
    is_id,
    write_error,
    write_push,
    write_result,
)
from bespeak.protocol.question_keys import KEY_META
from bespeak.protocol.session_facts import SessionFacts
from bespeak.testing.mock.playback import Playback, check_declared, check_pushed_answer
from bespeak.testing.mock.recorded_lists import capabilities_of, listing
from bespeak.testing.mock.recorded_replies import notifications_of, recorded_error
from bespeak.testing.mock.tapes import Step
from bespeak.transports.interfaces import Channel, Notify, WrittenResponse


class MockPeer:
    """The mock's side of one handshake."""

    def __init__(
        self, playback: Playback, revisions: Sequence[str], info: Mapping[str, Any], assumed: str | None
    ) -> None:
        self._playback = playback
        self._revisions = revisions
        """The older revisions at which something was recorded, newest first."""
        self._info = info
        self.version = assumed
        self._declared: dict[str, Any] = {}
        self._log_level = "debug"
        self._ids = (f"mock-{secrets.token_hex(4)}-{number}" for number in itertools.count(1))
        self._open: dict[Any, asyncio.Future[Response]] = {}

    async def answer(
        self,
        request: LegacyRequest,
        channel: Channel,
        headers: Headers | None = None,
        *,
        raise_exceptions: bool = False,
    ) -> WrittenResponse:
        written = self.at_once(request)
        if written is not None:
            return written
        try:
            return WrittenResponse(write_result(request.id, await self._played(request, channel)))
        except MCPError as error:
            return WrittenResponse(write_error(request.id, error), error.code)

    def at_once(self, request: LegacyRequest) -> WrittenResponse | None:
        try:
            if request.method == "initialize":
                return WrittenResponse(write_result(request.id, self._initialize(request.params)))
            if request.method == "ping":
                return WrittenResponse(write_result(request.id, {}))
            if self.version is None:
                raise MCPError(INVALID_REQUEST, f"{request.method} was sent before initialize; send initialize first")
            if request.method == "logging/setLevel":
                if request.params.get("level") not in LOG_LEVELS:
                    raise MCPError(INVALID_PARAMS, f"level must be one of {', '.join(LOG_LEVELS)}")
                self._log_level = str(request.params["level"])
                return WrittenResponse(write_result(request.id, {}))
        except MCPError as error:
            return WrittenResponse(write_error(request.id, error), error.code)
        return None

    def _initialize(self, params: Mapping[str, Any]) -> dict[str, Any]:
        wanted, declared = params.get("protocolVersion"), params.get("capabilities")
        if not isinstance(wanted, str) or not isinstance(declared, dict):
            raise MCPError(INVALID_PARAMS, "initialize needs protocolVersion, a string, and capabilities, an object")
        if not self._revisions:
            data = {"supported": sorted({tape.revision for tape in self._playback.tapes}), "requested": wanted}
            raise MCPError(
                UNSUPPORTED_PROTOCOL_VERSION, "nothing was recorded at a revision that has a handshake", data
            )
        self.version = wanted if wanted in self._revisions else self._revisions[0]
        self._declared = capabilities_at(self.version, cast("dict[str, Any]", declared))
        capabilities = capabilities_of(self._playback.steps(self.version))
        return {"protocolVersion": self.version, "capabilities": capabilities, "serverInfo": dict(self._info)}

    async def _played(self, request: LegacyRequest, channel: Channel) -> dict[str, Any]:
        version = self.version or ""
        steps = self._playback.steps(version)
        listed = listing(request.method, steps)
        if listed is not None and not any(step.method == request.method for step in steps):
            return result_at(version, request.method, listed)
        match = self._playback.find(version, request.method, request.params)
        step = await self._asked(match.steps, channel, self._meta(version, request.params))
        if "error" in step.response:
            raise recorded_error(step.tape.recorded.error(step.response))
        return step.tape.recorded.result(step.response)

    async def _asked(self, steps: Sequence[Step], channel: Channel, meta: Meta) -> Step:
        """Push the recorded questions. Return the recording that was answered like this. Raises `MCPError`."""
        place = 0
        while True:
            step = steps[0]
            number = step.number + place
            for message in notifications_of(step, number, meta):
                waiting = channel.notify(message)
                if waiting is not None:
                    await waiting
            if place == len(step.pushed):
                return step
            for key, question in step.tape.recorded.questions(step.tape.turns[number]).items():
                check_declared([question], self._declared)
                steps = check_pushed_answer(steps, place, key, await self._push(channel, key, question))
            place += 1
            steps = [one for one in steps if one.looks_like(steps[0], place)]

    async def _push(self, channel: Channel, key: str, question: Mapping[str, Any]) -> Any:
        params = {**question.get("params", {}), "_meta": {KEY_META: key}}
        if params.get("mode") == "url":
            params["elicitationId"] = str(uuid4())
        id_, answer = next(self._ids), asyncio.get_running_loop().create_future()
        self._open[id_] = answer
        try:
            channel.push(write_push(id_, {"method": question["method"], "params": params}))
            response = cast("Response", await answer)
        except ConnectionError as error:
            raise MCPError(INVALID_REQUEST, f"the recorded question could not be sent: {error}") from None
        finally:
            del self._open[id_]
        if response.error is not None:
            raise MCPError(INVALID_REQUEST, f"diverged: the client answered the question {key!r} with an error")
        return response.result

    def _meta(self, version: str, params: Mapping[str, Any]) -> Meta:
        sent: Any = params.get("_meta")
        raw = as_object(sent)
        token = raw.get("progressToken")
        return Meta(version, self._declared, None, self._log_level, token if is_id(token) else None, raw)

    def heard(self, message: Notification | Response) -> None:
        if not isinstance(message, Response):
            return
        waiting = self._open.get(message.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def stand(self, notify: Notify) -> None:
        """Nothing of a recording ever changes."""

    def close(self, reason: str) -> None:
        for waiting in self._open.values():
            if not waiting.done():
                waiting.set_exception(ConnectionError(reason))

    async def listen(self) -> None:
        """Nothing of a recording ever changes."""

    def waits_for(self, response: Response) -> bool:
        return response.id in self._open

    # Several workers never share a mock.

    def facts(self) -> SessionFacts:
        return SessionFacts(self.version or "", self._declared, None, self._log_level)

    def restore(self, facts: SessionFacts) -> None:
        """There is no other worker that could know more."""

    def applied(self, request: LegacyRequest, facts: SessionFacts) -> SessionFacts:
        return facts
