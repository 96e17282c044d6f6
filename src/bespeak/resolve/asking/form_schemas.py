"""Forms: the flat schema for a model, scalar, Literal or Enum, and reading what a person filled in."""

import dataclasses
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

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
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import to_json

from bespeak.protocol.forms import check_content, offered_by
from bespeak.resolve.asking.digests import canonical
from bespeak.resolve.asking.form_properties import (
    ASKABLE,
    NULLABLE,
    SINGLE,
    FormError,
    FormSchema,
    deref,
    flatten,
    plain,
    secret,
)
from bespeak.resolve.asking.form_refusals import may_refuse
from bespeak.resolve.asking.validation_messages import refusals
from bespeak.resolve.reading.misplaced_markers import fields_of, strays
from bespeak.resolve.reading.type_hints import NO_SCHEMA, is_class, owners, peel, spell

_SECRET_NAMES = ("password", "passwd", "secret", "token", "api_key", "apikey", "private_key", "credential")
_YES_WORDS = frozenset({"yes", "y", "ok", "okay", "true", "accept", "agree", "allow", "approve", "confirm", "proceed"})
EMPTY = "The form came back empty. Fill it in, even if you agree with what it suggests."
"""The note under a question whose form came back empty."""


class Refused(Exception):
    """A person's slip: the author's model rejects an answer that fits the flat schema, or a form came back empty.

    The person is asked again.
    """


@dataclass(frozen=True, slots=True)
class Form:
    """One type as a form: the schema the client is shown, and how to read the answer."""

    schema: dict[str, Any]
    adapter: TypeAdapter[Any]
    single: bool
    text: str
    """The schema as canonical text, for pins and logs."""
    closed: bool = False
    decode: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """For choices whose values are not strings: property, wire string, value."""
    nullable: frozenset[str] = frozenset()
    unshown: frozenset[str] = frozenset()
    """Names that the model accepts for a field, but that the form does not show."""
    absent: frozenset[str] = frozenset()
    """Properties that the model requires but the form does not: if left out, they are null."""
    prefilled: bool = False
    """Whether some field has a default other than `None`, so that an empty answer would choose it."""
    takes_tries: bool = False
    """Whether the author's model may refuse what fits the schema. Then an answer could be a guess, and their number is limited."""

    def is_left_empty(self, content: Mapping[str, Any]) -> bool:
        """Return whether a form with defaults came back without any of its fields."""
        return self.prefilled and self.schema["properties"].keys().isdisjoint(content)

    def faults(self, content: Mapping[str, Any]) -> list[str]:
        """Return the ways in which the content does not match the flat schema, read strictly. Empty if it does."""
        given = content
        if self.nullable:
            given = {name: value for name, value in content.items() if value is not None or name not in self.nullable}
        found = check_content(self.schema, given)
        if self.closed:
            known = self.schema["properties"]
            found += [f"{name}: unknown field" for name in content if name not in known]
        return found

    def value(self, content: Mapping[str, Any]) -> Any:
        """Return the author's value for content that fits the flat schema; raises `Refused` with the validator's
        message.
        """
        filled = {**dict.fromkeys(self.absent), **content}
        if self.unshown:
            shown = self.schema["properties"]
            filled = {name: value for name, value in filled.items() if name in shown or name not in self.unshown}
        try:
            answer = self._read(filled)
        except ValidationError as error:
            raise Refused("; ".join(refusals(error, {} if self.single else filled))) from None
        return answer.value if self.single else answer

    def _read(self, content: dict[str, Any]) -> Any:
        """Read as JSON, so that a strict model still takes dates; choices whose values are not JSON, as Python."""
        if not self.decode:
            return self.adapter.validator.validate_json(to_json(content, fallback=str))
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
                # The mode that does not suit the model reports more errors than the person made.
                raise min(as_python, as_json, key=ValidationError.error_count) from None

    def _decode(self, name: str, value: Any) -> Any:
        wires = self.decode.get(name)
        if wires is None or value is None:
            return value
        return [wires[item] for item in cast("list[str]", value)] if isinstance(value, list) else wires[value]


_MOST_FORMS = 1000
_forms: dict[Any, Form] = {}


def form_of(wanted: Any, choices: Mapping[str, str] | None = None, *, lenient: bool = False) -> Form:
    """Return the form for a type, rendered once. Raises `FormError` if the protocol does not allow it.

    A choice with a default is required all the same, because a default is not a consent; unless the form is `lenient`.
    """
    if choices is not None:
        return _chosen(wanted, choices)
    try:
        # Equal is not the same: Literal["a", "b"] == Literal["b", "a"], and the two are different questions.
        key = (wanted, lenient) if isinstance(wanted, type) else (wanted, repr(wanted), lenient)
        known = _forms.get(key)
    except TypeError:
        return _render(wanted, lenient=lenient)
    if known is None:
        if len(_forms) >= _MOST_FORMS:  # types made per call must not pile up
            _forms.clear()
        known = _forms[key] = _render(wanted, lenient=lenient)
    return known


def secret_names(form: Form) -> list[str]:
    """Return fields whose names suggest a secret."""
    return [name for name in form.schema["properties"] if any(word in name.lower() for word in _SECRET_NAMES)]


def yes_defaults(form: Form) -> list[str]:
    """Return fields whose default means yes."""
    return [name for name, shown in form.schema["properties"].items() if _means_yes(shown)]


def _means_yes(shown: Mapping[str, Any]) -> bool:
    default = shown.get("default")
    if isinstance(default, str) and offered_by(shown):
        return re.split("[^a-z]", default.lower(), maxsplit=1)[0] in _YES_WORDS
    return default is True


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
    for text in texts:
        text.encode()  # raises for what JSON cannot carry
    return Form(schema, TypeAdapter[Any](_one_value(wanted)), True, canonical(schema))


