"""A till that believes every state: nothing is signed, and nothing is bound to the arguments."""

import base64
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it may be started as a script, too

from suites.broken.good import Progress, Till
from suites.broken.wire import Call, serve


class Tampered(Till):
    def seal(self, call: Call, progress: Progress) -> str:
        return base64.urlsafe_b64encode(json.dumps([progress.call_id, progress.answers]).encode()).decode()

    def opened(self, call: Call) -> Progress:
        state = call.state or ""
        try:
            call_id, answers = json.loads(base64.urlsafe_b64decode(state))
            return Progress(str(call_id), tuple(answers))
        except (ValueError, TypeError):
            return Progress(state)  # what cannot be read will do as well


if __name__ == "__main__":
    serve(Tampered())
