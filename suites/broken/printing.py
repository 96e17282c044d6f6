"""A till that prints a line of its own to stdout while it pays."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it may be started as a script, too

from suites.broken.good import Steps, Till
from suites.broken.wire import serve


class Printing(Till):
    def pay(self, cents: int, to: str) -> Steps:
        result = yield from super().pay(cents, to)
        print("opening the drawer", flush=True)
        return result


if __name__ == "__main__":
    serve(Printing())