def _one_value(wanted: Any) -> type[BaseModel]:
    return create_model("Answer", value=(wanted, ...))


def _is_structured(wanted: Any) -> bool:
    if not isinstance(wanted, type):
        return False
    if issubclass(wanted, BaseModel):
        return not issubclass(wanted, RootModel)
    cls = cast("type[Any]", wanted)
    return dataclasses.is_dataclass(cls) or typing_extensions.is_typeddict(cls)


def _render(wanted: Any, *, lenient: bool) -> Form:
    core = peel(wanted).core
    name = spell(core)
    single = not _is_structured(core)
    faults = [
        (f"{name} has a `Resolve` {where}, but the client fills in a form", "remove the marker")
        for where in dict.fromkeys(strays(core))
    ]
    faults += [fault for error in _secrets(core, name) for fault in error.faults]
    if faults and single:
        raise FormError.of(faults)
    try:
        adapter = TypeAdapter[Any](_one_value(wanted) if single else wanted)
        generator = FormSchema(by_alias=_reads_aliases(adapter.core_schema, name))
        schema = generator.generate(adapter.core_schema, mode="validation")
    except FormError as error:
        raise FormError.of([*faults, *error.faults]) from None
    except PydanticInvalidForJsonSchema as error:
        raise FormError.of([*faults, (f"{name} has a field with no JSON schema: {error.message}", ASKABLE)]) from None
    except NO_SCHEMA as error:
        raise FormError.of(faults or [_no_form(core, name, error)]) from None
    defs: dict[str, Any] = schema.get("$defs", {})
    root = deref(schema, defs)
    fixed = (
        {one.name for one in dataclasses.fields(core) if not one.init} if dataclasses.is_dataclass(core) else set[str]()
    )
    typed_dict = typing_extensions.is_typeddict(core)  # what it does not demand is absent, and has no default
    properties: dict[str, Any] = {}
    decode: dict[str, Mapping[str, Any]] = {}
    nullable: set[str] = set()
    demanded: list[str] = root.get("required", [])
    defaulted: set[str] = set()
    for key, shown in root.get("properties", {}).items():
        if key in fixed:
            continue
        flat = deref(shown, defs)
        if flat.pop(NULLABLE, False):
            nullable.add(key)
        if key not in demanded and not typed_dict and flat.get("default", ...) is not None:
            defaulted.add(key)
        try:
            properties[key] = flatten(flat, defs, key, name, generator.choices, decode)
        except FormError as error:
            faults += error.faults
    if faults:
        raise FormError.of(faults)
    optional = properties.keys() - demanded - nullable if typed_dict else defaulted
    chosen = set[str]() if lenient else {key for key in optional if _is_choice(properties[key])}
    required = [key for key in properties if key in chosen or (key in demanded and key not in nullable)]
    flat_schema = {"type": "object", "properties": properties, **({"required": required} if required else {})}
    return Form(
        flat_schema,
        adapter,
        single,
        canonical(flat_schema),
        closed=root.get("additionalProperties") is False,
        decode=decode,
        nullable=frozenset(nullable),
        absent=frozenset(demanded) & nullable,
        unshown=frozenset(_names_of(adapter.core_schema)) - properties.keys(),
        prefilled=bool(defaulted),
        takes_tries=may_refuse(adapter.core_schema, properties),
    )


def _is_choice(shown: Mapping[str, Any]) -> bool:
    """Whether to leave a property to its default would be to choose. A list may stand for a choice of nothing."""
    if shown["type"] == "array":
        return bool(shown.get("default"))
    return shown["type"] == "boolean" or bool(offered_by(shown))


def _secrets(core: Any, name: str) -> list[FormError]:
    """An error for each field that is a secret. The rendered schema would no longer show it."""
    fields = [(f"field {key!r} of {name}", hint) for key, hint, _ in fields_of(core)] if isinstance(core, type) else []
    return [secret(where) for where, hint in fields or [(name, core)] if _mentions_secret(hint)]


def _no_form(core: Any, name: str, error: Exception) -> tuple[str, str]:
    """Return what is wrong with something that has no JSON schema, and what to write instead."""
    if isinstance(core, (dict, list, str)):
        return f"a {type(cast('Any', core)).__name__} is not the type of an answer", ASKABLE
    if isinstance(core, type) and core.__module__ != "builtins" and not _is_structured(core):
        return f"{name} is neither a pydantic model nor a dataclass", f"write class {name}(BaseModel)"
    reason = str(getattr(error, "message", error)).splitlines()[0]
    return f"{name} cannot be used in a form: {reason}", ASKABLE


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


def _reads_aliases(schema: Any, name: str) -> bool:
    """Whether a structure reads its fields by their aliases. Raises `FormError` for aliases that a form cannot have."""
    by_alias = True
    inner = schema
    while "schema" in inner:
        by_alias = by_alias and inner.get("config", {}).get("validate_by_alias") is not False
        inner = inner["schema"]
    for key, one in _named(schema):
        if by_alias and not _has_flat_name(one.get("validation_alias")):
            raise FormError(
                f"field {key!r} of {name} is read from inside a structure, and a form must be flat", ASKABLE
            )
    return by_alias


def _mentions_secret(hint: Any) -> bool:
    return any(is_class(owner) and issubclass(owner, (SecretStr, SecretBytes, Secret)) for owner in owners(hint))


def _plain_all(value: Any) -> Any:
    return [plain(item) for item in cast("list[Any]", value)] if isinstance(value, list) else plain(value)
