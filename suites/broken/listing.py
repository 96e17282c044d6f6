"""A till that asks in the list dialect: an array of fields without a resultType, answered by an array of values."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # it may be started as a script, too

from suites.broken.good import Progress, Question, Till, fitting
from suites.broken.wire import INVALID_PARAMS, Call, Json, Refused, as_object, serve


class Listing(Till):
    def ask(self, call: Call, question: Question, progress: Progress) -> Json:
        self.check_declared(call)
        field = {"id": question.key, "kind": question.kind, "description": question.message, "required": True}
        return {"inputRequests": [field], "requestState": self.seal(call, progress)}

    def answered(self, call: Call, question: Question) -> Sequence[Any]:
        responses: Any = [] if call.responses is None else call.responses
        if not isinstance(responses, list):
            raise Refused(INVALID_PARAMS, "inputResponses is an array of {id, value}")
        answers = [as_object(response) for response in cast("list[Any]", responses)]
        values = [answer.get("value") for answer in answers if answer.get("id") == question.key]
        return [fitting(question, value) for value in values[:1]]


if __name__ == "__main__":
    serve(Listing())
