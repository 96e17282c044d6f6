"""What must hold after a storm: nobody is charged twice or unasked, every call has a clear end, and all replies agree."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from storm.book import Entry, Event
from storm.records import Era, Record, Wreckage
from storm.replies import CLEAR_ERRORS, Ending, Reply


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that did not hold, and where."""

    rule: str
    example: str


RAN_TWICE = "a body runs at most once for a call"
CHARGED_TWICE = "an order is charged at most once"
NO_BEGINNING = "what ends has begun"
UNASKED = "a body runs only after its last question was accepted"
NO_CLEAR_END = "every call ends with a result or a clear error"
NEVER_SETTLED = "a modern call is settled when its last request is sent again"
OTHER_QUESTIONS = "every question is asked"
UNEXPECTED_REPLY = "no request gets an unexpected reply, or none"
LATE_ANSWER = "a worker that lives has the answer to its question in time"
DIFFERENT_REPLIES = "the same request gets the same reply"
MIXED = "a call whose outcome is unknown has no result"
WRONG_RESULT = "a result is that of the body that ran"
NOT_KILLED = "a body is interrupted, or its outcome unknown, only if its worker was killed"
BROKEN_ALONE = "a connection breaks only if its worker was killed"
EXITED = "no worker exits by itself"
TRACEBACK = "no worker logs a traceback"
TOO_CALM = "workers are killed in mid-call, and answers reach other workers: otherwise a storm shows nothing"
ANSWER_SECONDS = 10.0
"""How long it may take from an answer of an older client to what comes next, beyond the time that the body takes."""
_NEVER = (Ending.UNEXPECTED, Ending.OVERDUE)


def judge(
    records: Sequence[Record], book: Sequence[Entry], wreckage: Wreckage, asides: Sequence[Reply] = ()
) -> list[Violation]:
    """Return everything that must not have happened. `asides` are replies to requests that belong to no call."""
    by_order = defaultdict[str, list[Entry]](list)
    for entry in book:
        by_order[entry.order].append(entry)
    found = [*_judge_book(book, wreckage), *_judge_workers(wreckage)]
    crossed = sum(bool(record.crossed) for record in records)
    if not wreckage.breaks or not crossed:
        found.append(Violation(TOO_CALM, f"{len(wreckage.breaks)} broken connections, {crossed} answers elsewhere"))
    found += [Violation(UNEXPECTED_REPLY, reply.said) for reply in asides if reply.ending in _NEVER]
    for record in records:
        entries = by_order[record.plan.order]
        found += _judge_call(record)
        found += _judge_effects(record, entries, wreckage)
    return found


def _judge_book(book: Sequence[Entry], wreckage: Wreckage) -> Iterator[Violation]:
    begun = [entry for entry in book if entry.event is Event.BEGUN]
    for call, times in Counter(entry.call for entry in begun).items():
        if times > 1:
            yield Violation(RAN_TWICE, f"{times} times: {[entry for entry in book if entry.call == call]}")
    for order, times in Counter(entry.order for entry in begun).items():
        if times > 1:
            yield Violation(CHARGED_TWICE, f"{times} times: {[entry for entry in book if entry.order == order]}")
    started = {(entry.call, entry.pid) for entry in begun}
    ended = {(entry.call, entry.pid) for entry in book if entry.event is Event.ENDED}
    for call, pid in ended - started:
        yield Violation(NO_BEGINNING, f"call {call} on worker {pid}")
    for call, pid in started - ended:
        if pid not in wreckage.killed:
            yield Violation(NOT_KILLED, f"the body of call {call} did not end on worker {pid}, which was not killed")


def _judge_workers(wreckage: Wreckage) -> Iterator[Violation]:
    for one in wreckage.breaks:
        if one.pid not in wreckage.killed:
            yield Violation(BROKEN_ALONE, f"worker {one.pid}, {one.request}")
    for one in wreckage.exits:
        yield Violation(EXITED, f"worker {one.pid} with status {one.status}")
    for one in wreckage.tracebacks:
        yield Violation(TRACEBACK, one)


def _judge_call(record: Record) -> Iterator[Violation]:
    plan, ending = record.plan, record.ending
    where = f"{plan.order} ({plan.tool}, {plan.era.value})"
    for reply in (*record.replies, *record.detours):
        if reply.ending in _NEVER:
            yield Violation(UNEXPECTED_REPLY, f"{where}: {reply.said}")
    if ending not in (Ending.RESULT, Ending.DECLINED) and ending not in CLEAR_ERRORS:
        yield Violation(NO_CLEAR_END, f"{where}: {ending.value}{_last_words(record)}")
    if (ending is Ending.DECLINED) == plan.consents and ending in (Ending.RESULT, Ending.DECLINED):
        yield Violation(NO_CLEAR_END, f"{where}: {ending.value}, though the person said otherwise")
    if plan.era is Era.MODERN and ending in CLEAR_ERRORS - {Ending.OUTCOME_UNKNOWN}:
        yield Violation(NEVER_SETTLED, f"{where}: {ending.value}{_last_words(record)}")
    if ending in (Ending.RESULT, Ending.DECLINED) and record.asked != plan.questions:
        yield Violation(OTHER_QUESTIONS, f"{where}: {record.asked} of {plan.questions} questions")
    if record.waited > ANSWER_SECONDS + plan.pause_ms / 1000:
        yield Violation(LATE_ANSWER, f"{where}: {record.waited:.1f} s")
    settled = [reply for reply in record.replies if reply.ending in (Ending.RESULT, Ending.DECLINED)]
    if len({reply.result for reply in settled}) > 1:
        yield Violation(DIFFERENT_REPLIES, f"{where}: {_said(settled)}")
    if settled and any(reply.ending is Ending.OUTCOME_UNKNOWN for reply in record.replies):
        yield Violation(MIXED, f"{where}: {_said(record.replies)}")


def _judge_effects(record: Record, entries: Sequence[Entry], wreckage: Wreckage) -> Iterator[Violation]:
    plan, ending = record.plan, record.ending
    where = f"{plan.order} ({plan.tool}, {plan.era.value})"
    begun = [entry for entry in entries if entry.event is Event.BEGUN]
    if begun and not (plan.consents and record.answered):
        yield Violation(UNASKED, f"{where}: {begun}")
    if ending is Ending.RESULT:
        expected = [_receipt(entry) for entry in entries if entry.event is Event.ENDED and entry.cents == plan.total]
        results = [reply for reply in record.replies if reply.ending is Ending.RESULT]
        for reply in results:
            if (reply.content or {}).get("structuredContent") not in expected:
                yield Violation(WRONG_RESULT, f"{where}: {reply.said}, but the book has {list(entries)}")
    if ending is Ending.OUTCOME_UNKNOWN:
        for entry in begun:
            if entry.pid not in wreckage.killed:
                yield Violation(NOT_KILLED, f"{where}: outcome unknown, but worker {entry.pid} was not killed")


def _receipt(entry: Entry) -> dict[str, str | int]:
    return {"call": entry.call, "order": entry.order, "cents": entry.cents, "pid": entry.pid}


def _said(replies: Sequence[Reply]) -> str:
    return " | ".join(f"{reply.ending.value} from worker {reply.worker}: {reply.said}" for reply in replies)


def _last_words(record: Record) -> str:
    last = record.replies or record.detours
    return f": {last[-1].said}" if last else ""
