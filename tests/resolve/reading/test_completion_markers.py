"""`Complete` counts on a parameter itself. Anywhere else it is an error, so that it is never lost."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType, TypedDict

from bespeak import Complete, InvalidSignature, MCPServer, Resolve
from bespeak.resolve.reading.signatures import read

T = TypeVar("T")


def titles(value: str) -> list[str]:
    return [value]


async def newest() -> str:
    return "Dune"


class Book(BaseModel):
    title: Annotated[str, Complete(titles)]


@dataclass
class Shelf:
    title: Annotated[str, Complete(titles)]


class Loan(TypedDict):
    title: Annotated[str, Complete(titles)]


class Late(BaseModel):
    title: "Annotated[NotDefined, Complete(titles)]"  # noqa: F821  # pyright: ignore[reportUndefinedVariable] - the point


def problems(fn: Callable[..., Any]) -> list[str]:
    return [defect.problem for defect in read(fn).defects]


Titled = Annotated[str, Complete(titles)]
Ignoring = TypeAliasType("Ignoring", list[int], type_params=(T,))


def test_the_marker_of_a_parameter_is_read() -> None:
    def prompt(title: Annotated[str, Complete(titles)], other: str) -> str: ...

    first, second = read(prompt).parameters
    assert first.completion is not None
    assert first.completion.fn is titles
    assert second.completion is None
    assert problems(prompt) == []


def test_a_marker_in_an_alias_counts() -> None:
    def prompt(title: Titled) -> str: ...

    assert read(prompt).parameters[0].completion is not None


def test_a_marker_in_postponed_annotations_counts() -> None:
    def prompt(title: "Annotated[str, Complete(titles)]") -> str: ...

    assert read(prompt).parameters[0].completion is not None


def test_a_marker_in_an_alias_of_a_class_body_counts() -> None:
    class Desk:
        Title = Annotated[str, Complete(titles)]

        def prompt(self, title: "Title") -> str: ...

    assert read(Desk().prompt).parameters[0].completion is not None


def without_a_call(title: Annotated[str, Complete]) -> str: ...
def written(title: Annotated[str, "Complete(titles)"]) -> str: ...
def twice(title: Annotated[str, Complete(titles), Complete(titles)]) -> str: ...
def annotated(title: Complete(titles)) -> str: ...  # pyright: ignore[reportInvalidTypeForm, reportUnknownParameterType] - the point
def the_class(title: Complete) -> str: ...
def by_default(title: str = Complete(titles)) -> str: ...  # pyright: ignore[reportArgumentType] - the point
def in_a_field(title: str = Field(default=Complete(titles))) -> str: ...  # pyright: ignore[reportArgumentType]
def in_metadata(title: Annotated[str, Field(default=Complete(titles))]) -> str: ...  # pyright: ignore[reportArgumentType]
def in_a_factory(title: Annotated[str, Field(default_factory=lambda: Complete(titles))]) -> str: ...
def in_an_object(title: Annotated[str, [Complete(titles)]]) -> str: ...
def in_a_union(title: Annotated[str, Complete(titles)] | None) -> str: ...
def in_a_list(title: list[Annotated[str, Complete(titles)]]) -> str: ...
def in_a_model(book: Book) -> str: ...
def in_a_dataclass(shelf: Shelf) -> str: ...
def in_a_typed_dict(loan: Loan) -> str: ...
def in_a_late_model(book: Late) -> str: ...
def in_an_unused_argument(title: Ignoring[Annotated[str, Complete(titles)]]) -> str: ...
def resolved(title: Annotated[str, Resolve(newest), Complete(titles)]) -> str: ...


MARKER: Any = Complete(titles)
BOUND = functools.partial(titles, value=MARKER)
DEFAULT = "parameter 'title' has `Complete` as a default value"
NO_EFFECT = "parameter 'title' has a `Complete` inside a union or container, where it has no effect"


LOST: list[tuple[Callable[..., Any], str]] = [
    (without_a_call, "parameter 'title' is marked with `Complete` without a call"),
    (written, "parameter 'title' has a `Complete` written as text in its annotation"),
    (twice, "parameter 'title' is marked with `Complete` 2 times"),
    (annotated, "parameter 'title' has `Complete` as its annotation"),
    (the_class, "parameter 'title' has `Complete` as its annotation"),
    (by_default, DEFAULT),
    (in_a_field, DEFAULT),
    (in_metadata, DEFAULT),
    (in_a_factory, DEFAULT),
    (in_an_object, "parameter 'title' has `Complete` inside another object in its annotation"),
    (in_a_union, NO_EFFECT),
    (in_a_list, NO_EFFECT),
    (in_a_model, "parameter 'book' has a `Complete` on field 'title' of Book, where it has no effect"),
    (in_a_dataclass, "parameter 'shelf' has a `Complete` on field 'title' of Shelf, where it has no effect"),
    (in_a_typed_dict, "parameter 'loan' has a `Complete` on field 'title' of Loan, where it has no effect"),
    (in_a_late_model, "parameter 'book' has a `Complete` on field 'title' of Late, where it has no effect"),
    (
        in_an_unused_argument,
        "parameter 'title' has a `Complete` in a type argument that the alias Ignoring does not use, where it has no effect",
    ),
    (
        resolved,
        "parameter 'title' is marked with both `Resolve` and `Complete`, but nobody types a resolved parameter",
    ),
    (
        BOUND,
        "a partial binds 'value' to a marker or a question, which the function would receive as its value",
    ),
]


@pytest.mark.parametrize(("fn", "problem"), LOST)
def test_a_marker_that_would_be_lost_is_a_defect(fn: Callable[..., Any], problem: str) -> None:
    assert problems(fn) == [problem]


def test_a_default_that_reads_like_a_marker_is_a_text() -> None:
    def prompt(title: str = "Complete(something)") -> str: ...

    assert problems(prompt) == []


# Markers that a signature does not show


def faults(fn: Callable[..., Any]) -> list[str]:
    mcp = MCPServer("shop")
    try:
        mcp.prompt("prompt")(fn)
    except InvalidSignature as error:
        return [fault.problem for fault in error.faults]
    return []


def marked(title: Annotated[str, Complete(titles)]) -> str:
    return title


def test_a_decorator_without_wraps_does_not_hide_a_marker() -> None:
    def bare(fn: Callable[[str], str]) -> Callable[[str], str]:
        def inner(title: str) -> str:
            return fn(title)

        return inner

    assert faults(bare(marked)) == ["parameter 'title' is marked with `Complete` in marked, but not here"]


def test_a_decorator_with_wraps_keeps_the_marker() -> None:
    @functools.wraps(marked)
    def inner(*args: Any, **kwargs: Any) -> str:
        return marked(*args, **kwargs)

    assert faults(inner) == []


def test_a_method_that_overrides_a_completed_one_repeats_the_marker() -> None:
    class Desk:
        def prompt(self, title: Annotated[str, Complete(titles)]) -> str:
            return title

    class Forgetful(Desk):
        def prompt(self, title: str) -> str:
            return title

    class Careful(Desk):
        def prompt(self, title: Annotated[str, Complete(titles)]) -> str:
            return title

    assert len(faults(Forgetful().prompt)) == 1
    assert faults(Careful().prompt) == []


def test_an_annotation_that_cannot_be_read_elsewhere_says_nothing() -> None:
    def inner(title: "NotDefined") -> str:  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType] - the point
        return str(title)  # pyright: ignore[reportUnknownArgumentType] - the same

    def prompt(title: str) -> str:
        return inner(title)

    assert faults(prompt) == []


def test_a_tool_may_call_a_prompt_in_its_closure() -> None:
    def prompt(title: Annotated[str, Complete(titles)]) -> str:
        return title

    def tool(title: str) -> str:
        return prompt(title)

    MCPServer("shop").add_tool(tool)
