"""A till that never has enough: each confirmation is followed by another question."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it may be started as a script, too

from suites.broken.good import Question, Steps, Till
from suites.broken.wire import serve, told


class Endless(Till):
    def pay(self, cents: int, to: str) -> Steps:
        first = message = f"Pay {cents} cents to {to}?"
        asked = 1
        while (yield Question("confirm", message, "boolean")):
            asked += 1
            message = f"{first} (question {asked})"
        return told("Declined.", is_error=True)


if __name__ == "__main__":
    serve(Endless())
