"""Client capabilities: which ones a question requires, which ones a client lacks, and why it cannot be asked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bespeak.protocol.methods import ELICIT, SAMPLE

CLIENT_CAPABILITIES = ("elicitation", "sampling", "roots", "extensions", "experimental")
NotAskedReason = Literal["not_declared", "no_session", "no_way_back"]


@dataclass(frozen=True, slots=True)
class AskingObstacle:
    """Why a client cannot be asked a question."""

    reason: NotAskedReason
    """`not_declared`: the client did not declare the capability, or its revision does not know this kind of question.
    `no_session`: the server does not keep a session for this older client. `no_way_back`: the response is plain JSON, so
    there is no stream on which to ask."""
    words: str | None = None
    """The reason as a sentence; `None` if the client did not declare the capability."""


NOT_DECLARED = AskingObstacle("not_declared")


def requirements(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the client capabilities that a question requires."""
    if method == ELICIT:
        return {"elicitation": {"url" if params.get("mode") == "url" else "form": {}}}
    if method == SAMPLE:
        needs: dict[str, Any] = {"tools": {}} if "tools" in params or "toolChoice" in params else {}
        if params.get("includeContext", "none") != "none":
            needs["context"] = {}
        return {"sampling": needs}
    return {"roots": {}}


def lacking(requires: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Return the required capabilities that a client has not declared. `elicitation: {}` means form."""
    missing: dict[str, Any] = {}
    for name, parts in requires.items():
        has: Any = declared.get(name)
        given: Mapping[str, Any] = has
        if type(has) is not dict and not isinstance(has, Mapping):
            missing[name] = dict(parts)
            continue
        form = name == "elicitation" and "url" not in given
        absent = [part for part in parts if part not in given and not (form and part == "form")]
        if absent:
            missing[name] = {part: {} for part in absent}
    return missing


def merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    """Add the required capabilities `more` to `into`."""
    for name, parts in more.items():
        into.setdefault(name, {}).update(parts)


def capability_names(required: dict[str, Any]) -> list[str]:
    """Return the dotted names of required capabilities: `elicitation.form`, `sampling`."""
    names: list[str] = []
    for name, inner in required.items():
        names.extend(f"{name}.{key}" for key in inner) if inner else names.append(name)
    return names
