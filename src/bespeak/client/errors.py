"""Errors that the client itself raises. An error that the server sent is an `MCPError`."""

from collections.abc import Sequence

LISTED_A_ROUND = 20


class InvalidServerResponse(RuntimeError):
    """The server sent something that the protocol does not allow."""


class Undeclared(InvalidServerResponse):
    """The server asked a question whose capability this client has not declared."""


class NotAtThisVersion(RuntimeError):
    """The protocol version in use does not have this method. Nothing was sent."""

    def __init__(self, method: str, version: str, instead: str) -> None:
        self.method = method
        super().__init__(f"{method} does not exist at protocol version {version}; {instead}")


class CallbackFailed(RuntimeError):
    """A callback of the client failed to answer a question, so the call was not continued. See `__cause__` for the reason."""

    def __init__(self, key: str, method: str, reason: str) -> None:
        self.key = key
        self.method = method
        super().__init__(f"the question {key!r} ({method}) could not be answered: {reason}")


class Declined(RuntimeError):
    """A person declined a question that has no answer for this. The server gets an error, and its call continues."""


class InputRequiredRoundsExceededError(RuntimeError):
    """The server asked more rounds of questions than the client allows. The text lists the questions of each round."""

    def __init__(self, max_rounds: int, asked: Sequence[Sequence[str]] = ()) -> None:
        self.max_rounds = max_rounds
        self.asked = asked
        lines = [f"  round {number}: {_listed(questions)}" for number, questions in enumerate(asked, 1)]
        head = f"the server is still asking after {max_rounds} answered rounds (input_required_max_rounds)"
        super().__init__("\n".join([f"{head}; it asked:", *lines]) if lines else head)


class InputRequiredQuestionsExceededError(RuntimeError):
    """The server asked more questions in one round than the client allows. None of them was answered."""

    def __init__(self, max_questions: int, asked: int) -> None:
        self.max_questions = max_questions
        self.asked = asked
        super().__init__(
            f"the server asked {asked} questions in one round, but this client answers at most {max_questions}"
            " (input_required_max_questions)"
        )


def _listed(questions: Sequence[str]) -> str:
    if not questions:
        return "no questions, only a requestState"
    more = len(questions) - LISTED_A_ROUND
    return "; ".join(questions[:LISTED_A_ROUND]) + (f"; and {more} more" if more > 0 else "")
