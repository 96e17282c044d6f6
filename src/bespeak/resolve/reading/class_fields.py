"""What a class says about the parameters of its `__init__` on its fields: for dataclasses, models and classes of attrs."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bespeak.resolve.reading.callables import own_annotations
from bespeak.resolve.reading.misplaced_markers import fields_of


@dataclass(frozen=True, slots=True)
class FieldNote:
    """The annotation, the defaults and the metadata of a field."""

    parameter: str
    """What it is called in `__init__`."""
    hint: Any
    extras: tuple[Any, ...]
    owner: type[Any]
    """The class whose body has the annotation."""


def field_notes(cls: type[Any]) -> Iterator[FieldNote]:
    """Return what a class says on its fields."""
    for one in getattr(cls, "__attrs_attrs__", ()):  # attrs need not be installed
        extras = (one.default, getattr(one.default, "factory", None), one.metadata)
        yield FieldNote(one.alias or one.name.lstrip("_"), one.type, extras, _owner(cls, one.name))
    for name, _, extras in fields_of(cls):
        yield FieldNote(name, None, extras, _owner(cls, name))


def _owner(cls: type[Any], field: str) -> type[Any]:
    return next((one for one in cls.__mro__ if field in own_annotations(one)), cls)
