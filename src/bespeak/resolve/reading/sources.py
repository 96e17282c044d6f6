"""Where the parameters of a callable were written: the function, the class, and what names and type variables mean there."""

import functools
import inspect
import types
from typing import Any, cast

from bespeak.resolve.reading.callables import (
    annotated_function,
    class_path,
    holder_of,
    own_annotations,
    owner_of,
    written_in,
)
from bespeak.resolve.reading.name_lookup import Scope, scope_of
from bespeak.resolve.reading.type_variables import Variables, foreign_variable, variables_of, variables_of_static


class Source:
    """The place where the annotations of a callable were written."""

    def __init__(self, fn: Any, frame: types.FrameType | None) -> None:
        self.target = annotated_function(fn)
        self._frame = frame
        self._holder = holder_of(fn)
        self._written = written_in(fn, self.target, frame)

    @functools.cached_property
    def variables(self) -> Variables:
        """What the type variables of the class and its bases stand for."""
        if inspect.isfunction(self._holder):
            return variables_of_static(self._written, self._frame)
        return variables_of(self._holder, self._frame)

    @functools.cached_property
    def scope(self) -> Scope:
        """What names mean in the annotations of the function."""
        return scope_of(self.target, self._frame, self._written, self.variables.of(self._written))

    def scope_of(self, parameter: str) -> Scope:
        """Return what names mean in one annotation. The `__init__` of a dataclass has those of its base classes, too."""
        if not is_generated(self.target):
            return self.scope
        owner = self._owner_of(parameter)
        return scope_of(owner, self._frame, owner, self.variables.of(owner)) if owner else self.scope

    def unread_variable(self, parameter: str, hint: Any) -> str | None:
        """Return the name of a type variable in a hint in whose place a marker could stand that cannot be read."""
        if self._written is None and class_path(self.target) and inspect.isfunction(self._holder):
            return foreign_variable(hint, self.target)
        return self.variables.unread(hint, self._owner_of(parameter), self.scope.names)

    def _owner_of(self, parameter: str) -> type[Any] | None:
        """The class in whose body a parameter was written: for the fields of a class, one of its bases."""
        if not is_generated(self.target):
            return self._written
        cls = owner_of(self._holder)
        bases = cast("tuple[type[Any], ...]", cls.__mro__ if cls else ())
        return next((one for one in bases if parameter in own_annotations(one)), self._written)


def is_generated(function: Any) -> bool:
    """Return whether a function is the `__init__` or `__new__` that was made from the fields of a class."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, types.CodeType) or function.__name__ not in ("__init__", "__new__"):
        return False
    by_attrs = code.co_filename.startswith("<attrs generated")
    return by_attrs or code.co_qualname.startswith("__create_fn__") or code.co_name == "<lambda>"
