"""A model, scalar, Literal or Enum and the flat form schema the protocol allows; reading what a person filled in."""

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, cast, get_args, get_origin

import typing_extensions
from pydantic import (
    BaseModel,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema, to_json

from bespeak.resolve.flat import check_content, check_value
from bespeak.resolve.hints import arms, fields_of, is_class, peel, spell, strays
from bespeak.resolve.refusals import refusals

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
    adapter: TypeAdapter[Any]
    single: bool
    closed: bool = False
    decode: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """For choices whose values are not strings: property, wire string, value."""
    nullable: frozenset[str] = frozenset()
    unshown: frozenset[str] = frozenset()
    """Names by which the model would read a field, though the form does not show them."""
    absent: frozenset[str] = frozenset()
    """Properties that the form does not require, though the model does: left out, they are null."""

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
        shown = self.schema["properties"]
        read = {name: value for name, value in content.items() if name in shown or name not in self.unshown}
        filled = dict.fromkeys(self.absent) | read
        try:
            answer = self._read(filled)
        except ValidationError as error:
            raise Refused("; ".join(refusals(error, {} if self.single else filled))) from None
        return answer.value if self.single else answer

    def _read(self, content: dict[str, Any]) -> Any:
        """Read as JSON, so that a strict model still takes dates; choices whose values are not JSON, as Python."""
        decoded = {name: self._decode(name, value) for name, value in content.items()}
        plain = {name: _plain_all(value) if name in self.decode else value for name, value in decoded.items()}
        try:
            return self.adapter.validate_json(to_json(plain, fallback=str))
        except ValidationError as as_json:
            if not any(detail["loc"] and detail["loc"][0] in self.decode for detail in as_json.errors()):
                raise
            try:
                return self.adapter.validate_python(decoded)
            except ValidationError as as_python:
                # The way of reading that does not suit the model complains of more than the person did.
                raise min(as_python, as_json, key=ValidationError.error_count) from None

    def _decode(self, name: str, value: Any) -> Any:
        wires = self.decode.get(name)
        if wires is None or value is None:
            return value
        return [wires[item] for item in cast("list[str]", value)] if isinstance(value, list) else wires[value]


_MOST_FORMS = 1000
_forms: dict[Any, Form] = {}


def form_of(wanted: Any, choices: Mapping[str, str] | None = None) -> Form:
    """The form for a type, rendered once. Raises `FormError` for what the protocol does not allow."""
    if choices is not None:
        return _chosen(wanted, choices)
    try:
        # Equal is not the same: Literal["a", "b"] == Literal["b", "a"], and the two are different questions.
        known = _forms.get((wanted, repr(wanted)))
    except TypeError:
        return _render(wanted)
    if known is None:
        if len(_forms) >= _MOST_FORMS:  # types made per call must not pile up
            _forms.clear()
        known = _forms[wanted, repr(wanted)] = _render(wanted)
    return known


def secret_names(form: Form) -> list[str]:
    """Fields that are merely named like a secret."""
    return [name for name in form.schema["properties"] if any(word in name.lower() for word in _SECRET_NAMES)]


def _chosen(wanted: Any, choices: Mapping[str, str]) -> Form:
    given: Any = choices
    texts: list[Any] = [*given, *given.values()] if isinstance(given, Mapping) else []
    if not texts or not all(isinstance(text, str) for text in texts):
        raise FormError("`choices` must map at least one string to its title", "write choices={'ord-1': 'Order 1'}")
    options = [{"const": value, "title": title} for value, title in choices.items()]
    if wanted is not str:
        raise FormError(f"`choices` needs str, not {spell(wanted)}", "ask for str and convert it yourself")
    shown: dict[str, Any] = {"title": "Value", "type": "string", "oneOf": options}
    schema = {"type": "object", "properties": {SINGLE: shown}, "required": [SINGLE]}
    return Form(schema, TypeAdapter[Any](_one_value(wanted)), single=True)


def _one_value(wanted: Any) -> type[BaseModel]:
    return create_model("Answer", value=(wanted, ...))


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
    name = spell(core)
    single = not _is_structured(core)
    for where in strays(core):
        raise FormError(f"{name} has a `Resolve` {where}, and a form is filled by the client", "remove the marker")
    _refuse_unaskable(core, name)
    try:
        adapter = TypeAdapter[Any](_one_value(wanted) if single else wanted)
        generator = _Generator(by_alias=_reads_aliases(adapter.core_schema, name))
        schema = generator.generate(adapter.core_schema, mode="validation")
    except PydanticInvalidForJsonSchema as error:
        raise FormError(f"{name} has a field with no JSON schema: {error.message}", _ASKABLE) from None
    except (PydanticSchemaGenerationError, PydanticUserError, AttributeError) as error:
        reason = str(getattr(error, "message", error)).splitlines()[0]
        raise FormError(f"{name} cannot be asked for: {reason}", _ASKABLE) from None
    defs: dict[str, Any] = schema.get("$defs", {})
    root = _deref(schema, defs)
    fixed = (
        {one.name for one in dataclasses.fields(core) if not one.init} if dataclasses.is_dataclass(core) else set[str]()
    )
    properties: dict[str, Any] = {}
    decode: dict[str, Mapping[str, Any]] = {}
    nullable: set[str] = set()
    for key, shown in root.get("properties", {}).items():
        if key in fixed:
            continue
        flat = _deref(shown, defs)
        if flat.pop(_NULLABLE, False):
            nullable.add(key)
        properties[key] = _flatten(flat, defs, key, name, generator.choices, decode)
    demanded: list[str] = root.get("required", [])
    required = [key for key in demanded if key not in nullable]
    return Form(
        {"type": "object", "properties": properties, **({"required": required} if required else {})},
        adapter,
        single,
        closed=root.get("additionalProperties") is False,
        decode=decode,
        nullable=frozenset(nullable),
        absent=frozenset(demanded) & nullable,
        unshown=frozenset(_names_of(adapter.core_schema)) - properties.keys(),
    )


def _refuse_unaskable(core: Any, name: str) -> None:
    """Refuse what the rendered schema would no longer show: secrets, and aliases that reach into structures."""
    fields = [(f"field {key!r} of {name}", hint) for key, hint, _ in fields_of(core)] if isinstance(core, type) else []
    for where, hint in fields or [(name, core)]:
        if _mentions_secret(hint):
            raise _secret(where)


def _named(schema: Any) -> Iterable[tuple[str, Any]]:
    """The fields of a structure, by name."""
    while "schema" in schema:
        schema = schema["schema"]
    fields: Any = schema.get("fields", ())
    return (
        cast("dict[str, Any]", fields).items() if isinstance(fields, dict) else ((one["name"], one) for one in fields)
    )


def _names_of(schema: Any) -> Iterable[str]:
    """Every name, and every first step of a path, under which a field may be read."""
    for key, one in _named(schema):
        yield key
        alias: Any = one.get("validation_alias")
        for path in cast("list[Any]", alias) if isinstance(alias, list) else [alias]:
            steps = cast("list[Any]", path) if isinstance(path, list) else [path]
            yield from (step for step in steps[:1] if isinstance(step, str))


def _has_flat_name(alias: Any) -> bool:
    """Whether an alias, or one of several, is a plain name rather than a path into a structure."""
    if not isinstance(alias, list):
        return True
    path = cast("list[Any]", alias)
    return any(map(_has_flat_name, path)) if isinstance(path[0], list) else len(path) == 1


def _secret(what: str) -> FormError:
    return FormError(
        f"{what} is a secret, and the protocol forbids secrets in forms",
        "send the person to a page of your own with a URL question, so that the secret never passes the client",
    )


def _reads_aliases(schema: Any, name: str) -> bool:
    """Whether a structure reads its fields by their aliases. Refuses aliases that no property of a form can have."""
    by_alias = True
    inner = schema
    while "schema" in inner:
        by_alias = by_alias and inner.get("config", {}).get("validate_by_alias") is not False
        inner = inner["schema"]
    for key, one in _named(schema):
        if by_alias and not _has_flat_name(one.get("validation_alias")):
            raise FormError(f"field {key!r} of {name} is read from inside a structure, and a form is flat", _ASKABLE)
    return by_alias


def _mentions_secret(hint: Any) -> bool:
    for arm in arms(hint):
        owner = get_origin(arm) or arm
        if is_class(owner) and issubclass(owner, (SecretStr, SecretBytes, Secret)):
            return True
        if any(map(_mentions_secret, get_args(arm))):
            return True
    return False


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
    what = f"field {name!r} of {owner}" if name != SINGLE else owner
    if shown.get("format") == "password" or shown.get("writeOnly"):
        raise _secret(what)
    flat = {key: shown[key] for key in ("title", "description") if key in shown}
    if kind == "array":
        items = _deref(shown.get("items", {}), defs)
        titled = items.get("anyOf", [])
        if "enum" not in items and not (titled and all("const" in option for option in titled)):
            raise FormError(
                f"{what} is a free list, and a form has only lists of choices", "use list[Literal[...]] or an Enum"
            )
        index: int | None = items.get(_CHOICE)
        offered = {"anyOf": items["anyOf"]} if "anyOf" in items else {"type": "string", "enum": items["enum"]}
        flat |= {"type": "array", "items": offered}
    elif kind == "object" or (kind is None and "properties" in shown):
        raise FormError(f"{what} is nested, and a form is flat", "ask for its fields one by one, or chain resolvers")
    elif kind not in _KEPT:
        raise FormError(f"{what} has no single plain type", _ASKABLE)
    else:
        index = shown.get(_CHOICE)
        flat["type"] = kind
        if "oneOf" in shown:
            flat["oneOf"] = shown["oneOf"]
        elif "enum" in shown and kind == "string":
            flat["enum"] = shown["enum"]
    default = shown.get("default")
    if index is not None:
        offered_values = choices[index]
        default = _default_wire(offered_values, default)
        if any(wire != value or isinstance(value, Enum) for wire, value in offered_values.items()):
            decode[name] = offered_values
    flat |= {key: shown[key] for key in _KEPT[kind] if key in shown}
    if kind == "integer":
        _inclusive(flat, shown)
    if kind == "string" and shown.get("format") in _FORMATS:
        flat["format"] = shown["format"]
    if default is not None and check_value(flat, default) is None:
        flat["default"] = default
    return flat


def _default_wire(offered: Mapping[str, Any], default: Any) -> Any:
    """A default as the client would send it."""
    if isinstance(default, list):
        return [_default_wire(offered, item) for item in cast("list[Any]", default)]
    return next((wire for wire, value in offered.items() if value == default and type(value) is type(default)), default)


def _inclusive(flat: dict[str, Any], shown: Mapping[str, Any]) -> None:
    if "exclusiveMinimum" in shown:
        flat["minimum"] = max(math.floor(shown["exclusiveMinimum"]) + 1, flat.get("minimum", -math.inf))
    if "exclusiveMaximum" in shown:
        flat["maximum"] = min(math.ceil(shown["exclusiveMaximum"]) - 1, flat.get("maximum", math.inf))


class _Generator(GenerateJsonSchema):
    """Pydantic's JSON schema with choices as strings, and without unions for `None` and decimals."""

    def __init__(self, by_alias: bool = True) -> None:
        super().__init__(by_alias=by_alias)
        self.choices: list[dict[str, Any]] = []

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        members = list(dict.fromkeys(cast("list[Enum]", schema["members"])))  # aliases name a member twice
        wires = [_enum_wire(member) for member in members]
        by_value = all(isinstance(member.value, str) for member in members)
        shown = self._choice(wires, [member.value if by_value else member for member in members])
        return {"title": schema["cls"].__name__, **shown}

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        expected = [value for value in schema["expected"] if value is not None]
        shown = self._choice([str(_plain(value)) for value in expected], expected)
        return {**shown, _NULLABLE: True} if len(expected) < len(schema["expected"]) else shown

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return {**self.generate_inner(schema["schema"]), _NULLABLE: True}

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        bounds = {"minimum": schema.get("ge"), "maximum": schema.get("le")}
        return {"type": "number", **{key: float(bound) for key, bound in bounds.items() if bound is not None}}

    def encode_default(self, dft: Any) -> Any:
        if isinstance(dft, Enum):
            return _enum_wire(dft)
        if isinstance(dft, Decimal):
            return float(dft)
        if isinstance(dft, (list, tuple, set, frozenset)):
            return [self.encode_default(item) for item in cast("list[Any]", dft)]
        return super().encode_default(dft)

    def _choice(self, wires: list[str], values: list[Any]) -> JsonSchemaValue:
        twice = [wire for wire in wires if wires.count(wire) > 1]
        if twice:
            raise FormError(f"two choices would both travel as {twice[0]!r}", "give them values or names that differ")
        self.choices.append(dict(zip(wires, values, strict=True)))
        return {"type": "string", "enum": wires, _CHOICE: len(self.choices) - 1}


def _enum_wire(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else member.name


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value


def _plain_all(value: Any) -> Any:
    return [_plain(item) for item in cast("list[Any]", value)] if isinstance(value, list) else _plain(value)
