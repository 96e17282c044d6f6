"""What a storm must not bring."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from storm.book import Entry, Event
from storm.judgement import (
    BROKEN_ALONE,
    CHARGED_TWICE,
    DIFFERENT_REPLIES,
    EXITED,
    LATE_ANSWER,
    MIXED,
    NEVER_SETTLED,
    NO_BEGINNING,
    NO_CLEAR_END,
    NOT_KILLED,
    OTHER_QUESTIONS,
    RAN_TWICE,
    TOO_CALM,
    TRACEBACK,
    UNASKED,
    UNEXPECTED_REPLY,
    WRONG_RESULT,
    judge,
)
from storm.records import Break, Era, Exit, Plan, Record, Wreckage
from storm.replies import Ending, Reply, broken, overdue

PLAN = Plan("ORD-1", Era.MODERN, "charge", 500, None, 0, consents=True)
OLDER = replace(PLAN, era=Era.OLDER)
KILLED = 13
RECEIPT = {"call": "c1", "order": "ORD-1", "cents": 500, "pid": 7}
RESULT = Reply(Ending.RESULT, "charged", result=b"charged", content={"structuredContent": RECEIPT})
UNKNOWN = Reply(Ending.OUTCOME_UNKNOWN, "outcome unknown")
BEGUN = Entry(Event.BEGUN, "c1", "ORD-1", 500, 7)
ENDED = replace(BEGUN, event=Event.ENDED)
HARM = Wreckage(frozenset({KILLED}), (Break(KILLED, "POST /mcp HTTP/1.1"),))
ELSEWHERE = Record(replace(OLDER, order="ORD-0"), asked=1, replies=[broken("gone")], crossed=True)
"""A call of an older client whose answer reached another worker."""


def rules(
    record: Record | None = None, book: Sequence[Entry] = (), wreckage: Wreckage = HARM, asides: Sequence[Reply] = ()
) -> list[str]:
    """Return the rules that do not hold."""
    records = [ELSEWHERE] if record is None else [ELSEWHERE, record]
    return [violation.rule for violation in judge(records, book, wreckage, asides)]


def settled(*replies: Reply, plan: Plan = PLAN) -> Record:
    return Record(plan, asked=plan.questions, answered=True, replies=list(replies))


def test_a_call_that_ran_once_and_was_answered_alike_is_as_it_should_be() -> None:
    assert rules(settled(RESULT, broken("reset"), RESULT), [BEGUN, ENDED]) == []


def test_a_call_whose_worker_was_killed_has_an_unknown_outcome() -> None:
    assert rules(settled(broken("reset"), UNKNOWN, UNKNOWN), [replace(BEGUN, pid=KILLED)]) == []


def test_a_second_run_is_found_by_call_and_by_order() -> None:
    again = [replace(BEGUN, pid=8), replace(ENDED, pid=8)]
    assert rules(settled(RESULT), [BEGUN, ENDED, *again]) == [RAN_TWICE, CHARGED_TWICE]
    other_call = [replace(entry, call="c2") for entry in again]
    assert rules(settled(RESULT), [BEGUN, ENDED, *other_call]) == [CHARGED_TWICE]


def test_an_end_without_a_beginning_is_found() -> None:
    assert rules(settled(RESULT), [ENDED]) == [NO_BEGINNING]


def test_a_body_ends_unless_its_worker_was_killed() -> None:
    assert rules(settled(broken("reset"), plan=OLDER), [BEGUN]) == [NOT_KILLED]
    assert rules(settled(broken("reset"), plan=OLDER), [replace(BEGUN, pid=KILLED)]) == []


def test_an_outcome_is_unknown_only_if_the_worker_was_killed() -> None:
    assert rules(settled(UNKNOWN), [BEGUN, ENDED]) == [NOT_KILLED]


def test_nobody_is_charged_who_declined_or_was_not_asked() -> None:
    declined = settled(Reply(Ending.DECLINED), plan=replace(PLAN, consents=False))
    assert rules(declined) == []
    assert rules(declined, [BEGUN, ENDED]) == [UNASKED]
    assert rules(Record(OLDER, replies=[broken("reset")]), [BEGUN, ENDED]) == [UNASKED]


def test_the_same_request_has_one_reply() -> None:
    other = replace(RESULT, result=b"charged again")
    assert rules(settled(RESULT, other), [BEGUN, ENDED]) == [DIFFERENT_REPLIES]


@pytest.mark.parametrize("replies", [(RESULT, UNKNOWN), (UNKNOWN, RESULT)])
def test_an_unknown_outcome_is_never_mixed_with_a_result(replies: tuple[Reply, ...]) -> None:
    assert MIXED in rules(settled(*replies), [BEGUN, ENDED])


def test_a_result_must_be_in_the_book() -> None:
    assert rules(settled(RESULT)) == [WRONG_RESULT]
    assert rules(settled(RESULT), [replace(BEGUN, pid=8), replace(ENDED, pid=8)]) == [WRONG_RESULT]
    other_amount = [replace(BEGUN, cents=1), replace(ENDED, cents=1)]
    assert rules(settled(RESULT), other_amount) == [WRONG_RESULT]


def test_a_modern_call_must_be_settled_and_an_older_one_may_break() -> None:
    assert rules(settled(broken("reset"))) == [NEVER_SETTLED]
    assert rules(settled(broken("reset"), plan=OLDER)) == []


def test_a_call_must_end_as_the_person_said() -> None:
    assert rules(settled(Reply(Ending.DECLINED))) == [NO_CLEAR_END]


@pytest.mark.parametrize("reply", [overdue(75.0), Reply(Ending.UNEXPECTED, "HTTP 500")])
def test_a_request_without_a_clear_reply_is_found_wherever_it_was(reply: Reply) -> None:
    assert rules(settled(reply)) == [UNEXPECTED_REPLY, NO_CLEAR_END]
    on_the_way = settled(RESULT)
    on_the_way.detours.append(reply)
    assert rules(on_the_way, [BEGUN, ENDED]) == [UNEXPECTED_REPLY]
    assert rules(asides=[reply]) == [UNEXPECTED_REPLY]


def test_every_question_must_be_asked() -> None:
    plan = replace(PLAN, tool="charge_with_tip", cents=490, tip=10)
    assert rules(settled(RESULT, plan=plan), [BEGUN, ENDED]) == []
    assert rules(replace(settled(RESULT, plan=plan), asked=1), [BEGUN, ENDED]) == [OTHER_QUESTIONS]


def test_an_answer_must_not_get_lost_on_its_way_to_the_worker_that_asked() -> None:
    slow = replace(OLDER, pause_ms=400)
    assert rules(replace(settled(RESULT, plan=slow), waited=10.3), [BEGUN, ENDED]) == []
    assert rules(replace(settled(broken("reset"), plan=slow), waited=10.5)) == [LATE_ANSWER]


def test_workers_must_not_fail_by_themselves() -> None:
    assert rules(wreckage=replace(HARM, breaks=(Break(7, "POST /mcp HTTP/1.1"),))) == [BROKEN_ALONE]
    assert rules(wreckage=replace(HARM, exits=(Exit(7, 3),))) == [EXITED]
    assert rules(wreckage=replace(HARM, tracebacks=("Traceback",))) == [TRACEBACK]


def test_a_storm_in_which_nothing_broke_shows_nothing() -> None:
    assert rules(wreckage=Wreckage()) == [TOO_CALM]
    assert [one.rule for one in judge([], [], HARM)] == [TOO_CALM]
