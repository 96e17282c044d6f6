"""Answers a server's questions with the client's callbacks, and checks each answer before it is sent."""

import asyncio
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from bespeak.aio.tasks import is_cancelled
from bespeak.client.callbacks import Callbacks, ClientRequestContext
from bespeak.client.errors import CallbackFailed, InvalidServerResponse, Undeclared
from bespeak.client.urls import check_url
from bespeak.protocol import wire_types
from bespeak.protocol.capabilities import lacking, requirements
from bespeak.protocol.forms import check_content
from bespeak.protocol.methods import ELICIT, SAMPLE

if TYPE_CHECKING:
    from bespeak.client.session import ClientSession


class CallbackAnswers:
    """Answers questions with a client's callbacks."""

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks

    def check_declared(self, key: str, question: Mapping[str, Any], pushed_to: Mapping[str, Any] | None = None) -> None:
        """Raises `Undeclared` for a question whose capability this client has not declared.

        `pushed_to` holds the capabilities that the handshake of the legacy era has declared.
        """
        needs = requirements(question["method"], question.get("params", {}))
        if pushed_to is not None:  # in that era it did not have to be declared
            needs.get("sampling", {}).pop("context", None)
        if lacking(needs, self._callbacks.capabilities() if pushed_to is None else pushed_to):
            raise Undeclared(
                f"the server asked {key!r} ({question['method']}), but the client did not declare that capability"
            )

    def check_url(self, key: str, question: Mapping[str, Any]) -> None:
        """Raises `InvalidServerResponse` if a question contains a URL that is not valid or not allowed."""
        params: Any = question.get("params", {})
        url: Any = params.get("url")
        if question["method"] != ELICIT or params.get("mode") != "url" or not isinstance(url, str):
            return
        fault = check_url(key, url, self._callbacks.url_schemes)
        if fault is not None:
            raise InvalidServerResponse(fault)

    async def answer(self, session: "ClientSession", key: str, question: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer to one question. Raises `CallbackFailed`, or `InvalidServerResponse` if the question is malformed."""
        method: str = question["method"]
        params: dict[str, Any] = question.get("params", {})
        context = ClientRequestContext(session, key, method)
        if method == ELICIT:
            self.check_url(key, question)
            return await self._elicit(context, params)
        if method == SAMPLE:
            typed = _typed(wire_types.CreateMessageRequestParams, key, params)
            wanted = (wire_types.CreateMessageResult, wire_types.CreateMessageResultWithTools)
            return _dump(await _call(self._callbacks.sampling, context, wanted, typed))
        return _dump(await _call(self._callbacks.list_roots, context, (wire_types.ListRootsResult,)))

    async def _elicit(self, context: ClientRequestContext, params: dict[str, Any]) -> dict[str, Any]:
        is_url = params.get("mode") == "url"
        typed = _typed(
            wire_types.ElicitRequestURLParams if is_url else wire_types.ElicitRequestFormParams, context.key, params
        )
        answer = await _call(self._callbacks.elicitation, context, (wire_types.ElicitResult,), typed)
        assert isinstance(answer, wire_types.ElicitResult), "_call refuses any other answer"
        if answer.action != "accept":
            return {"action": answer.action}
        if is_url:
            return {"action": "accept"}
        schema: dict[str, Any] = params["requestedSchema"]
        if answer.content is None and schema.get("properties"):
            raise CallbackFailed(context.key, context.method, "the callback accepted without content")
        content = answer.content or {}
        try:
            faults = check_content(schema, content)
        except (TypeError, AttributeError, KeyError, ValueError):
            raise InvalidServerResponse(f"the form of the question {context.key!r} is not a flat schema") from None
        if faults:
            raise CallbackFailed(
                context.key, context.method, f"the answer does not match the form: {'; '.join(faults)}"
            )
        return {"action": "accept", "content": content}


async def _call(
    callback: Any, context: ClientRequestContext, wanted: tuple[type[BaseModel], ...], *params: Any
) -> BaseModel:
    """Return the answer of a callback. Raises `CallbackFailed`, however the callback fails."""
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
    if isinstance(answer, wire_types.ErrorData):
        raise CallbackFailed(context.key, context.method, answer.message)
    if not isinstance(answer, wanted):
        names = " or ".join(model.__name__ for model in wanted)
        told = f"the callback returned {type(answer).__name__}, not {names}"
        if wanted == (wire_types.ElicitResult,):
            told += "; write `return ElicitResult(action='accept', content={...})`"
        raise CallbackFailed(context.key, context.method, told)
    return answer


def _typed(model: type[BaseModel], key: str, params: dict[str, Any]) -> BaseModel:
    try:
        return model.model_validate(params, by_name=False)
    except ValidationError:
        raise InvalidServerResponse(f"the params of the question {key!r} are not valid {model.__name__}") from None


def _dump(answer: BaseModel) -> dict[str, Any]:
    """Return an answer as it is sent: without the members that only a response has."""
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"result_type", "meta"})
