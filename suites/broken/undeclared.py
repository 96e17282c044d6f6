"""A till that asks clients with a form that never said they could be asked."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it may be started as a script, too

from suites.broken.good import Till
from suites.broken.wire import Call, serve


class Undeclared(Till):
    def check_declared(self, call: Call) -> None:
        pass


if __name__ == "__main__":
    serve(Undeclared())
