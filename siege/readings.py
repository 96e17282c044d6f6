"""What a server holds at one moment, and over a time."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """What a server holds. `None` is what could not be found out."""

    memory: float
    """MiB resident."""
    files: int | None = None
    tasks: int | None = None
    sessions: int | None = None
    waiting: int | None = None
    """Calls that wait at a question of an older client."""
    claims: int | None = None

    def of(self, name: str) -> float | None:
        return asdict(self)[name]

    def exceeds(self, other: "Reading", names: dict[str, float]) -> list[str]:
        """Which of these are higher than in another reading, by more than so much."""
        found: list[str] = []
        for name, slack in names.items():
            mine, theirs = self.of(name), other.of(name)
            if mine is not None and theirs is not None and mine > theirs + slack:
                found.append(name)
        return found


def highest(readings: Sequence[Reading]) -> Reading:
    """The most there was of each."""

    def most(values: Iterable[int | None]) -> int | None:
        return max((value for value in values if value is not None), default=None)

    return Reading(
        memory=max(one.memory for one in readings),
        files=most(one.files for one in readings),
        tasks=most(one.tasks for one in readings),
        sessions=most(one.sessions for one in readings),
        waiting=most(one.waiting for one in readings),
        claims=most(one.claims for one in readings),
    )
