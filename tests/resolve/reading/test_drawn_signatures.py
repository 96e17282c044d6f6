"""Signatures and wrappers drawn at random: no marker is lost in any of them. `make signatures` draws 100,000 on each Python."""

import os
import random
from collections import Counter
from collections.abc import Callable

import pytest

from tests.resolve.reading.generated.drawing import drawn
from tests.resolve.reading.generated.programs import NotPython, Scope, judge
from tests.resolve.reading.generated.spellings import LEAVES, Verdict

DRAWS = int(os.environ.get("BESPEAK_DRAWS", "2000"))
SEED = os.environ.get("BESPEAK_SEED", "1")
_BATCH = 100
_MARKED = [leaf for leaf in LEAVES.values() if leaf.marked]
_RIGHT = [leaf for leaf in _MARKED if leaf.verdict is Verdict.HONOURED]


@pytest.mark.long
@pytest.mark.parametrize("batch", range(DRAWS // _BATCH))
def test_no_marker_is_lost_in_signatures_and_wrappers_drawn_at_random(
    batch: int, record_property: Callable[[str, object], None]
) -> None:
    chance = random.Random(f"{SEED} {batch}")
    ended = Counter[str]()
    while ended.total() < _BATCH:
        program = drawn(chance.choice, _RIGHT if chance.random() < 0.9 else _MARKED, [*Scope], depths=(0, 0, 0, 1))
        if program.is_possible:
            try:
                ended[judge(program)] += 1
            except NotPython:
                continue
    record_property("signatures", ended.total())
    assert ended["honoured"] > _BATCH / 20
    assert ended["refused"] > _BATCH / 20
