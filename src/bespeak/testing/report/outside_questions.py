"""Questions outside a call, in words: what a server asked, how often, and what it was told."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from bespeak.conversation.connection_answers import Outside
from bespeak.protocol.methods import ELICIT, ROOTS
from bespeak.terminal.safe_text import quoted, text_at
from bespeak.testing.report.results import Result

_TIMES = {1: "once", 2: "twice"}
_COUNT = re.compile(r" (once|twice|[0-9]+ times), outside a call, ")
NAME_SOME = "; roots: [FOLDER] beside its command or url names some"


class ToldOnce:
    """What a report has said of questions outside a call. A connection is shared, and all its tests would say the same."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str, str]] = set()

    def left(self, result: Result) -> Result:
        """Return a result without what was said of its server before."""
        left: list[str] = []
        for sentence in result.outside:
            key = result.suite, result.server, _COUNT.sub(" ", sentence, count=1)
            left += [] if key in self._told else [sentence]
            self._told.add(key)
        return replace(result, outside=left)


def outside_told(server: str, questions: Iterable[Outside]) -> list[str]:
    """Return a sentence for each question of a server that belonged to no call. Equal ones are counted."""
    counted = Counter((_asked(one), _reply(one)) for one in questions)
    return [
        f"server {server!r} {asked} {_TIMES.get(times, f'{times} times')}, outside a call, and {reply}"
        for (asked, reply), times in counted.items()
    ]


def _asked(one: Outside) -> str:
    if one.question.method == ROOTS:
        return "asked for roots"
    if one.question.method == ELICIT:
        return f"asked {quoted(text_at(one.question.params.get('message')))}"
    return "asked for a model's reply"


def _reply(one: Outside) -> str:
    error, result = one.reply.get("error"), one.reply.get("result")
    if isinstance(error, dict):
        told = f"got the error: {text_at(cast('dict[str, Any]', error).get('message'))}"
    elif one.question.method == ROOTS and isinstance(result, dict):
        roots: Any = cast("dict[str, Any]", result).get("roots")
        uris = [text_at(root.get("uri")) for root in cast("list[dict[str, Any]]", roots)]
        told = (
            f"was told: {', '.join(uris)}"
            if uris
            else f"was told that there are none{'' if one.prepared else NAME_SOME}"
        )
    else:
        told = f"was told: {json.dumps(result, ensure_ascii=False)}"
    return f"{told}; the answer of the suite could not be used: {one.problem}" if one.problem else told
