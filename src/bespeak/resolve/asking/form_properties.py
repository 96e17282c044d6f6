"""Convert the JSON schema of a field to one property of a form, as far as the protocol allows."""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from enum import Enum
from typing import Any, cast

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from bespeak.protocol.forms import check_value
from bespeak.protocol.text_formats import FORMATS

SINGLE = "value"
"""The name of the property when a form asks for one value."""

_KEPT = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems"),
}


_CHOICE, NULLABLE = "x-choice", "x-nullable"


class FormError(Exception):
    """The protocol does not allow this form. Lists all of its faults, each with a fix."""

    def __init__(self, problem: str, fix: str, *more: tuple[str, str]) -> None:
        self.faults = tuple(dict.fromkeys([(problem, fix), *more]))
        super().__init__("; ".join(problem for problem, _ in self.faults))

    @property
    def fix(self) -> str:
        """The fix of the first fault."""
        return self.faults[0][1]

    @staticmethod
    def of(faults: Sequence[tuple[str, str]]) -> "FormError":
        """Return one error for all faults of a form."""
        return FormError(*faults[0], *faults[1:])


ASKABLE = "ask for a flat model of str, int, float, bool, Literal, Enum or list[Literal], or for one of these"


def secret(what: str) -> FormError:
    return FormError(
        f"{what} is a secret, and the protocol forbids secrets in forms",
        "send the person to a page of your own with a URL question, so that the client never sees the secret",
    )


def deref(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(schema)
    while ref := flat.pop("$ref", None):
        flat = {**defs[ref.removeprefix("#/$defs/")], **flat}
    return flat


def flatten(
    shown: dict[str, Any],
    defs: Mapping[str, Any],
    name: str,
    owner: str,
    choices: list[dict[str, Any]],
    decode: dict[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Return one property in the form the protocol allows. Raises `FormError` if there is none."""
    kind = shown.get("type")
    what = f"field {name!r} of {owner}" if name != SINGLE else owner
    if shown.get("format") == "password" or shown.get("writeOnly"):
        raise secret(what)
    flat = {key: shown[key] for key in ("title", "description") if key in shown}
    if kind == "array":
        items = deref(shown.get("items", {}), defs)
        titled = items.get("anyOf", [])
        if "enum" not in items and not (titled and all("const" in option for option in titled)):
            raise FormError(
                f"{what} is a list without fixed choices, and a form allows only lists of choices",
                "use list[Literal[...]] or a list of an Enum",
            )
        index: int | None = items.get(_CHOICE)
        offered = {"anyOf": items["anyOf"]} if "anyOf" in items else {"type": "string", "enum": items["enum"]}
        flat |= {"type": "array", "items": offered}
    elif kind == "object" or (kind is None and "properties" in shown):
        raise FormError(
            f"{what} is nested, and a form must be flat", "ask for its fields one by one, or chain resolvers"
        )
    elif kind not in _KEPT:
        raise FormError(f"{what} has no single plain type", ASKABLE)
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
    if kind == "string" and shown.get("format") in FORMATS:
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


class FormSchema(GenerateJsonSchema):
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
        shown = self._choice([str(plain(value)) for value in expected], expected)
        return {**shown, NULLABLE: True} if len(expected) < len(schema["expected"]) else shown

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return {**self.generate_inner(schema["schema"]), NULLABLE: True}

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
            raise FormError(f"two choices would both be sent as {twice[0]!r}", "give them different values or names")
        self.choices.append(dict(zip(wires, values, strict=True)))
        return {"type": "string", "enum": wires, _CHOICE: len(self.choices) - 1}


def _enum_wire(member: Enum) -> str:
    return member.value if isinstance(member.value, str) else member.name


def plain(value: Any) -> Any:
    return value.value if isinstance(value, Enum) else value
