"""Whether an author's model can refuse an answer that fits the flat schema of its form.

If it can, whoever may answer can guess, so each answer takes a try. What is not known here counts as able to refuse, and so does a
limit that the schema does not show: an author can hide one with `json_schema_extra` or `WithJsonSchema`.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, cast

from bespeak.protocol.forms import offered_by

_KNOWN: dict[str, frozenset[str]] = {
    "bool": frozenset(),
    "int": frozenset({"ge", "le", "gt", "lt"}),
    "float": frozenset({"ge", "le", "allow_inf_nan"}),
    "str": frozenset({"min_length", "max_length"}),
    "literal": frozenset({"expected"}),
    "enum": frozenset({"cls", "members", "sub_type", "missing"}),
    "list": frozenset({"items_schema", "min_length", "max_length"}),
    "nullable": frozenset({"schema"}),
    "default": frozenset({"schema", "default", "default_factory", "default_factory_takes_data", "copy_default"}),
    "model": frozenset({"cls", "schema", "config", "custom_init", "root_model"}),
    "model-fields": frozenset({"fields", "model_name", "computed_fields"}),
    "model-field": frozenset({"schema", "validation_alias", "serialization_alias", "frozen"}),
    "dataclass": frozenset({"cls", "schema", "config", "fields", "frozen", "slots", "cls_name", "post_init"}),
    "dataclass-args": frozenset({"fields", "dataclass_name", "computed_fields", "collect_init_only"}),
    "dataclass-field": frozenset({"name", "schema", "validation_alias", "kw_only", "init", "frozen"}),
    "typed-dict": frozenset({"cls", "fields", "config", "computed_fields", "extra_behavior"}),
    "typed-dict-field": frozenset({"schema", "required", "validation_alias"}),
}
"""The kinds of schemas, with the settings, whose refusals a flat schema can show."""
_ANYWHERE = frozenset({"type", "ref", "metadata", "serialization"})
_CONFIG = frozenset({"title", "extra_fields_behavior", "validate_by_name", "validate_by_alias", "from_attributes"})
_TYPES = {
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "str": "string",
    "literal": "string",
    "enum": "string",
    "list": "array",
}


def may_refuse(schema: Any, shown: Mapping[str, Any]) -> bool:
    """Return whether the core schema of a form may refuse content that fits the properties which are shown."""
    known = _KNOWN.get(schema["type"])
    if known is None or not schema.keys() <= known | _ANYWHERE:
        return True
    if schema.get("custom_init") or schema.get("post_init") or not schema.get("config", {}).keys() <= _CONFIG:
        return True
    fields: Any = schema.get("fields") if schema["type"] != "dataclass" else None  # there, they are names
    if fields is None:
        return may_refuse(schema["schema"], shown)
    return any(_field_may_refuse(name, field, shown) for name, field in _named(fields))


def _named(fields: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(fields, dict):
        return cast("dict[str, Any]", fields).items()
    return ((field["name"], field) for field in fields)


def _field_may_refuse(name: str, field: Any, shown: Mapping[str, Any]) -> bool:
    alias = field.get("validation_alias")
    found = shown.get(alias if isinstance(alias, str) else name, shown.get(name))
    known = _KNOWN.get(field["type"])
    if found is None or known is None or not field.keys() <= known | _ANYWHERE:
        return field.get("init", True) is not False  # a field that nobody fills in refuses nothing
    return _value_may_refuse(field["schema"], found)


def _value_may_refuse(schema: Any, shown: Mapping[str, Any]) -> bool:
    """Whether a value that fits a property may be refused."""
    known = _KNOWN.get(schema["type"])
    if known is None or not schema.keys() <= known | _ANYWHERE:
        return True
    if schema["type"] in ("nullable", "default"):
        return _value_may_refuse(schema["schema"], shown)
    if shown.get("type") != _TYPES.get(schema["type"]):
        return True
    limits = [
        (schema.get("ge"), shown.get("minimum", -math.inf)),
        (math.floor(schema["gt"]) + 1 if "gt" in schema else None, shown.get("minimum", -math.inf)),
        (schema.get("min_length"), shown.get("minItems" if "items_schema" in schema else "minLength", 0)),
        (-schema["le"] if "le" in schema else None, -shown.get("maximum", math.inf)),
        (1 - math.ceil(schema["lt"]) if "lt" in schema else None, -shown.get("maximum", math.inf)),
        (
            -schema["max_length"] if "max_length" in schema else None,
            -shown.get("maxItems" if "items_schema" in schema else "maxLength", math.inf),
        ),
    ]
    if any(limit is not None and limit > least for limit, least in limits):
        return True
    if schema["type"] == "list":
        items: Any = schema.get("items_schema", {"type": "any"})
        return _value_may_refuse(items, {"type": "string", **shown.get("items", {})})
    count = len(schema.get("expected", schema.get("members", ())))
    offered = offered_by(shown)
    return bool(count) and (offered is None or len(offered) > count)
