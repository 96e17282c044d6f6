"""A marker is honoured or refused, and a client never supplies an outcome or a question, wherever they stand (design 4)."""

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, event, given, reject, settings
from hypothesis import strategies as st

from tests.resolve.reading.generated.callables import FORMS
from tests.resolve.reading.generated.drawing import drawn
from tests.resolve.reading.generated.layers import LAYERS
from tests.resolve.reading.generated.programs import JUDGED, NotPython, Position, Program, Scope, judge
from tests.resolve.reading.generated.spellings import LEAVES, PLAIN, Spelling, Verdict
from tests.resolve.reading.generated.wraps import WRAPS

T = TypeVar("T")
many = settings(
    max_examples=2 * settings().max_examples * int(os.environ.get("BESPEAK_SOAK", "1")),
    deadline=None,
    # Explaining a failure would cost a minute more than finding it.
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.fixture(autouse=True)
def counted(record_property: Callable[[str, object], None]) -> Generator[None]:
    """Record in the report how many signatures were tried. `make pythons` adds them up."""
    JUDGED.clear()
    yield
    record_property("signatures", len(JUDGED))


@st.composite
def programs(draw: st.DrawFn, leaves: Iterable[Spelling], *scopes: Scope, taken: bool | None = None) -> Program:
    def choose(several: Sequence[T]) -> T:
        return draw(st.sampled_from(several))

    program = drawn(choose, leaves, scopes, taken=taken)
    if not program.is_possible:
        reject()
    return program


def judged(program: Program) -> None:
    try:
        event(f"{program.position.value}: {judge(program)}")
    except NotPython:
        reject()


@pytest.mark.timeout(900)  # for `make soak`
@many
@given(programs(LEAVES.values(), *Scope))
@pytest.mark.long
def test_a_marker_an_outcome_or_a_question_is_never_lost_wherever_it_stands(program: Program) -> None:
    judged(program)


@pytest.mark.timeout(900)  # for `make soak`
@many
@given(programs([leaf for leaf in LEAVES.values() if leaf.verdict is Verdict.HONOURED], *Scope))
@pytest.mark.long
def test_a_marker_that_is_written_as_it_should_be_is_never_lost(program: Program) -> None:
    judged(program)


@pytest.mark.timeout(900)  # for `make soak`
@many
@given(programs(PLAIN.values(), Scope.MODULE, Scope.FRAME, Scope.SHADOWED, taken=True))
@pytest.mark.long
def test_a_signature_without_any_of_them_registers_and_shows_its_parameters(program: Program) -> None:
    judged(program)


# Every piece at least once, whatever the generator happens to draw


def possible(programs: dict[str, Program]) -> pytest.MarkDecorator:
    """Those of the programs whose pieces go together."""
    chosen = {name: program for name, program in programs.items() if program.is_possible}
    return pytest.mark.parametrize("program", chosen.values(), ids=chosen)


ANNOTATIONS = {"real": False, "postponed": True}
INSIDE = ["a marker", "an outcome", "a form question's instance, in Annotated"]


@possible(
    {
        f"{name}-{annotations}": Program(leaf, postponed=postponed)
        for name, leaf in LEAVES.items()
        for annotations, postponed in ANNOTATIONS.items()
    }
)
def test_each_spelling_in_a_tool_is_honoured_or_refused(program: Program) -> None:
    judge(program)


@possible({name: Program(leaf, position=Position.RESOLVER, taken=True) for name, leaf in LEAVES.items()})
def test_each_spelling_in_a_resolver_is_honoured_or_refused(program: Program) -> None:
    judge(program)


@possible(
    {
        f"{name}-{inside}-{annotations}": Program(LEAVES[inside], (wrap,), postponed=postponed)
        for name, wrap in WRAPS.items()
        for inside in INSIDE
        for annotations, postponed in ANNOTATIONS.items()
    }
)
def test_each_thing_around_a_hint_is_looked_into(program: Program) -> None:
    judge(program)


@possible({name: Program(leaf) for name, leaf in PLAIN.items()})
def test_each_hint_without_a_marker_is_let_pass(program: Program) -> None:
    judge(program)


@possible({name: Program(PLAIN["a bool"], (wrap,)) for name, wrap in WRAPS.items()})
def test_each_thing_around_a_hint_is_let_pass_without_a_marker(program: Program) -> None:
    judge(program)


@possible(
    {
        f"{name}-{position.name}-{annotations}": Program(
            LEAVES["a marker"], form=form, position=position, postponed=postponed, taken=True
        )
        for name, form in FORMS.items()
        for position in Position
        for annotations, postponed in ANNOTATIONS.items()
    }
)
def test_each_callable_keeps_its_marker(program: Program) -> None:
    judge(program)


@possible({name: Program(PLAIN["a bool"], form=form) for name, form in FORMS.items()})
def test_each_callable_is_let_pass_without_a_marker(program: Program) -> None:
    judge(program)


@possible(
    {
        f"{scope.name}-{inside}-{position.name}-{annotations}": Program(
            LEAVES[inside],
            form=FORMS["method" if scope is Scope.CLASS else "function"],
            position=position,
            scope=scope,
            postponed=postponed,
            named=True,
            taken=True,
        )
        for scope in Scope
        for inside in INSIDE[:2]
        for position in Position
        for annotations, postponed in ANNOTATIONS.items()
    }
)
def test_what_a_name_means_is_found_wherever_it_is_defined(program: Program) -> None:
    judge(program)


@possible(
    {
        f"{name}-{scope.name}": Program(LEAVES["a marker"], form=form, scope=scope, postponed=True)
        for name, form in FORMS.items()
        for scope in (Scope.SHADOWED, Scope.SHADOWED_GONE)
    }
)
def test_each_callable_means_the_names_of_where_it_is_defined(program: Program) -> None:
    judge(program)


@possible(
    {
        f"{name}-{layer}-{position.name}": Program(
            LEAVES["a marker"], form=FORMS[name], layers=(LAYERS[layer],), position=position, taken=True
        )
        for name in ("function", "sync function", "method", "callable object", "method of a generic base")
        for layer in LAYERS
        for position in Position
    }
)
def test_each_thing_that_wraps_a_callable_keeps_its_marker(program: Program) -> None:
    judge(program)
