"""Prints the messages between a client and a server: the rounds of a call, or the questions pushed during it."""

import json
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from bespeak.protocol.question_keys import bare_name
from bespeak.transports.interfaces import Ask, Outgoing, Transport


class NarratedTransport:
    """A transport that prints every `tools/call` that passes through another transport."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._round = 0
        self._pushed: dict[Any, str] = {}

    @property
    def sends_headers(self) -> bool:
        return self._inner.sends_headers

    async def __aenter__(self) -> "NarratedTransport":
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(kind, error, traceback)

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None], ask: Ask | None = None) -> bytes:
        called = request.method == "tools/call"
        if called:
            self._told_request(json.loads(request.message)["params"], older=ask is not None)
        response = await self._inner.exchange(request, notify, self._overheard(ask) if ask else None)
        if called:
            _tell_result(json.loads(response)["result"])
        return response

    async def say(self, message: bytes, headers: Mapping[str, str]) -> None:
        said = json.loads(message)
        if said.get("id") in self._pushed:
            _tell("client -> server", f"{self._pushed[said['id']]}: {_answer(said['result'])}")
        await self._inner.say(message, headers)

    async def begin(self, headers: Mapping[str, str], notify: Callable[[bytes], None], ask: Ask) -> None:
        await self._inner.begin(headers, notify, self._overheard(ask))

    def _overheard(self, ask: Ask) -> Ask:
        def hear(question: dict[str, Any]) -> None:
            params = question["params"]
            self._pushed[question["id"]] = name = _short(params["_meta"]["bespeak/key"])
            _tell("server -> client", f"{name} asks: {params['message']}")
            ask(question)

        return hear

    def _told_request(self, params: dict[str, Any], *, older: bool) -> None:
        self._round = self._round + 1 if "requestState" in params else 1
        answers = {_short(key): _answer(answer) for key, answer in params.get("inputResponses", {}).items()}
        with_answers = f", answering {answers}" if answers else ""
        call = f"{params['name']}({json.dumps(params['arguments'])}){with_answers}"
        _tell("client -> server", call, "call" if older else f"round {self._round}")


def _tell_result(result: dict[str, Any]) -> None:
    if result.get("resultType") == "input_required":
        for key, question in result["inputRequests"].items():
            _tell("server -> client", f"{_short(key)} asks: {question['params']['message']}")
        _tell("", f"(progress sealed in {len(result['requestState'])} characters)")
    else:
        outcome = "failed" if result["isError"] else "done"
        _tell("server -> client", f"{outcome}: {' '.join(result['content'][0]['text'].split())}")


def _tell(way: str, what: str, when: str = "") -> None:
    print(f"  {when:<7}  {way:<16}   {what}")


def _answer(answer: dict[str, Any]) -> Any:
    return answer.get("content", answer.get("action"))


def _short(key: str) -> str:
    """The resolver in a question's key."""
    return bare_name(key).rpartition(":")[2]
