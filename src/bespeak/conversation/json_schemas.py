"""JSON Schemas of suites and servers: checked with jsonschema, but with a time limit for patterns.

In four keywords, jsonschema passes patterns to Python's engine, which cannot be stopped. These four are implemented here.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from functools import cache, reduce
from typing import Any, cast

from bespeak.conversation.differences import join
from bespeak.conversation.patterns import Expression, PatternTimeout
from bespeak.protocol.text_formats import FORMATS
from bespeak.terminal.safe_text import printable
from bespeak.transports.interfaces import MissingExtra

_VALUES = ("const", "enum", "default", "examples")
"""Keywords that hold values, not schemas."""
DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The dialect of a schema that does not name one."""
LONGEST_CHECK = 2.0
"""How long a value may be checked against a schema of a server, in seconds."""
_Found = Callable[[str, str], bool]


class InvalidSchema(ValueError):
    """A value is not a JSON Schema."""


def validator_of(schema: Any) -> Any:
    """Return a validator for a schema, which never fetches anything. Raises `InvalidSchema`.

    Its checks raise `PatternTimeout`, and `InvalidPattern`.
    """
    try:
        import jsonschema
        from referencing import Registry
    except ImportError:
        raise MissingExtra("the matcher schema needs jsonschema: pip install 'bespeak[test]'") from None
    library: Any = jsonschema
    draft: Any = library.Draft202012Validator
    try:
        draft.check_schema(schema, format_checker=draft.FORMAT_CHECKER)
    except library.SchemaError as error:
        place = reduce(join, error.absolute_path, "schema")
        raise InvalidSchema(f"{place} is not a valid JSON Schema: {printable(error.message)}") from None
    registry: Any = Registry  # an empty one: the usual one would fetch what a schema refers to
    kind: Any = library.validators.extend(draft, _Patterns(schema).keywords(library.ValidationError))
    return kind(_without_dialects(schema), registry=registry(), format_checker=_formats(library))


def _formats(library: Any) -> Any:
    """Check the formats that forms have. What jsonschema checks by itself depends on which packages are installed."""
    checker: Any = library.FormatChecker(formats=())
    for name, known in FORMATS.items():
        checker.checks(name)(_only_text(known.fits))
    return checker


def _only_text(fits: Callable[[str], bool]) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) or fits(value)


class Uncheckable(Exception):
    """A schema of a server cannot be used here: it is not valid, refers to other documents, or takes too long."""


