"""The order of the questions of a round in a cassette. Servers may ask in any order, so it means nothing."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bespeak.conversation.json_values import as_object
from bespeak.conversation.question_names import name_of


def in_order(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the turns with the questions of each round in one order: the order of a server's questions means nothing."""
    told = [dict(turn) for turn in turns]
    for turn in told:
        if "asked" in turn:
            turn["asked"] = sorted(turn["asked"], key=place_of)
        for name in ("listed", "answered"):
            if isinstance(turn.get(name), list):
                turn[name] = by_id(turn[name])
    return told


def place_of(asked: Mapping[str, Any]) -> tuple[str, str]:
    """Where a question is recorded: by its name, and by its content, because the end of its key depends on its wording."""
    return name_of(asked["key"]), json.dumps(asked["request"], sort_keys=True)


def by_id(listed: list[Any]) -> list[Any]:
    """Return a list of the compatibility dialect, by the ids of its entries."""

    def id_of(one: Any) -> str:
        id_: Any = as_object(one).get("id")
        return id_ if isinstance(id_, str) else ""

    return sorted(listed, key=id_of)
