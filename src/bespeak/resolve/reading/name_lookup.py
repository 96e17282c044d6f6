"""Look up the names in a function's annotations, and find those that no longer exist."""

import ast
import builtins
import dis
import inspect
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, ForwardRef, Literal, cast, get_args, get_origin

from bespeak.resolve.reading.misplaced_markers import Search, mentions
from bespeak.resolve.reading.type_hints import evaluate, fill

Names = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that the text in a function's annotations can use."""

    globals: dict[str, Any]
    names: dict[str, Any]
    """Names of its closure and of the frame that registers it."""
    body: Names = field(default_factory=dict[str, Any])
    """Names of the class body it was written in."""
    gone: frozenset[str] = frozenset()
    """Names local to an enclosing function that has returned, or to a class that cannot be found. Their values are lost."""
    meanings: Mapping[Any, Any] = field(default_factory=dict[Any, Any])
    """What the type variables of the class stand for that it was written in."""

    def evaluate(self, annotation: Any) -> Any:
        """Return an annotation with all text in it evaluated. Raises whatever that raises."""
        used = names_in(annotation)
        if not used & self.body.keys():
            return self._evaluate(annotation, self.names)
        # Python looks in the class body first. But a method there may happen to have the name of a type.
        try:
            within = self._evaluate(annotation, {**self.names, **self.body})
            if mentions(within, Search(names=self.names)):
                return within
        except Exception:  # noqa: BLE001 - a hint is any expression and may raise anything
            return self._evaluate(annotation, self.names)
        try:
            return self._evaluate(annotation, self.names)
        except NameError:
            return within

    def _evaluate(self, annotation: Any, names: dict[str, Any]) -> Any:
        hint = evaluate(annotation, self.globals, names)
        if not self.meanings:
            return hint
        return evaluate(fill(hint, [*self.meanings.items()]), {}, {})  # raises for text that could not be read

    def lost(self, annotation: Any) -> set[str]:
        """Return the names in an annotation that had another meaning where it was written."""
        return names_in(annotation) & self.gone


def scope_of(
    target: Any,
    frame: types.FrameType | None,
    owner: type[Any] | None = None,
    meanings: Mapping[Any, Any] = MappingProxyType({}),
) -> Scope:
    """Return the scope of a function's annotations, or of a class's bases; `owner` is the class it was written in.

    A function defined in the registering frame sees that frame's names first, as Python's scoping has it. For any
    other function the frame is the last resort, so that a name in its own module is never shadowed.
    """
    globals_: dict[str, Any] = getattr(target, "__globals__", None) or vars(
        sys.modules.get(getattr(target, "__module__", ""), builtins)
    )
    code = getattr(target, "__code__", None)
    typed = (*type_parameters(owner), *type_parameters(target))
    names: dict[str, Any] = {parameter.__name__: parameter for parameter in typed}
    body: Names = vars(owner) if owner else {}
    # The `__init__` of a dataclass is made elsewhere; where its class is written counts.
    written: str = f"{owner.__qualname__}.{target.__name__}" if owner and code else code.co_qualname if code else ""
    written = target.__qualname__ if isinstance(target, type) else written
    around = list(_around(written, globals_))
    inner = around[-1] if around else None
    if frame is not None:
        inside = None if owner else _class_frame(frame, written.rpartition(".")[0], globals_)
        body = inside.f_locals if inside else body
        local = frame.f_globals is globals_ and written.startswith(f"{frame.f_code.co_qualname}.<locals>.")
        known = globals_.keys() | vars(builtins).keys()
        names |= {key: value for key, value in frame.f_locals.items() if local or key not in known}
        around = [one for one in around if one is not frame.f_code]
    for name, cell in zip(code.co_freevars if code else (), getattr(target, "__closure__", None) or (), strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # a name of the enclosing function that is not bound yet
            continue
    # The names of a class are seen right in its body, and not in functions there.
    seen = [one for one in around if _is_function(one) or (one is inner and not body)]
    locals_ = {name for one in seen for name in _bound_in(one)}
    return Scope(globals_, names, body, frozenset(locals_ - names.keys() - body.keys()), meanings)


def type_parameters(of: Any) -> tuple[Any, ...]:
    """Return the parameters in brackets after the name of a class or a function; `type` has an attribute of another kind."""
    found: Any = getattr(of, "__type_params__", ())
    return cast("tuple[Any, ...]", found) if isinstance(found, tuple) else ()


def _class_frame(frame: types.FrameType | None, qualname: str, globals_: Names) -> types.FrameType | None:
    """The frame that runs the body of a class right now."""
    while frame is not None:
        if frame.f_globals is globals_ and frame.f_code.co_qualname == qualname and not _is_function(frame.f_code):
            return frame
        frame = frame.f_back
    return None


def _is_function(code: types.CodeType) -> bool:
    """Whether code is that of a function, and not of a module or the body of a class."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED)


def _bound_in(code: types.CodeType) -> set[str]:
    """The names that the code of a function or of a class's body binds."""
    if _is_function(code):
        return {*code.co_varnames, *code.co_cellvars}
    return {step.argval for step in dis.get_instructions(code) if step.opname == "STORE_NAME"}


def names_in(annotation: Any) -> set[str]:
    """Return the names that the text in an annotation uses."""
    return {node.id for text in _texts(annotation) for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name)}


def _texts(annotation: Any) -> Iterator[str]:
    if isinstance(annotation, str):
        yield annotation
    elif isinstance(annotation, ForwardRef):
        yield annotation.__forward_arg__
    elif isinstance(annotation, list):  # the parameter list of a Callable
        for part in cast("list[Any]", annotation):
            yield from _texts(part)
    elif get_origin(annotation) is Annotated:  # text in its metadata is not a name
        yield from _texts(annotation.__origin__)
    elif get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _texts(part)


def _parsed(text: str) -> ast.AST:
    try:
        return ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):  # evaluating it reports the error
        return ast.Pass()


def _around(qualname: str, globals_: Names) -> Iterator[types.CodeType]:
    """The functions and classes around a function, outermost first. Those that cannot be found are left out."""
    path = qualname.split(".")
    if "<locals>" not in path:
        return
    outermost = path.index("<locals>")
    found = _attribute(globals_, path[:outermost])
    here = getattr(inspect.unwrap(found), "__code__", None) if callable(found) else None
    steps = [step for step in path[outermost:] if step != "<locals>"]
    while isinstance(here, types.CodeType):
        yield here
        if len(steps) <= 1:
            return
        step = steps.pop(0)
        here = next((one for one in here.co_consts if isinstance(one, types.CodeType) and one.co_name == step), None)


def _attribute(globals_: Names, path: list[str]) -> Any:
    """The object at a dotted path in a module, without descriptors around it."""
    here: Any = globals_.get(path[0])
    for step in path[1:]:
        here = getattr(here, "__dict__", {}).get(step)
        here = getattr(here, "__func__", here)
    return here
