"""The tools, prompts and resources of a mock, derived from the calls that were recorded."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bespeak.testing.mock.tapes import Step

_TYPES: Sequence[tuple[type, str]] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def capabilities_of(steps: Sequence[Step]) -> dict[str, Any]:
    """Return the capabilities of a server that has what was recorded."""
    methods = {step.method for step in steps}
    found: dict[str, Any] = {
        name: {}
        for name in ("tools", "prompts", "resources")
        if any(method.startswith(f"{name}/") for method in methods)
    }
    if "completion/complete" in methods:
        found["completions"] = {}
    heard = {one["method"] for step in steps for turn in _turns(step) for one in turn.get("notifications", [])}
    return {**found, "logging": {}} if "notifications/message" in heard else found


def _turns(step: Step) -> Iterable[Mapping[str, Any]]:
    return (step.tape.turns[number] for number in range(step.number, step.end + 1))


def listing(method: str, steps: Sequence[Step]) -> dict[str, Any] | None:
    """Return the result of a list method, in the form of the latest revision.

    `None` for any other method, and if nothing of the feature was recorded: then the mock does not declare it.
    """
    made = _LISTS.get(method)
    if made is None or method.partition("/")[0] not in capabilities_of(steps):
        return None
    name, called, entry = made
    found: dict[str, list[Mapping[str, Any]]] = {}
    for step in steps:
        if step.method == called:
            target = step.sent.get("name", step.sent.get("uri"))
            found.setdefault(str(target), []).append(step.sent.get("arguments", {}))
    entries = [entry(target, arguments) for target, arguments in found.items()]
    return {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", name: entries}


def _tool(name: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    properties = {one: _schema([call[one] for call in calls if one in call]) for one in _names(calls)}
    required = [one for one in properties if all(one in call for call in calls)]
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {"name": name, "inputSchema": {**schema, "required": required} if required else schema}


def _schema(values: Sequence[Any]) -> dict[str, Any]:
    """The type that all values have; any if they differ."""
    kinds = {next((name for kind, name in _TYPES if isinstance(value, kind)), "null") for value in values}
    return {"type": kinds.pop()} if len(kinds) == 1 else {}


def _prompt(name: str, calls: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    named = [{"name": one, "required": all(one in call for call in calls)} for one in _names(calls)]
    return {"name": name, "arguments": named} if named else {"name": name}


def _resource(uri: str, _: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"uri": uri, "name": uri}


def _names(calls: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for call in calls for name in call))


_LISTS: Mapping[str, tuple[str, str, Callable[[str, Sequence[Mapping[str, Any]]], dict[str, Any]]]] = {
    "tools/list": ("tools", "tools/call", _tool),
    "prompts/list": ("prompts", "prompts/get", _prompt),
    "resources/list": ("resources", "resources/read", _resource),
    "resources/templates/list": ("resourceTemplates", "", _resource),
}
