"""Read the `Complete` marker of a parameter, and find those that would have no effect."""

import inspect
import types
from collections.abc import Iterator
from typing import Any

from pydantic.fields import FieldInfo

from bespeak.resolve.markers import Complete
from bespeak.resolve.reading.callables import peel_partial
from bespeak.resolve.reading.held_functions import held_functions
from bespeak.resolve.reading.hidden_markers import Hidden, overridden_methods, wrapping_chain
from bespeak.resolve.reading.misplaced_markers import Search, holds, is_completion, stray_completions
from bespeak.resolve.reading.name_lookup import scope_of
from bespeak.resolve.reading.type_hints import peel, spell


def read_completion(
    name: str, hint: Any, default: Any, search: Search, *, resolved: bool
) -> tuple[Complete | None, list[tuple[str, str]]]:
    """The `Complete` of a parameter, and what is wrong with it, each with what would fix it."""
    metadata = peel(hint).metadata
    found = [item for item in metadata if isinstance(item, Complete)]
    problems: list[tuple[str, str]] = []
    mark = f"{name}: Annotated[{spell(hint)}, Complete(fn)]"
    if any(isinstance(item, type) and is_completion(item) for item in metadata):
        problems.append((f"parameter {name!r} is marked with `Complete` without a call", f"write {mark}"))
    if any(isinstance(item, str) and is_completion(item) for item in metadata):
        problems.append(
            (
                f"parameter {name!r} has a `Complete` written as text in its annotation",
                f"write it without quotation marks: {mark}",
            )
        )
    inner = [item for item in metadata if not is_completion(item) and holds(item, is_completion)]
    by_default = (
        not isinstance(default, str) and default is not inspect.Parameter.empty and holds(default, is_completion)
    )
    if by_default or any(isinstance(item, FieldInfo) for item in inner):
        problems.append((f"parameter {name!r} has `Complete` as a default value", f"write {mark}"))
    elif inner:
        problems.append((f"parameter {name!r} has `Complete` inside another object in its annotation", f"write {mark}"))
    if len(found) > 1:
        problems.append((f"parameter {name!r} is marked with `Complete` {len(found)} times", "keep one of them"))
    for where in dict.fromkeys(stray_completions(hint, search)):
        problems.append(
            (
                f"parameter {name!r} has a `Complete` {where}, where it has no effect",
                f"mark the parameter itself: {name}: Annotated[..., Complete(fn)]",
            )
        )
    if found and resolved:
        problems.append(
            (
                f"parameter {name!r} is marked with both `Resolve` and `Complete`, but nobody types a resolved parameter",
                "remove one of the two",
            )
        )
    return (found[0] if found else None), problems


def hidden_completions(fn: Any, frame: types.FrameType | None, uncompleted: set[str]) -> Iterator[Hidden]:
    """The parameters without a `Complete` that have one in a function which this one wraps, or in a method it overrides."""
    called = peel_partial(fn)
    functions = [*wrapping_chain(getattr(called, "__func__", called))]
    functions += [
        one for held in held_functions(called) for one in wrapping_chain(getattr(held.what, "__func__", held.what))
    ]
    functions += [method for _, method in overridden_methods(called, frame)]
    told: set[str] = set()
    for function in functions:
        annotations: dict[str, Any] = getattr(function, "__annotations__", None) or {}
        for name in (uncompleted & annotations.keys()) - told:
            if _is_completed(function, annotations[name], frame):
                told.add(name)
                yield Hidden(
                    name,
                    f"parameter {name!r} is marked with `Complete` in {function.__qualname__}, but not here",
                    f"use functools.wraps in the decorator, or repeat the marker: {name}: Annotated[str, Complete(fn)]",
                )


def _is_completed(function: Any, annotation: Any, frame: types.FrameType | None) -> bool:
    try:
        return any(is_completion(item) for item in peel(scope_of(function, frame).evaluate(annotation)).metadata)
    except Exception:  # noqa: BLE001 - a hint is any expression and may raise anything
        return False
