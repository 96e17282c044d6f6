"""What must hold of every siege, and what may be demanded of one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from siege.honest import Samples
from siege.readings import Reading

MOST_TIMES_SLOWER = 5.0
SECOND_ADDS_MIB = 16.0


@dataclass(frozen=True, slots=True)
class Check:
    """One demand, and whether it was met."""

    demand: str
    met: bool
    found: str = ""


@dataclass(frozen=True, slots=True)
class Turn:
    """One run of an attack."""

    before: Reading
    peak: Reading
    after: Reading
    tally: Mapping[str, int]
    seconds: float
    rising: Samples = field(default_factory=Samples)
    """Honest calls until everything was in place, or had been sent."""
    during: Samples = field(default_factory=Samples)
    """Honest calls under the whole attack."""
    afterwards: Samples = field(default_factory=Samples)
    """Honest calls when it was over."""


Criterion = Callable[[Sequence[Turn]], Check]


def judge_honest(before: Samples, during: Samples, least: int, when: str) -> list[Check]:
    """At least so many calls of each kind were made, all were served, and, if there are as many as in peace, not much slower."""
    found: list[Check] = []
    for kind, calm in before.items():
        stormy = during[kind]
        failures = calm.failures + stormy.failures
        said = failures[0] if failures else f"{len(stormy.times)} served"
        demand = f"honest {kind} calls are served {when}"
        found.append(Check(demand, not failures and len(stormy.times) >= least, said))
        if calm.median_ms is not None and stormy.median_ms is not None and len(stormy.times) >= len(calm.times):
            times = stormy.median_ms / calm.median_ms
            demand = f"the median of honest {kind} calls {when} is within {MOST_TIMES_SLOWER:g} times"
            found.append(Check(demand, times <= MOST_TIMES_SLOWER, f"{times:.1f} times"))
    return found


def judge_afterwards(turns: Sequence[Turn]) -> list[Check]:
    """Whoever comes when it is over is served."""
    failures = [text for turn in turns for sample in turn.afterwards.values() for text in sample.failures]
    return [Check("honest calls after the attack are served", not failures, failures[0] if failures else "")]


def judge_second(turns: Sequence[Turn]) -> list[Check]:
    """The same attack again finds what it needs in what the first one left."""
    if len(turns) < 2:
        return []
    added = turns[1].peak.memory - turns[0].peak.memory
    return [
        Check(f"a second attack adds less than {SECOND_ADDS_MIB:g} MiB", added < SECOND_ADDS_MIB, f"{added:+.0f} MiB")
    ]


# What one attack may have to meet besides


def grows_at_most(name: str, most: float) -> Criterion:
    """At the peak there is at most so much more than before the first attack."""

    def check(turns: Sequence[Turn]) -> Check:
        grown = [_grown(turns[0].before, turn.peak, name) for turn in turns]
        seen = [one for one in grown if one is not None]
        said = ", ".join(f"{one:+.0f}" for one in seen) or "not known"
        return Check(f"{name} grow by at most {most:g}", bool(seen) and max(seen) <= most, said)

    return check


def lets_go(name: str, slack: float) -> Criterion:
    """When the first attack is over there is no more than before, but for some slack."""

    def check(turns: Sequence[Turn]) -> Check:
        left = _grown(turns[0].before, turns[0].after, name)
        said = "not known" if left is None else f"{left:+.0f}"
        return Check(f"{name} return to what they were, within {slack:g}", left is not None and left <= slack, said)

    return check


def happened(name: str, least: int = 1) -> Criterion:
    """Something happened at least so often in the first attack."""

    def check(turns: Sequence[Turn]) -> Check:
        times = _times(turns[0].tally, name)
        return Check(f"{name}: at least {least}", times >= least, str(times))

    return check


def never_happened(name: str) -> Criterion:
    """Nothing of that name, or whose name begins so, happened."""

    def check(turns: Sequence[Turn]) -> Check:
        times = [_times(turn.tally, name) for turn in turns]
        found = sorted({one for turn in turns for one in turn.tally if one.startswith(name)})
        return Check(f"{name}: never", not any(times), "; ".join(found))

    return check


def _times(tally: Mapping[str, int], name: str) -> int:
    exact = tally.get(name)
    return exact if exact is not None else sum(number for one, number in tally.items() if one.startswith(name))


def _grown(before: Reading, later: Reading, name: str) -> float | None:
    first, last = before.of(name), later.of(name)
    return None if first is None or last is None else last - first
