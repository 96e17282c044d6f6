"""Drawing a program: one of each piece, by whatever chooses."""

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from tests.resolve.reading.generated.callables import FORMS
from tests.resolve.reading.generated.form import Form
from tests.resolve.reading.generated.layers import LAYERS
from tests.resolve.reading.generated.programs import Position, Program, Scope
from tests.resolve.reading.generated.spellings import Spelling, Verdict
from tests.resolve.reading.generated.wraps import WRAPS, Wrap

T = TypeVar("T")


class Choose(Protocol):
    def __call__(self, several: Sequence[T], /) -> T: ...


def drawn(
    choose: Choose,
    leaves: Iterable[Spelling],
    scopes: Sequence[Scope],
    *,
    taken: bool | None = None,
    depths: Sequence[int] = (0, 1, 1, 2, 2, 3),
) -> Program:
    """A program of any pieces, with so many wraps around its hint. The pieces do not always go together."""
    leaf = choose([*leaves])
    inside, wraps = leaf, list[Wrap]()
    for number in range(choose(depths)):
        if fitting := [wrap for wrap in WRAPS.values() if wrap.takes(inside)]:
            wraps.append(choose(fitting))
            inside = wraps[-1].around(inside, number)
    form = choose([form for form in FORMS.values() if form.takes(inside)])
    layers = list[Form]()
    if inside.verdict is Verdict.HONOURED and not form.makes:
        layers = [choose([*LAYERS.values()]) for _ in range(choose([0, 0, 0, 1, 1, 2]))]
    return Program(
        leaf=leaf,
        wraps=tuple(wraps),
        form=form,
        layers=tuple(layers),
        position=choose([*Position]),
        scope=choose([scope for scope in scopes if scope is not Scope.CLASS or form is FORMS["method"]]),
        postponed=choose([False, True]),
        named=choose([False, True]),
        taken=choose([False, True]) if taken is None else taken,
    )
