"""Whose question is pushed next: one at a time, in graph order.

A push waits until every resolver before it that may ask has settled. None of them depends on it, so this
always happens.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from bespeak.protocol.capabilities import AskingObstacle


class Push(Protocol):
    """Puts questions to a client in mid-call."""

    def obstacle(self, request: Mapping[str, Any], missing: Mapping[str, Any]) -> AskingObstacle | None:
        """Why this client cannot be asked; `None` if it can. `missing` are the required capabilities it has not declared."""
        ...

    async def __call__(
        self, key: str, request: Mapping[str, Any], dropped: "asyncio.Future[None]"
    ) -> dict[str, Any] | None:
        """Return the client's answer, or `None` if `dropped` is done first: then the question is withdrawn.

        Raises `NotAnswered`.
        """
        ...


class Turns:
    """The pushes of one round."""

    def __init__(self, push: Push, places: Collection[int], *, alone: bool = False) -> None:
        self.push = push
        self._alone = alone
        """Whether resolvers run one after another, so that nothing can change between a question and its turn."""
        self._ahead = sorted(places)
        """The resolvers that may ask and have not settled, in graph order."""
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._dropped = asyncio.get_running_loop().create_future()

    async def ask(
        self,
        place: int,
        key: str,
        request: Mapping[str, Any],
        limit: Callable[[], int],
        begin: Callable[[], None] = lambda: None,
    ) -> dict[str, Any] | None:
        """Wait for this resolver's turn and return the client's answer; `None` if no more questions are asked.

        From the place `limit` on in graph order, there is no use in asking. `begin` is called when the question is asked.
        """
        if self._ahead[0] != place:
            turn = self._waiting[place] = asyncio.get_running_loop().create_future()
            await asyncio.wait({turn, self._dropped}, return_when=asyncio.FIRST_COMPLETED)
        if not self._alone:
            await asyncio.sleep(0)  # another resolver that is ready may end the call, and nobody need be asked
        if self._dropped.done() or place >= limit():
            return None
        begin()
        return await self.push(key, request, self._dropped)

    def settled(self, place: int) -> None:
        """A resolver is done: the next one may ask."""
        if place in self._ahead:
            self._ahead.remove(place)
        if self._ahead and (turn := self._waiting.pop(self._ahead[0], None)) is not None and not turn.done():
            turn.set_result(None)

    def drop(self) -> None:
        """Stop asking: the call cannot continue."""
        if not self._dropped.done():
            self._dropped.set_result(None)
