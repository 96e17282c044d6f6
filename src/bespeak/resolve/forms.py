"""A model, scalar, Literal or Enum and the flat form schema the protocol allows; reading what a person filled in."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast

import typing_extensions
from pydantic import BaseModel, RootModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, to_json

from bespeak.resolve.hints import peel, spell, strays

SINGLE = "value"
"""The property that carries the answer when a form asks for one value."""

_FORMATS = {"email", "uri", "date", "date-time"}
_SECRET_NAMES = ("password", "passwd", "secret", "token", "api_key", "apikey", "private_key", "credential")
_KEPT = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}
_CHOICE, _NULLABLE = "x-choice", "x-nullable"


class FormError(Exception):
    """The protocol does not allow such a form; `fix` says what to do instead."""

    def __init__(self, problem: str, fix: str) -> None:
        self.fix = fix
        super().__init__(problem)


class Refused(Exception):
    """The author's model refuses an answer that fits the flat schema: a person's slip."""


@dataclass(frozen=True, slots=True)
class Form:
    """One type as a form: the schema the client is shown, and how to read what comes back."""

    schema: dict[str, Any]
    read: Callable[[dict[str, Any]], Any]
    single: bool
    closed: bool
    decode: Mapping[str, Mapping[str, Any]]
    """For choices whose values are not strings: property, wire string, value."""
    nullable: frozenset[str]

    def faults(self, content: Mapping[str, Any]) -> list[str]:
        """How the content breaks the flat schema, read strictly. Empty when it does not."""
        given = {name: value for name, value in content.items() if value is not None or name not in self.nullable}
        found = check_content(self.schema, given)
        if self.closed:
            known = self.schema["properties"]
            found += [f"{name}: unknown field" for name in content if name not in known]
        return found

    def value(self, content: Mapping[str, Any]) -> Any:
        """The author's value for content that fits the flat schema; raises `Refused` with the validator's words."""
        decoded = {name: self._decode(name, value) for name, value in content.items()}
        try:
            answer = self.read(decoded)
        except ValidationError as error:
            raise Refused("; ".join(_words(detail, self.single) for detail in error.errors())) from None
        return answer.value if self.single else answer

    def _decode(self, name: str, value: Any) -> Any:
        wires = self.decode.get(name)
        if wires is None or value is None:
            return value
        return [wires[item] for item in cast("list[str]", value)] if isinstance(value, list) else wires[value]


def _words(detail: Any, single: bool) -> str:
    message: str = detail["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    where = ".".join(str(part) for part in detail["loc"])
    return message if single or not where else f"{where}: {message}"


_forms: dict[Any, Form] = {}


def form_of(wanted: Any, choices: Mapping[str, str] | None = None) -> Form:
    """The form for a type, rendered once. Raises `FormError` for what the protocol does not allow."""
    if choices is not None:
        return _chosen(wanted, choices)
    try:
        known = _forms.get(wanted)
    except TypeError:
        return _render(wanted)
    if known is None:
        known = _forms[wanted] = _render(wanted)
    return known


def secret_names(form: Form) -> list[str]:
    """Fields that are merely named like a secret."""
    return [name for name in form.schema["properties"] if any(word in name.lower() for word in _SECRET_NAMES)]


def _chosen(wanted: Any, choices: Mapping[str, str]) -> Form:
    texts: list[Any] = [*choices, *choices.values()]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise FormError("`choices` must map at least one string to its title", "write choices={'ord-1': 'Order 1'}")
    options = [{"const": value, "title": title} for value, title in choices.items()]
    if wanted is not str:
        raise FormError(f"`choices` needs str, not {spell(wanted)}", "ask for str and convert it yourself")
    shown: dict[str, Any] = {"title": "Value", "type": "string", "oneOf": options}
    schema = {"type": "object", "properties": {SINGLE: shown}, "required": [SINGLE]}
    return Form(schema, _one_value(wanted).model_validate, True, False, {}, frozenset())


def _one_value(wanted: Any) -> type[BaseModel]:
    try:
        return create_model("Answer", value=(wanted, ...))
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise FormError(f"{spell(wanted)} cannot be asked for: {error.message.splitlines()[0]}", _ASKABLE) from None


_ASKABLE = "ask for a flat model of str, int, float, bool, Literal, Enum or list[Literal], or for one of these"


def _is_structured(wanted: Any) -> bool:
    if not isinstance(wanted, type):
        return False
    if issubclass(wanted, BaseModel):
        return not issubclass(wanted, RootModel)
    cls = cast("type[Any]", wanted)
    return dataclasses.is_dataclass(cls) or typing_extensions.is_typeddict(cls)


def _render(wanted: Any) -> Form:
    core = peel(wanted).core
    single = not _is_structured(core)
    for where in strays(core):
        raise FormError(
            f"{spell(core)} has a `Resolve` {where}, and a form is filled by the client", "remove the marker"
        )
    model: Any = _one_value(wanted) if single else wanted
    adapter = TypeAdapter[Any](model)
    generator = _Generator(by_alias=True)
    try:
        schema = generator.generate(adapter.core_schema, mode="validation")
    except PydanticInvalidForJsonSchema as error:
        raise FormError(f"{spell(core)} has a field with no JSON schema: {error.message}", _ASKABLE) from None
    defs: dict[str, Any] = schema.get("$defs", {})
    root = _deref(schema, defs)
    properties: dict[str, Any] = {}
    decode: dict[str, Mapping[str, Any]] = {}
    nullable: set[str] = set()
    for name, shown in root.get("properties", {}).items():
        flat = _deref(shown, defs)
        if flat.pop(_NULLABLE, False):
            nullable.add(name)
        properties[name] = _flatten(flat, defs, name, spell(core), generator.choices, decode)
    required = [name for name in root.get("required", []) if name not in nullable]
    flat_schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        flat_schema["required"] = required
    closed = root.get("additionalProperties") is False
    return Form(flat_schema, _reader(adapter), single, closed, decode, frozenset(nullable))


def _reader(adapter: TypeAdapter[Any]) -> Callable[[dict[str, Any]], Any]:
    def read(content: dict[str, Any]) -> Any:
        # JSON mode, so that a strict model still reads dates; a choice's own value may not be JSON, though.
        try:
            raw = to_json(content)
        except ValueError:
            return adapter.validate_python(content)
        return adapter.validate_json(raw)

    return read


def _deref(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(schema)
    while ref := flat.pop("$ref", None):
        flat = {**defs[ref.removeprefix("#/$defs/")], **flat}
    return flat


def _flatten(
    shown: dict[str, Any],
    defs: Mapping[str, Any],
    name: str,
    owner: str,
    choices: list[dict[str, Any]],
    decode: dict[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """One property within the protocol's grammar, or a `FormError`."""
    kind = shown.get("type")
    field = f"field {name!r} of {owner}" if name != SINGLE else owner
    if shown.get("format") == "password" or shown.get("writeOnly"):
        raise FormError(
            f"{field} is a secret, and the protocol forbids secrets in forms",
            "send the person to a page of your own with a URL question, so that the secret never passes the client",
        )
    flat = {key: shown[key] for key in ("title", "description") if key in shown}
    if kind == "array":
        items = _deref(shown.get("items", {}), defs)
        if not ("enum" in items or "anyOf" in items):
            raise FormError(
                f"{field} is a free list, and a form has only lists of choices", "use list[Literal[...]] or an Enum"
            )
        index: int | None = items.get(_CHOICE)
        offered = {"anyOf": items["anyOf"]} if "anyOf" in items else {"type": "string", "enum": items["enum"]}
        flat |= {"type": "array", "items": offered}
    elif kind == "object" or (kind is None and "properties" in shown):
        raise FormError(f"{field} is nested, and a form is flat", "ask for its fields one by one, or chain resolvers")
    elif kind not in _KEPT:
        raise FormError(f"{field} has no single plain type", _ASKABLE)
    else:
        index = shown.get(_CHOICE)
        flat["type"] = kind
        if "oneOf" in shown:
            flat["oneOf"] = shown["oneOf"]
        elif "enum" in shown:
            flat["enum"] = shown["enum"]
    if index is not None and any(wire is not value for wire, value in choices[index].items()):
        decode[name] = choices[index]
    flat |= {key: shown[key] for key in _KEPT[kind] if key in shown}
    if kind == "integer":
        _inclusive(flat, shown)
    if kind == "string" and shown.get("format") in _FORMATS:
        flat["format"] = shown["format"]
    if shown.get("default") is not None and _check_value(flat, shown["default"]) is None:
        flat["default"] = shown["default"]
    return flat


