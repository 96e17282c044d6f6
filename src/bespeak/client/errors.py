"""Errors that arise at the client. None of them poses as an error of the server's."""

from collections.abc import Sequence

LISTED_A_ROUND = 20


class InvalidServerResponse(RuntimeError):
    """The server answered with something the protocol does not allow."""


class Undeclared(InvalidServerResponse):
    """The server asked what this client never said it can answer."""


class CallbackFailed(RuntimeError):
    """One of the client's callbacks failed to answer a question; the call is not retried. `__cause__` says why."""

    def __init__(self, key: str, method: str, reason: str) -> None:
        self.key = key
        self.method = method
        super().__init__(f"the question {key!r} ({method}) could not be answered: {reason}")


class InputRequiredRoundsExceededError(RuntimeError):
    """The server kept asking beyond the cap. Lists what it asked, round by round."""

    def __init__(self, max_rounds: int, asked: Sequence[Sequence[str]] = ()) -> None:
        self.max_rounds = max_rounds
        self.asked = asked
        lines = [f"  round {number}: {_listed(questions)}" for number, questions in enumerate(asked, 1)]
        head = f"the server still asks after {max_rounds} answered rounds (input_required_max_rounds)"
        super().__init__("\n".join([f"{head}; it asked:", *lines]) if lines else head)


class InputRequiredQuestionsExceededError(RuntimeError):
    """The server asked more in one round than this client answers. Nobody was asked anything."""

    def __init__(self, max_questions: int, asked: int) -> None:
        self.max_questions = max_questions
        self.asked = asked
        super().__init__(
            f"the server asked {asked} questions in one round, more than this client answers: {max_questions}"
            " (input_required_max_questions)"
        )


def _listed(questions: Sequence[str]) -> str:
    if not questions:
        return "nothing, it only handed out a state"
    more = len(questions) - LISTED_A_ROUND
    return "; ".join(questions[:LISTED_A_ROUND]) + (f"; and {more} more" if more > 0 else "")
