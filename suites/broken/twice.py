"""A till that pays again when the same retry comes again, as it does after a lost response."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it may be started as a script, too

from suites.broken.good import Progress, Till
from suites.broken.wire import Json, serve


class Twice(Till):
    def once(self, progress: Progress, answers: Sequence[Any], reply: Callable[[], Json]) -> Json:
        return reply()


if __name__ == "__main__":
    serve(Twice())