def _inclusive(flat: dict[str, Any], shown: Mapping[str, Any]) -> None:
    if "exclusiveMinimum" in shown:
        flat["minimum"] = math.floor(shown["exclusiveMinimum"]) + 1
    if "exclusiveMaximum" in shown:
        flat["maximum"] = math.ceil(shown["exclusiveMaximum"]) - 1


class _Generator(GenerateJsonSchema):
    """Pydantic's JSON schema with choices as strings, and without unions for `None` and decimals."""

    def __init__(self, by_alias: bool = True) -> None:
        super().__init__(by_alias=by_alias)
        self.choices: list[dict[str, Any]] = []

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        shown = self._choice({_enum_wire(member): member.value for member in cast("list[Enum]", schema["members"])})
        return {"title": schema["cls"].__name__, **shown}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        return self._choice({str(_plain(value)): _plain(value) for value in schema["expected"]})

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return {**self.generate_inner(schema["schema"]), _NULLABLE: True}

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        bounds = {"minimum": schema.get("ge"), "maximum": schema.get("le")}
        return {"type": "number", **{key: float(bound) for key, bound in bounds.items() if bound is not None}}

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, Enum):
            return _enum_wire(dft)
        if isinstance(dft, (list, tuple, set, frozenset)):
            return [self.encode_default(item) for item in cast("list[Any]", dft)]
        return super().encode_default(dft)

    def _choice(self, offered: dict[str, Any]) -> JsonSchemaValue:
        self.choices.append(offered)
        return {"type": "string", "enum": list(offered), _CHOICE: len(self.choices) - 1}


