"""Tells a person what travels between a client and a server, round by round."""

import json
from collections.abc import Callable
from types import TracebackType
from typing import Any

from bespeak.transports.transport import Outgoing, Transport


class NarratedTransport:
    """A transport that prints the `tools/call` rounds passing through another one."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._round = 0

    @property
    def mirrors(self) -> bool:
        return self._inner.mirrors

    async def __aenter__(self) -> "NarratedTransport":
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._inner.__aexit__(kind, error, traceback)

    async def exchange(self, request: Outgoing, notify: Callable[[bytes], None]) -> bytes:
        response = await self._inner.exchange(request, notify)
        if request.method == "tools/call":
            self._tell(json.loads(request.message)["params"], json.loads(response))
        return response

    def _tell(self, params: dict[str, Any], response: dict[str, Any]) -> None:
        self._round = self._round + 1 if "requestState" in params else 1
        sent = json.dumps(params["arguments"])
        answers = {key.rpartition(":")[2]: _answer(answer) for key, answer in params.get("inputResponses", {}).items()}
        with_answers = f", answering {answers}" if answers else ""
        print(f"  round {self._round}  client -> server   {params['name']}({sent}){with_answers}")
        result = response["result"]
        if result["resultType"] == "input_required":
            for key, question in result["inputRequests"].items():
                print(f"           server -> client   {key.rpartition(':')[2]} asks: {question['params']['message']}")
            print(f"                              (progress sealed in {len(result['requestState'])} characters)")
        else:
            outcome = "failed" if result["isError"] else "done"
            print(f"           server -> client   {outcome}: {' '.join(result['content'][0]['text'].split())}")


def _answer(answer: dict[str, Any]) -> Any:
    return answer.get("content", answer.get("action"))
