"""A tool's arguments: the schema the model sees, and reading what it sends."""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from typing import Annotated, Any, cast

from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic_core import SchemaError, SchemaValidator, core_schema, to_json

from bespeak.protocol.parameter_headers import unpacked
from bespeak.resolve.asking.validation_messages import refusals
from bespeak.resolve.errors import ToolError
from bespeak.resolve.reading.signatures import EMPTY, Parameter
from bespeak.resolve.reading.type_hints import NO_SCHEMA, peel, spell

MOST_REFUSALS = 20
"""How many faults of a call's arguments a message names. A request of one megabyte may have a hundred thousand."""


class InvalidArguments(ToolError):
    """The model's arguments do not fit the tool's parameters."""


class Unschemable(Exception):
    """Some parameters have types that JSON cannot represent. `problems` says what is wrong with each."""

    def __init__(self, problems: dict[str, str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems.values()))


class UnreadablePattern(Exception):
    """A hand-written schema has a pattern that cannot be read."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        super().__init__(f"cannot read the pattern {pattern!r}")


class Arguments:
    """The parameters that the client fills, and nothing else."""

    def __init__(self, name: str, parameters: Sequence[Parameter], schema: dict[str, Any] | None = None) -> None:
        fields: dict[str, Any] = {}
        self._renamed: dict[str, str] = {}
        taken = {parameter.name for parameter in parameters}
        for parameter in parameters:
            field, definition = _field(parameter, taken)
            taken.add(field)
            fields[field] = definition
            if field != parameter.name:
                self._renamed[field] = parameter.name
        self._model, derived = _model(f"{name}Arguments", fields, parameters)
        self._validate = self._model.__pydantic_validator__.validate_python
        self.schema = {"type": "object", **derived} if schema is None else deepcopy(schema)
        fields_ = self._model.model_fields.items()
        self.sent_as = {self._renamed.get(key, key): tuple(_wire_names(key, info)) for key, info in fields_}
        """The names under which each parameter's argument may be sent."""
        self.wire_names = {name for names in self.sent_as.values() for name in names}
        """Every name under which something may be sent."""

    def other_names(self, name: str) -> set[str]:
        """Return the other names under which an argument may be sent."""
        fields = self._model.model_fields.items()
        taken = next((wire for key, info in fields if name in (wire := set(_wire_names(key, info)))), {name})
        return taken - {name}

    def read(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters' values, with defaults and without unknown arguments. Raises `InvalidArguments`."""
        try:
            values: dict[str, Any] = self._validate(sent).__dict__
        except ValidationError:
            values = self._read_as_json(sent)
        return {self._renamed.get(name, name): value for name, value in values.items()} if self._renamed else values

    def _read_as_json(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Read once more by the rules for JSON, under which a strict parameter takes a date as text.

        Some models write a list or an object as text; what would be refused is read so before it is.
        """
        try:
            written = to_json(sent)
        except ValueError as error:  # over a transport all of them came as JSON
            raise InvalidArguments(f"invalid arguments: {_unwritable(sent, error)}") from None
        try:
            return vars(self._model.model_validate_json(written))
        except ValidationError as error:
            opened = {name: unpacked(value) for name, value in sent.items()}
            if opened != sent:
                with suppress(ValidationError):
                    return vars(self._model.model_validate_json(to_json(opened)))
            found = refusals(error, sent)
            more = [f"and {len(found) - MOST_REFUSALS} more"] if len(found) > MOST_REFUSALS else []
            raise InvalidArguments(f"invalid arguments: {'; '.join([*found[:MOST_REFUSALS], *more])}") from None


def _unwritable(sent: dict[str, Any], error: ValueError) -> str:
    """The argument that cannot be written as JSON, and why. `error` is what writing all of them raised."""
    for name, value in sent.items():
        try:
            to_json({name: value})
        except ValueError as found:
            return (
                f"{ascii(name)[1:-1]}: JSON cannot carry it ({str(found).removeprefix('Error serializing to JSON: ')})"
            )
    raise error


def _field(parameter: Parameter, taken: set[str]) -> tuple[str, Any]:
    """A model field for a parameter; renamed where pydantic could not take the parameter's own name."""
    name, hint = parameter.name, parameter.hint
    if name.startswith("_") or hasattr(BaseModel, name):
        title = name.replace("_", " ").strip().title()
        peeled = peel(hint)
        hint = Annotated[(peeled.core, Field(alias=name, title=title), *peeled.metadata)]
        name = next(free for number in itertools.count() if (free := f"parameter_{number}") not in taken)
    return name, hint if parameter.default is EMPTY else (hint, parameter.default)


def _wire_names(key: str, info: FieldInfo) -> list[str]:
    alias = info.validation_alias or info.alias or key
    if isinstance(alias, AliasChoices):
        return [str(path[0]) for path in alias.convert_to_aliases()]
    return [str(alias.path[0])] if isinstance(alias, AliasPath) else [alias]


def _model(
    name: str, fields: dict[str, Any], parameters: Sequence[Parameter]
) -> tuple[type[BaseModel], dict[str, Any]]:
    """Return a model of parameters, and its schema. Raises `Unschemable`."""
    try:
        return _made(name, fields)
    except NO_SCHEMA:
        problems: dict[str, str] = {}
        for parameter in parameters:
            try:
                _made(name, dict([_field(parameter, set())]))
            except NO_SCHEMA as error:
                undefined = getattr(error, "code", None) == "class-not-fully-defined"
                reason = f": {str(error).splitlines()[0]}" if undefined else ""
                taken = spell(parameter.hint)
                problems[parameter.name] = (
                    f"parameter {parameter.name!r} takes {taken}, which JSON cannot represent{reason}"
                )
        raise Unschemable(problems) from None


def _made(name: str, fields: dict[str, Any]) -> tuple[type[BaseModel], dict[str, Any]]:
    model: type[BaseModel] = create_model(name, __config__=ConfigDict(protected_namespaces=()), **fields)
    return model, model.model_json_schema(by_alias=True)


_SAME_VALUE = ("allOf", "anyOf", "oneOf", "if", "then", "else", "not")
"""Keywords whose schemas speak of the same value, not of a part of it."""
_DEPENDENT = ("dependentRequired", "dependentSchemas", "dependencies")
"""Keywords that name a property, and what else there has to be if it is sent: other names, or a schema."""
_REFERENCES = ("$ref", "$dynamicRef")
_ANCHORS = ("$anchor", "$dynamicAnchor")

_Shows = Callable[[dict[str, Any], str], bool]


def shows(schema: Any, name: str) -> bool:
    """Return whether a hand-written schema has a property of this name at its top level. Raises `UnreadablePattern`."""

    def properties(here: dict[str, Any], name: str) -> bool:
        return (
            name in _mapping(here.get("properties"))
            or name in _list(here.get("required"))
            or any(_matches(pattern, name) for pattern in _mapping(here.get("patternProperties")))
            or any(name == key or name in _list(more) for key, more in _dependent(here))
            or _found(here.get("propertyNames"), name, _allows, schema)
        )

    return _found(schema, name, properties, schema)


def _allows(here: dict[str, Any], name: str) -> bool:
    """Whether a schema for the names of properties has this name among those that may be sent."""
    pattern = here.get("pattern")
    return (
        name in _list(here.get("enum"))
        or here.get("const") == name
        or (isinstance(pattern, str) and _matches(pattern, name))
    )


def _found(schema: Any, name: str, shown: _Shows, root: Any, seen: tuple[str, ...] = ()) -> bool:
    """Whether a schema shows a name, itself or through those that speak of the same value."""
    if not isinstance(schema, dict):
        return False
    here = cast("dict[str, Any]", schema)
    if shown(here, name):
        return True
    parts = [(part, seen) for keyword in _SAME_VALUE for part in _list(here.get(keyword)) or [here.get(keyword)]]
    parts += [(more, seen) for _, more in _dependent(here)]
    for reference in map(here.get, _REFERENCES):
        if isinstance(reference, str) and reference.startswith("#") and reference not in seen:
            parts += [(part, (*seen, reference)) for part in _referred(root, reference)]
    return any(_found(part, name, shown, root, before) for part, before in parts)


def _dependent(schema: dict[str, Any]) -> list[tuple[str, Any]]:
    return [one for keyword in _DEPENDENT for one in _mapping(schema.get(keyword)).items()]


def _matches(pattern: str, name: str) -> bool:
    """Whether a pattern is found in a name. Raises `UnreadablePattern`.

    Patterns in JSON Schema are those of ECMA-262. pydantic's engine reads more of them than Python's (`\\p{L}`), which is
    left with those that look around.
    """
    try:
        return SchemaValidator(core_schema.str_schema(pattern=pattern)).isinstance_python(name)
    except SchemaError:
        pass
    try:
        return re.search(pattern, name) is not None
    except (re.error, TypeError, OverflowError, RecursionError):
        raise UnreadablePattern(pattern) from None


def _referred(root: Any, reference: str) -> list[Any]:
    """The schemas that a reference may mean: the one at a path, or each with an anchor."""
    if reference != "#" and not reference.startswith("#/"):
        return [one for one in _inside(root) if reference[1:] in map(one.get, _ANCHORS)]
    for part in reference[2:].split("/") if reference[2:] else ():
        members = _mapping(root) or {str(place): one for place, one in enumerate(_list(root))}
        root = members.get(part.replace("~1", "/").replace("~0", "~"))
    return [root]


def _inside(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object in a schema."""
    if isinstance(schema, dict):
        yield cast("dict[str, Any]", schema)
    for part in (*_mapping(schema).values(), *_list(schema)):
        yield from _inside(part)


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