def _enum_wire(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else member.name


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def check_content(schema: Mapping[str, Any], content: Mapping[str, Any]) -> list[str]:
    """How form content breaks a flat schema, a peer's included: one line a fault, without the content itself."""
    properties: Mapping[str, Any] = schema.get("properties") or {}
    found = [f"{name}: is required" for name in schema.get("required") or () if name not in content]
    for name, value in content.items():
        shown = properties.get(name)
        if isinstance(shown, Mapping) and (problem := _check_value(cast("Mapping[str, Any]", shown), value)):
            found.append(f"{name}: {problem}")
    return found


def _check_value(shown: Mapping[str, Any], value: Any) -> str | None:
    kind = shown.get("type")
    if kind == "string":
        return _check_string(shown, value)
    if kind == "boolean":
        return None if isinstance(value, bool) else "must be true or false"
    if kind in ("integer", "number"):
        return _check_number(shown, value, whole=kind == "integer")
    if kind == "array":
        return _check_list(shown, value)
    return None


def _offered(shown: Mapping[str, Any]) -> list[Any] | None:
    titled = shown.get("oneOf") or shown.get("anyOf")
    return [option.get("const") for option in titled] if titled else shown.get("enum")


def _check_string(shown: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    offered = _offered(shown)
    if offered is not None and value not in offered:
        return "must be one of the choices on offer"
    if len(value) < shown.get("minLength", 0):
        return f"must have at least {shown['minLength']} characters"
    if len(value) > shown.get("maxLength", math.inf):
        return f"must have at most {shown['maxLength']} characters"
    return None


def _check_number(shown: Mapping[str, Any], value: Any, *, whole: bool) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return "must be a whole number" if whole else "must be a number"
    if whole and value != int(value):
        return "must be a whole number"
    if value < shown.get("minimum", -math.inf):
        return f"must be at least {shown['minimum']}"
    if value > shown.get("maximum", math.inf):
        return f"must be at most {shown['maximum']}"
    return None


def _check_list(shown: Mapping[str, Any], value: Any) -> str | None:
    if not isinstance(value, list):
        return "must be a list of choices"
    items = cast("list[Any]", value)
    if any(_check_string({"type": "string", **shown.get("items", {})}, item) for item in items):
        return "must hold only choices on offer"
    if len(items) < shown.get("minItems", 0):
        return f"must hold at least {shown['minItems']} choices"
    if len(items) > shown.get("maxItems", math.inf):
        return f"must hold at most {shown['maxItems']} choices"
    return None