def first_error(schema: Mapping[str, Any], value: Any, seconds: float = LONGEST_CHECK) -> tuple[str, str] | None:
    """Return where and how a value differs from a server's schema; `None` if it does not. Raises `Uncheckable`."""
    try:
        import jsonschema
        from referencing import Registry
        from referencing.exceptions import Unresolvable
    except ImportError:
        raise Uncheckable("jsonschema is not installed") from None
    library: Any = jsonschema
    named: Any = schema.get("$schema", DIALECT)
    draft: Any = library.validators.validator_for({"$schema": str(named)}, default=None)
    if draft is None:
        raise Uncheckable("the dialect of the schema is not known")
    deadline = time.monotonic() + seconds
    own = _Patterns(schema).keywords(library.ValidationError)
    keywords = {name: _until(deadline, own.get(name, check)) for name, check in draft.VALIDATORS.items()}
    registry: Any = Registry
    try:
        draft.check_schema(schema)
        kind: Any = library.validators.extend(draft, keywords)
        wrong: Any = next(kind(_without_dialects(schema), registry=registry()).iter_errors(value), None)
    except library.SchemaError:
        raise Uncheckable("the schema is not valid") from None
    except (Unresolvable, PatternTimeout, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise Uncheckable(str(error)) from None
    return None if wrong is None else (reduce(join, wrong.absolute_path, ""), printable(wrong.message))


def schema_fault(schema: Any) -> str | None:
    """Return where and how a server's schema is not valid in its dialect; `None` if it is, or nobody can say."""
    if not isinstance(schema, dict):
        return None
    try:
        import jsonschema
    except ImportError:
        return None
    library: Any = jsonschema
    named: Any = cast("dict[str, Any]", schema).get("$schema", DIALECT)
    draft: Any = library.validators.validator_for({"$schema": str(named)}, default=None)
    try:
        if draft is not None:
            draft.check_schema(schema)
    except library.SchemaError as error:
        return f"{reduce(join, error.absolute_path, 'schema')}: {printable(error.message)}"
    except RecursionError:
        return None
    return None


def _until(deadline: float, check: Any) -> Any:
    def checked(validator: Any, wanted: Any, instance: Any, schema: Any) -> Any:
        if time.monotonic() > deadline:
            raise Uncheckable("the schema takes too long to check")
        return check(validator, wanted, instance, schema)

    return checked


def _without_dialects(schema: Any) -> Any:
    """A schema without `$schema`: otherwise jsonschema would switch to its own keywords."""
    if isinstance(schema, list):
        return [_without_dialects(one) for one in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        name: one if name in _VALUES else _without_dialects(one)
        for name, one in cast("dict[str, Any]", schema).items()
        if not (name == "$schema" and isinstance(one, str))
    }


class _Patterns:
    """The patterns of one schema, each with a time limit."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._expression = cache(Expression)

    def found(self, pattern: str, text: str) -> bool:
        try:
            return self._expression(pattern).found_in(text)
        except PatternTimeout as timeout:
            timeout.where = next(_places(self._schema, pattern, "schema"), "schema")
            raise

    def keywords(self, error: Any) -> dict[str, Any]:
        """Return the keywords that search for patterns, as jsonschema calls them."""
        found = self.found

        def pattern(validator: Any, wanted: str, instance: Any, schema: Any) -> Iterator[Any]:
            if validator.is_type(instance, "string") and not found(wanted, instance):
                yield error(f"{instance!r} does not match {wanted!r}")

        def pattern_properties(
            validator: Any, patterns: Mapping[str, Any], instance: Any, schema: Any
        ) -> Iterator[Any]:
            if validator.is_type(instance, "object"):
                for wanted, inner in patterns.items():
                    for name, value in instance.items():
                        if found(wanted, name):
                            yield from validator.descend(value, inner, path=name, schema_path=wanted)

        def additional_properties(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if not validator.is_type(instance, "object"):
                return
            named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
            extras = [name for name in instance if name not in named and not any(found(one, name) for one in patterns)]
            if inner is False and extras:
                yield error(f"Additional properties are not allowed ({_unexpected(extras)})")
            elif inner is not False:
                for name in extras:
                    yield from validator.descend(instance[name], inner, path=name)

        def unevaluated_properties(validator: Any, inner: Any, instance: Any, schema: Any) -> Iterator[Any]:
            if not validator.is_type(instance, "object"):
                return
            known = set(_evaluated(validator, instance, schema, found))
            left = [name for name in instance if name not in known]
            wrong = [name for name in left if not _valid(validator, instance[name], inner)]
            if wrong:
                what = "allowed" if inner is False else "valid under the given schema"
                yield error(f"Unevaluated properties are not {what} ({_unexpected(wrong)})")

        return {
            "pattern": pattern,
            "patternProperties": pattern_properties,
            "additionalProperties": additional_properties,
            "unevaluatedProperties": unevaluated_properties,
        }


def _unexpected(names: list[str]) -> str:
    return f"{', '.join(map(repr, names))} {'was' if len(names) == 1 else 'were'} unexpected"


def _valid(validator: Any, instance: Any, schema: Any) -> bool:
    return next(iter(validator.descend(instance, schema)), None) is None


def _evaluated(validator: Any, instance: Any, schema: Any, found: _Found) -> Iterator[str]:
    """The properties that a schema evaluates, which `unevaluatedProperties` skips."""
    if isinstance(schema, bool):
        return
    for keyword in ("$ref", "$dynamicRef"):
        if keyword in schema:
            resolved = validator._resolver.lookup(schema[keyword])
            other = validator.evolve(schema=resolved.contents, _resolver=resolved.resolver)
            yield from _evaluated(other, instance, resolved.contents, found)
    yield from schema.get("properties", {}).keys() & instance.keys()
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in schema:
            yield from (name for name, value in instance.items() if _valid(validator, value, schema[keyword]))
    for wanted in schema.get("patternProperties", ()):
        yield from (name for name in instance if found(wanted, name))
    for inner in _beside(validator, instance, schema):
        yield from _evaluated(validator, instance, inner, found)


def _beside(validator: Any, instance: Any, schema: Any) -> Iterator[Any]:
    """The subschemas that apply to the same value and hold for it."""
    yield from (inner for name, inner in schema.get("dependentSchemas", {}).items() if name in instance)
    for keyword in ("allOf", "oneOf", "anyOf"):
        yield from (inner for inner in schema.get(keyword, ()) if _valid(validator, instance, inner))
    if "if" in schema:
        holds = _valid(validator, instance, schema["if"])
        if holds:
            yield schema["if"]
        chosen = "then" if holds else "else"
        if chosen in schema:
            yield schema[chosen]


def _places(schema: Any, pattern: str, path: str) -> Iterator[str]:
    """The paths of a pattern in a schema."""
    if isinstance(schema, list):
        for index, one in enumerate(cast("list[Any]", schema)):
            yield from _places(one, pattern, join(path, index))
    if isinstance(schema, dict):
        for name, one in cast("dict[str, Any]", schema).items():
            if (name == "pattern" and one == pattern) or (
                name == "patternProperties" and isinstance(one, dict) and pattern in one
            ):
                yield join(path, name)
            yield from _places(one, pattern, join(path, name))
