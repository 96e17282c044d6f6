"""Drives a call through its rounds: answers what the server asks, and sends the same request again."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mcp_types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    ListRootsResult,
)
from pydantic import BaseModel, ValidationError

from bespeak.client.callbacks import CallbackContext, Callbacks
from bespeak.client.errors import CallbackFailed, InputRequiredRoundsExceededError, InvalidServerResponse
from bespeak.client.results import Asking, read_result
from bespeak.client.session import ClientSession
from bespeak.resolve.flat import check_content
from bespeak.resolve.questions import ELICIT, SAMPLE, lacking, requirements
from bespeak.resolve.tasks import is_cancelled

DIALOGS = 8
"""Questions of one round that are put to the callbacks at once."""
BACKOFF = (0.05, 0.25)
"""First and longest pause before a round that carries no answers, in seconds."""

Send = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Sends the request with some more members in its params; the raw result."""


class Driver:
    """Answers rounds with a client's callbacks."""

    def __init__(self, session: ClientSession, callbacks: Callbacks, max_rounds: int) -> None:
        self._session = session
        self._callbacks = callbacks
        self._max_rounds = max_rounds

    async def drive(self, send: Send, extra: dict[str, Any]) -> dict[str, Any]:
        """Send a request until its result asks nothing. The complete result, raw."""
        asked: list[list[str]] = []
        pause = BACKOFF[0]
        while True:
            result = await send(extra)
            asking = read_result(result)
            if asking is None:
                return result
            asked.append([_spell(key, question) for key, question in asking.questions.items()])
            if len(asked) > self._max_rounds:
                raise InputRequiredRoundsExceededError(self._max_rounds, asked)
            if asking.questions:
                pause = BACKOFF[0]
                extra = {"inputResponses": await self._answers(asking)}
            else:
                await asyncio.sleep(pause)
                pause = min(pause * 2, BACKOFF[1])
                extra = {}
            if asking.state is not None:
                extra["requestState"] = asking.state

    async def _answers(self, asking: Asking) -> dict[str, dict[str, Any]]:
        """The answers to all questions of a round, or one exception."""
        declared = self._callbacks.capabilities()
        for key, question in asking.questions.items():
            if lacking(requirements(question["method"], question.get("params", {})), declared):
                raise InvalidServerResponse(f"the server asked {key!r} ({question['method']}), which was not declared")
        if len(asking.questions) == 1:
            return {key: await self._answer(key, question) for key, question in asking.questions.items()}
        answers: dict[str, dict[str, Any]] = {}
        waiting = iter(asking.questions.items())

        async def work() -> None:
            for key, question in waiting:
                answers[key] = await self._answer(key, question)

        workers = [asyncio.create_task(work()) for _ in range(min(DIALOGS, len(asking.questions)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return {key: answers[key] for key in asking.questions}

    async def _answer(self, key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        method: str = question["method"]
        params: dict[str, Any] = question.get("params", {})
        context = CallbackContext(self._session, key, method)
        if method == ELICIT:
            return await self._elicit(context, params)
        if method == SAMPLE:
            typed = _typed(CreateMessageRequestParams, key, params)
            wanted = (CreateMessageResult, CreateMessageResultWithTools)
            return _dump(await _call(self._callbacks.sampling, context, wanted, typed))
        return _dump(await _call(self._callbacks.list_roots, context, (ListRootsResult,)))

    async def _elicit(self, context: CallbackContext, params: dict[str, Any]) -> dict[str, Any]:
        is_url = params.get("mode") == "url"
        typed = _typed(ElicitRequestURLParams if is_url else ElicitRequestFormParams, context.key, params)
        answer = await _call(self._callbacks.elicitation, context, (ElicitResult,), typed)
        if not isinstance(answer, ElicitResult) or answer.action != "accept":
            return {"action": getattr(answer, "action", "cancel")}
        if is_url:
            return {"action": "accept"}
        schema: dict[str, Any] = params["requestedSchema"]
        if answer.content is None and schema.get("properties"):
            raise CallbackFailed(context.key, context.method, "the callback accepted without content")
        content = answer.content or {}
        try:
            faults = check_content(schema, content)
        except (TypeError, AttributeError, KeyError, ValueError):
            raise InvalidServerResponse(f"the form of the question {context.key!r} is no flat schema") from None
        if faults:
            raise CallbackFailed(
                context.key, context.method, f"the answer does not match the form: {'; '.join(faults)}"
            )
        return {"action": "accept", "content": content}


async def _call(
    callback: Any, context: CallbackContext, wanted: tuple[type[BaseModel], ...], *params: Any
) -> BaseModel:
    """What a callback answers, whatever way it fails turned into one exception."""
    try:
        answer = callback(context, *params)
        if inspect.isawaitable(answer):
            answer = await answer
    except (Exception, asyncio.CancelledError) as error:
        if isinstance(error, asyncio.CancelledError) and is_cancelled():
            raise
        raise CallbackFailed(
            context.key, context.method, f"the callback raised {type(error).__name__}: {error}"
        ) from error
    if isinstance(answer, ErrorData):
        raise CallbackFailed(context.key, context.method, answer.message)
    if not isinstance(answer, wanted):
        names = " or ".join(model.__name__ for model in wanted)
        raise CallbackFailed(context.key, context.method, f"the callback returned {type(answer).__name__}, not {names}")
    return answer


def _typed(model: type[BaseModel], key: str, params: dict[str, Any]) -> BaseModel:
    try:
        return model.model_validate(params, by_name=False)
    except ValidationError:
        raise InvalidServerResponse(f"the params of the question {key!r} are no valid {model.__name__}") from None


def _dump(answer: BaseModel) -> dict[str, Any]:
    """An answer as it travels: the bare result, without the members of an envelope."""
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"result_type", "meta"})


def _spell(key: str, question: Mapping[str, Any]) -> str:
    message = question.get("params", {}).get("message")
    return f"{key} ({message[:200]})" if isinstance(message, str) else f"{key} ({question['method']})"
