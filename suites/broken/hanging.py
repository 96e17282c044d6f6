"""A till that never answers the retry of a payment. Everything else it answers, also meanwhile."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it may be started as a script, too

from suites.broken.good import Till
from suites.broken.wire import Call, Json, serve


class Hanging(Till):
    def call(self, call: Call) -> Json | None:
        if call.tool == "pay" and call.state is not None:
            return None
        return super().call(call)


if __name__ == "__main__":
    serve(Hanging())
