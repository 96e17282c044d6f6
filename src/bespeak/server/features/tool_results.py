"""What a tool returns: its output schema, and a returned value as a wire result."""

import dataclasses
import re
from types import CoroutineType
from typing import Any, cast, get_args, get_origin

import typing_extensions
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError, create_model

from bespeak.protocol import wire_types
from bespeak.resolve.reading.signatures import EMPTY
from bespeak.resolve.reading.type_hints import NO_SCHEMA, arms, is_unknown, owners, peel, spell
from bespeak.server.features.content import Audio, Image, blocks, content_blocks

_MOST_REASONS = 3
"""How many parts of a value a message says something about."""


class NoOutputSchema(Exception):
    """The return annotation gives no schema, although structured output was requested."""


class WrongReturn(Exception):
    """A tool returned something else than its return annotation says."""


class Output:
    """Converts the return values of one tool to results."""

    def __init__(self, name: str, returns: Any, structured: bool | None) -> None:
        self.schema: dict[str, Any] | None = None
        self._adapter: TypeAdapter[Any] | None = None
        self._wrapped = False
        self._name = name
        self._returns = returns
        self._plain = returns if returns in (str, bool, int) else None
        """A type whose values travel as they are."""
        if structured is not False and (hint := _structured_hint(returns)) is not None:
            self._build(name, hint)
        if structured and self.schema is None:
            raise NoOutputSchema(f"the return type of {name!r} cannot be described by a JSON Schema")

    def _build(self, name: str, hint: Any) -> None:
        core = peel(hint).core
        self._wrapped = not _is_object(core)
        title = f"{name}DictOutput" if get_origin(core) is dict and not self._wrapped else None
        try:
            shape: Any = create_model(f"{name}Output", result=(hint, ...)) if self._wrapped else hint
            adapter = TypeAdapter[Any](shape)
            schema = adapter.json_schema(by_alias=True, mode="serialization")
            self._adapter = TypeAdapter[Any](hint) if self._wrapped else adapter
        except NO_SCHEMA:
            return
        self.schema = {**schema, "title": title} if title else schema

    def result(self, value: Any) -> dict[str, Any]:
        """Return a return value as a `tools/call` result, without the members that are added to every result."""
        if (
            type(value) is str and self._plain is str and self._adapter is not None
        ):  # as below, for what most tools return
            content = [{"type": "text", "text": value}]
            return {"content": content, "structuredContent": {"result": value}, "isError": False}
        if wire_types.in_use() and isinstance(value, wire_types.CallToolResult):
            if self._adapter is not None and not value.is_error:
                promised: Any = value.structured_content or {}
                self._adapter.validate_python(promised.get("result") if self._wrapped else promised)
            return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"meta"}) | (
                {"_meta": value.meta} if value.meta else {}
            )
        if isinstance(value, CoroutineType):
            value.close()
            raise WrongReturn(
                f"the tool {self._name!r} returned a coroutine that was never awaited; write `return await ...`"
            )
        try:
            result: dict[str, Any] = {"content": blocks(value)}
        except (TypeError, ValueError) as error:  # pydantic wraps those that are found while it makes JSON
            told = str(error).removeprefix("Error serializing to JSON: ").removeprefix("TypeError: ")
            raise WrongReturn(f"the tool {self._name!r} returned what cannot be sent: {told}") from error
        if self._adapter is not None:
            try:
                structured = value if type(value) is self._plain else self._dumped(self._adapter, value)
            except ValidationError as error:
                raise WrongReturn(self._wrong(value, error)) from error
            result["structuredContent"] = {"result": structured} if self._wrapped else structured
        result["isError"] = False
        return result

    def _wrong(self, value: Any, error: ValidationError) -> str:
        returns = re.sub(r"\b\w+\.", "", spell(self._returns))  # without the names of modules
        inside = [one for one in error.errors(include_url=False) if one["loc"]]
        why = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in inside[:_MOST_REASONS])
        said = f"returned {spell(type(value))}, but its return annotation says {returns}"
        return f"the tool {self._name!r} {said}{f' ({why})' if why else ''}"

    @staticmethod
    def _dumped(adapter: TypeAdapter[Any], value: Any) -> Any:
        checked = adapter.validator.validate_python(value)
        return adapter.serializer.to_python(checked, mode="json", by_alias=True)


def error_result(text: str) -> dict[str, Any]:
    """Return a failed call as a result that the model can read."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _structured_hint(returns: Any) -> Any | None:
    """The part of a return annotation that has a schema; `None` if it has none."""
    if returns is EMPTY:
        return None
    members = [arm for arm in arms(returns) if not _asks_by_hand(arm)]
    if not members or any(is_unknown(arm) or _mentions_content(arm) for arm in members):
        return None
    if any(arm in (dict, list, tuple) or get_args(arm) == (Any,) for arm in members):
        return None  # whatever is in them, content blocks perhaps
    if len(members) == len(arms(returns)):
        return returns
    union: Any = members[0]
    for arm in members[1:]:
        union |= arm
    return union


def _mentions_content(hint: Any) -> bool:
    results = (wire_types.CallToolResult,) if wire_types.in_use() else ()
    unstructured = (*content_blocks(), Image, Audio, *results)
    return any(_is(owner, unstructured) for owner in owners(hint))


def _asks_by_hand(hint: Any) -> bool:
    return wire_types.in_use() and _is(hint, (wire_types.InputRequiredResult,))


def _is(hint: Any, classes: tuple[type[Any], ...]) -> bool:
    return isinstance(hint, type) and issubclass(cast("type[Any]", hint), classes)


def _is_object(core: Any) -> bool:
    """Whether values are JSON objects already, and need no wrapping."""
    if get_origin(core) is dict:
        return get_args(core)[0] is str
    owner = get_origin(core) or core
    if not isinstance(owner, type):
        return False
    if issubclass(owner, BaseModel):
        return not issubclass(owner, RootModel)
    cls = cast("type[Any]", owner)
    return dataclasses.is_dataclass(cls) or typing_extensions.is_typeddict(cls)
