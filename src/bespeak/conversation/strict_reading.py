"""Reading a response strictly: faults in its JSON and its envelope that a lenient parser would not notice."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, cast

from bespeak.conversation.differences import shown
from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import no_constant
from bespeak.terminal.safe_text import quoted

DEEPEST = 200
"""How deeply a response may be nested."""


def read_strictly(response: bytes, id_: int) -> tuple[Any, list[Finding]]:
    """Parse a response, and find faults that a lenient parser would not notice."""
    findings: list[Finding] = []
    repeating: list[tuple[str, dict[str, Any]]] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        read = dict(pairs)
        if len(read) < len(pairs):
            twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
            repeating.append((twice, read))
        return read

    try:
        envelope: Any = json.loads(response, object_pairs_hook=members, parse_constant=no_constant)
    except (ValueError, RecursionError):
        return None, [Finding("envelope", "the response is not valid JSON")]
    if _depth(envelope) > DEEPEST:
        return None, [Finding("envelope", f"the response is nested more than {DEEPEST} levels deep")]
    questions = _questions_in(envelope)
    for name, where in repeating:
        if where is questions:
            findings.append(Finding("duplicate-key", f"the result has two questions with the key {quoted(name)}"))
        else:
            what = f"the response has the member {quoted(name)} twice in one object"
            findings.append(Finding("duplicate-member", what))
    if isinstance(envelope, dict):
        message = cast("dict[str, Any]", envelope)
        answered: Any = message.get("id")
        if message.get("jsonrpc") != "2.0":
            findings.append(Finding("envelope", "the response does not contain jsonrpc: 2.0"))
        if (answered != id_ or isinstance(answered, bool)) and not (answered is None and "error" in message):
            findings.append(
                Finding("envelope", f"the response has the id {shown(answered)}, which is not the id of its request")
            )
    return cast("Any", envelope), findings


def _questions_in(envelope: Any) -> Any:
    result: Any = as_object(envelope).get("result")
    return as_object(result).get("inputRequests")


def _depth(value: Any) -> int:
    """How many levels of arrays and objects there are."""
    depth, level = 0, [value]
    while level:
        level = [inner for one in level for inner in _inside(one)]
        depth += 1
    return depth - 1


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).values()
    return as_array(value)
