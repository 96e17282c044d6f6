"""Recorded turns as a server would send them: with real keys in place of handles, and secrets put back."""

from collections.abc import Mapping
from typing import Any, cast

from bespeak.testing.cassettes.key_handles import KeyHandles
from bespeak.testing.redaction.redactor import Redactor


class RecordedTurns:
    """Turns the parts of a cassette back into what a server sends."""

    def __init__(self, handles: KeyHandles, redaction: Redactor) -> None:
        self._handles = handles
        self._redaction = redaction

    def questions(self, turn: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Return the questions of a turn, by key."""
        return {self._key(one["key"]): self._redaction.restored(one["request"]) for one in turn["asked"]}

    def notifications(self, turn: Mapping[str, Any]) -> list[dict[str, Any]]:
        return self._redaction.restored(turn.get("notifications", []))

    def error(self, turn: Mapping[str, Any]) -> dict[str, Any]:
        return self._redaction.restored(turn["error"])

    def result(self, turn: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a turn, without its state."""
        result: dict[str, Any] = dict(self._redaction.restored(turn["result"] if "result" in turn else turn["asking"]))
        if "asked" in turn:
            result["inputRequests"] = self.questions(turn)
        if "listed" in turn:
            result["inputRequests"] = [self._field(one) for one in turn["listed"]]
        return result

    def stored(self, value: Any) -> Any:
        """Return a value of the client as it would be recorded."""
        return self._handles.stored(value)

    def restored(self, value: Any) -> Any:
        """Return a recorded value with the secrets put back."""
        return self._redaction.restored(value)

    def _key(self, stored: str) -> str:
        return self._redaction.restored(self._handles.key(stored))

    def _field(self, stored: Any) -> Any:
        """A question in the compatibility dialect."""
        field = self._redaction.restored(stored)
        if not isinstance(stored, dict):
            return field
        id_: Any = cast("dict[str, Any]", stored).get("id")
        return {**field, "id": self._key(id_)} if isinstance(id_, str) else field
