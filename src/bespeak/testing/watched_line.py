"""A line that notes everything that goes over it, for the timeline of a report."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from bespeak.client.errors import CallbackFailed
from bespeak.conversation.connection import Line, Push, Received, Scripts, nothing
from bespeak.conversation.json_values import as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question
from bespeak.testing.report.timeline import Event, Step

MOST = 1000
"""How many events are kept."""
_NOT_SHOWN = ("_meta", "requestState")


class WatchedLine:
    """Passes everything on, and notes it."""

    def __init__(self, line: Line, heard: Callable[[], list[dict[str, Any]]] = list) -> None:
        """`heard` returns the notifications of the current request so far."""
        self._line = line
        self._so_far = heard
        self._heard = 0
        self._sent: dict[str, Any] | None = None
        self._called: dict[str, Any] | None = None
        self.events: list[Event] = []

    @property
    def version(self) -> str:
        return self._line.version

    async def send(self, method: str, params: dict[str, Any], push: Push, scripts: Scripts = nothing) -> Received:
        self._note_sent(method, params)
        self._heard = 0

        async def pushed(question: Question) -> Any:
            self._note_heard(self._so_far())
            self._note(Step.ASKS, {"inputRequests": {question.key: question.as_json()}})
            answer = await push(question)
            self._note(Step.ANSWER, {} if answer is None else {"inputResponses": {question.key: answer}})
            return answer

        try:
            received = await self._line.send(method, params, pushed, scripts)
        except CallbackFailed:  # `gave_up` says why
            self._note_heard(self._so_far())
            raise
        except Exception as error:
            self._note_heard(self._so_far())
            self._note(Step.NO_RESPONSE, {"reason": str(error) or type(error).__name__})
            raise
        self._note_heard(received.notifications)
        self._note_response(received.envelope)
        return received

    def gave_up(self, reason: str) -> None:
        """Note that the client does not go on, because it has no answer that it can send."""
        self._note(Step.GIVES_UP, {"reason": reason})

    def astray(self) -> list[Finding]:
        return self._line.astray()

    async def settle(self) -> None:
        await self._line.settle()

    def _note(self, step: Step, body: Mapping[str, Any], method: str = "", *, state: bool = False) -> None:
        if len(self.events) < MOST:
            self.events.append(Event(step, body, method, state))

    def _note_sent(self, method: str, params: dict[str, Any]) -> None:
        shown = {name: one for name, one in params.items() if name not in _NOT_SHOWN}
        state = "requestState" in params
        if params == self._sent:
            self._note(Step.AGAIN, {}, method, state=state)
        elif state or "inputResponses" in params:
            answers = {"inputResponses": shown.pop("inputResponses")} if "inputResponses" in shown else {}
            changed = {} if shown == self._called else shown
            self._note(Step.ANSWERS, {**changed, **answers}, method, state=state)
        else:
            self._called = shown
            self._note(Step.CALL, shown, method)
        self._sent = params

    def _note_heard(self, notifications: list[dict[str, Any]]) -> None:
        for one in notifications[self._heard :]:
            self._note(Step.NOTIFICATION, {"params": one.get("params")}, str(one.get("method")))
        self._heard = len(notifications)

    def _note_response(self, envelope: Any) -> None:
        message = as_object(envelope)
        error, result = message.get("error"), message.get("result")
        if isinstance(error, dict):
            self._note(Step.ERROR, cast("dict[str, Any]", error))
        elif isinstance(result, dict):
            members = cast("dict[str, Any]", result)
            shown = {name: one for name, one in members.items() if name not in (*_NOT_SHOWN, "resultType")}
            asks = members.get("resultType") == "input_required" or "inputRequests" in members
            self._note(Step.ASKS if asks else Step.RESULT, shown, state="requestState" in members)
        else:
            self._note(Step.NO_RESPONSE, {"reason": "the response cannot be read"})
