"""Whether an author's model can refuse an answer that fits the flat schema of its form.

If it can, whoever may answer can guess, so each answer takes a try. What is not known here counts as able to refuse.
"""

from collections.abc import Iterable
from typing import Any, cast

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
"""The kinds of schemas, with the settings, whose refusals the flat schema shows."""
_ANYWHERE = frozenset({"type", "ref", "metadata", "serialization"})
_CONFIG = frozenset({"title", "extra_fields_behavior", "validate_by_name", "validate_by_alias", "from_attributes"})


def may_refuse(schema: Any) -> bool:
    """Return whether the core schema of a form may refuse content that fits the form's flat schema."""
    known = _KNOWN.get(schema["type"])
    if known is None or not schema.keys() <= known | _ANYWHERE:
        return True
    if schema.get("custom_init") or schema.get("post_init") or not schema.get("config", {}).keys() <= _CONFIG:
        return True
    return any(may_refuse(inner) for inner in _inside(schema))


def _inside(schema: dict[str, Any]) -> Iterable[Any]:
    for name in ("schema", "items_schema"):
        if name in schema:
            yield schema[name]
    fields: Any = schema.get("fields", ()) if schema["type"] != "dataclass" else ()  # there, they are names
    yield from cast("dict[str, Any]", fields).values() if isinstance(fields, dict) else fields
