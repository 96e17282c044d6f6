"""Outcomes and questions where a condition is expected: nothing but a yes counts as one."""

import pytest
from pydantic import BaseModel

from bespeak import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    Elicit,
    ElicitUrl,
    ListRoots,
    NotAsked,
    Sample,
)
from bespeak.resolve.markers import Question


class Backorder(BaseModel):
    confirm: bool


@pytest.mark.parametrize(
    "outcome",
    [DeclinedElicitation(), CancelledElicitation(), NotAsked("not_declared"), AcceptedElicitation(data=False)],
)
def test_an_outcome_that_is_no_yes_counts_as_false(outcome: object) -> None:
    assert not outcome


@pytest.mark.parametrize("data", [True, 0, "", None, Backorder(confirm=True)])
def test_an_accepted_outcome_counts_as_true_whatever_else_was_answered(data: object) -> None:
    assert AcceptedElicitation(data=data)


@pytest.mark.parametrize(
    "question",
    [Elicit("Sure?", bool), ElicitUrl("Sure?", "https://pay.example.com"), Sample([], max_tokens=10), ListRoots()],
)
def test_a_question_is_neither_true_nor_false(question: Question) -> None:
    told = f"{type(question).__name__}\\(...\\) is a question that nobody has answered, so it is neither true nor false"
    with pytest.raises(TypeError, match=told):
        bool(question)
