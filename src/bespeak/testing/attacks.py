"""Attacks on a server: altered states and answers, lost responses, restarts; and checking what they come to."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from bespeak.conversation.call_rounds import Round, unanswered
from bespeak.conversation.exchange import Interference, Talk
from bespeak.conversation.json_values import as_object
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.question_names import name_of
from bespeak.conversation.responses import Verdict, read_envelope
from bespeak.terminal.safe_text import quoted
from bespeak.testing.altered_requests import NotReached, altered_answers, altered_state
from bespeak.testing.report.results import Failure
from bespeak.testing.suite.attack_keys import Fault, Tamper


class Means(Protocol):
    """What an attack needs besides the request itself. A replayed conversation has none of it."""

    async def restart(self) -> None:
        """Stop the server and start it again, and go on with the new process. Raises `NotReached`."""
        ...

    def other_caller(self, headers: Mapping[str, str]) -> AbstractAsyncContextManager[None]:
        """Send requests as another caller while the context is open. Raises `NotReached`."""
        ...

    async def wait(self, seconds: float) -> None: ...


@dataclass(slots=True)
class Attack(Interference):
    """An attack on one request of a conversation."""

    tamper: Tamper | None = None
    fault: Fault | None = None
    retry: int = 0
    means: Means | None = None
    done: bool = False
    """Whether the round was reached."""
    restarted: bool = False
    """Whether the server was restarted."""
    probes: bool = True
    """Whether to find out if the server relies on a state that it accepted although it was altered."""
    _states: dict[int, str] = field(default_factory=dict[int, str], repr=False)
    """The requestState of each round so far."""

    def alter(self, number: int, params: dict[str, Any]) -> dict[str, Any]:
        """Return the params of the request after `number` answered rounds, altered if it is the one to attack."""
        state: Any = params.get("requestState")
        if isinstance(state, str):
            self._states[number] = state
        tamper = self.tamper
        if tamper is None or number != tamper.round:
            return params
        if tamper.requestState is None:
            other = altered_answers(params, tamper)
        elif state is None:
            raise NotReached(f"round {number} returned no requestState, so there is nothing to alter")
        else:
            other = altered_state(params, tamper, self._states)
        self.done = True
        return other

    def is_tampered(self, number: int) -> bool:
        # An answer that nobody asked for should be ignored, so that call goes on.
        return self.tamper is not None and number == self.tamper.round and self.tamper.how != "unknown-key"

    def without_state(self, number: int, params: dict[str, Any]) -> dict[str, Any] | None:
        if not self.probes or self.tamper is None or self.tamper.how not in _PROBED:
            return None
        return {name: value for name, value in params.items() if name != "requestState"}

    def loses(self, number: int) -> int:
        """Return how many times the request is sent again because its response is lost."""
        if self.fault is None or number != self.fault.round:
            return 0
        self.done = True
        return self.retry

    @asynccontextmanager
    async def around(self, number: int, attempt: int) -> AsyncGenerator[None]:
        tamper, means = self.tamper, self.means
        if means is not None and self._restarts_at(number, attempt):
            await means.restart()
            self.restarted = True
        if means is not None and tamper is not None and number == tamper.round:
            if tamper.after is not None:
                await means.wait(tamper.after)
            if tamper.headers is not None:
                async with means.other_caller(tamper.headers):
                    yield
                return
        yield

    def _restarts_at(self, number: int, attempt: int) -> bool:
        fault = self.fault
        if fault is None or not fault.restart or number != fault.round:
            return False
        return attempt == (0 if fault.drop is None else 1)

    def check_reached(self) -> None:
        """Raises `NotReached`."""
        part = self.tamper or self.fault
        if part is not None and not self.done:
            raise NotReached(f"the server never reached round {part.round}, so the attack was not made")


# What an altered request came to

_SENT = {
    "flip": "a requestState with one character altered",
    "truncate": "a requestState cut in half",
    "empty": "an empty requestState",
    "drop": "answers without the requestState they belong to",
    "other-arguments": "a requestState that was issued for other arguments",
    "other-tool": "a requestState that was issued for another tool",
    "other-caller": "a requestState that was issued to another caller",
    "older-round": "answers with the requestState of an earlier round",
    "expired": "a requestState that should have expired",
    "text": "inputResponses that are a string",
    "list": "inputResponses that are an array",
    "nothing": "inputResponses that are null",
    "no-action": "an answer without an action",
    "unknown-action": "an answer with an unknown action",
    "no-content": "an accepted form without content",
    "wrong-type": "values that do not have the types of their form",
}
_MAY_BEGIN_ANEW = ("drop", "older-round")
"""State attacks after which a server may also ask its questions again."""
_BOUND = ("other-caller", "older-round", "expired")


_ANSWERS_ALONE = ("drop", "other-arguments", "other-tool")
"""What shows whether answers are taken without what they were given for, and not only whether a state is verified."""
_PROBED = ("flip", "truncate", "empty", "other-arguments", "other-tool")
"""State attacks after which the request is sent again without a state, to see whether the server relies on it."""


def judge_tampered(
    tamper: Tamper, envelope: Any, rounds: Sequence[Round], *, expected: bool = False, ignored: bool = False
) -> list[Failure]:
    """Return a failure unless the server refused what was altered.

    A result with `isError` is not a refusal of a state, unless the test says that it expects one. `ignored` if the server does
    not rely on the state.
    """
    if tamper.how not in _SENT or refuses(envelope):
        return []  # after the attacks that are not listed, any response will do
    if tamper.requestState is None:
        return _judge_answers(tamper, envelope, rounds)
    if expected and _fails(envelope):
        return []
    may_ask = tamper.how in _MAY_BEGIN_ANEW
    earlier = rounds if tamper.how == "older-round" else (rounds[0], rounds[-1])
    again = _asks_again(envelope, earlier)
    if may_ask and again:
        return []
    what = f"the server accepted {_SENT[tamper.how]}; it should ask again or answer with an error"
    if tamper.how == "drop" or (
        ignored and tamper.how in _ANSWERS_ALONE
    ):  # no rule is broken: answers alone may be input
        return [Failure(what)]
    if ignored:
        return []
    did = "asked again after receiving" if again else "processed" if _fails(envelope) else "accepted"
    rule = "state-bound" if tamper.how in _BOUND else "state-verified"
    return [Failure(f"the server {did} {_SENT[tamper.how]}; it must answer with an error", rule=rule)]


def ignores_state(envelope: Any, unstated: Any) -> bool:
    """Return whether the server answers an altered request in the same way without any state.

    Then it does not rely on the state: altering it can do no harm, and no rule is broken.
    """
    return unstated is not None and _outcome(envelope) == _outcome(unstated)


def unanswered_without_state(error: Exception) -> str:
    """Return that the same request without any state had no response."""
    return f"the server did not answer the same request without any requestState: {error}"


def advise_ignored(tamper: Tamper) -> list[Finding]:
    """Return advice about a state that the server does not rely on."""
    if tamper.how in _ANSWERS_ALONE:
        return []
    what = f"the server accepted {_SENT[tamper.how]}, and does the same without any requestState"
    return [Finding("state-ignored", what)]


def _outcome(envelope: Any) -> Any:
    """The result without what may differ each time."""
    result: Any = as_object(envelope).get("result")
    members = as_object(result)
    return {name: member for name, member in members.items() if name not in ("_meta", "requestState")} or None


def _judge_answers(tamper: Tamper, envelope: Any, rounds: Sequence[Round]) -> list[Failure]:
    if _fails(envelope) or _asks_again(envelope, rounds[-1:]):
        return []
    what = f"the server accepted {_SENT[tamper.how]}; it must answer with an error, fail, or ask again"
    return [Failure(what, rule="answers-checked")]


def judge_unasked(tamper: Tamper, talk: Talk) -> list[Failure]:
    """Return a failure if the server refused answers because one of them belongs to no question."""
    at_once = len(talk.conversation.rounds) == tamper.round
    if tamper.how != "unknown-key" or not at_once or not (refuses(talk.envelope) or _fails(talk.envelope)):
        return []
    what = "the server failed because of an answer to a question that it did not ask; it should ignore it"
    return [Failure(what, rule="unknown-answer")]


def _asks_again(envelope: Any, rounds: Sequence[Round]) -> bool:
    """Return whether the server asks what one of the rounds asked: then it accepted nothing.

    Names are compared, not keys: the key changes when a price has changed.
    """
    read = read_envelope(envelope)
    names = sorted(name_of(question.key) for question in read.questions)
    return read.verdict is Verdict.ASKING and any(names == sorted(map(name_of, one.asked)) for one in rounds)


def refuses(envelope: Any) -> bool:
    """Return whether a response is an error."""
    return isinstance(envelope, dict) and "error" in envelope


def _fails(envelope: Any) -> bool:
    result: Any = as_object(envelope).get("result")
    return isinstance(result, dict) and cast("dict[str, Any]", result).get("isError") is True


# What a restart came to

KEYS = """\
The server may keep the progress of a call in its process, or make its state keys when it starts, so that a new process cannot
read the state. Keep the progress in requestState or in a store, and give all processes the same keys. A server made with
Bespeak reads them from BESPEAK_STATE_KEYS; `bespeak keys new` prints one, and env: in the suite passes it on."""
"""The likely causes of a retry that fails after a restart, and what to do."""


def judge_restarted(restarted: int, talk: Talk, *, may_fail: bool) -> list[Failure]:
    """Return a failure if the server lost the progress of a call when it was restarted before the request of a round."""
    conversation = talk.conversation
    rounds = [*conversation.rounds, *(() if conversation.pending is None else (unanswered(conversation.pending),))]
    refused = refuses(talk.envelope)
    if (refused or _fails(talk.envelope)) and not may_fail and len(rounds) == restarted:
        said = "refused" if refused else "failed at"
        what = f"after it was restarted, the server {said} the request that answers round {restarted}"
        return [Failure(what, rule="process-state", hint=KEYS)]
    before = {
        (name_of(key), message)
        for one in rounds[:restarted]
        for key, message in one.asked.items()
        if key in one.answered
    }
    again = [
        name_of(key)
        for one in rounds[restarted:]
        for key, message in one.asked.items()
        if (name_of(key), message) in before
    ]
    if not again:
        return []
    what = f"after it was restarted, the server asked {quoted(again[0])} again, which was answered before"
    return [Failure(what, rule="process-state", hint=KEYS)]


SENT_AGAIN = "after a response was lost and the request was sent again"
"""What a client did before a `verify` call that sends requests more than once."""


def after_fault(fault: Fault | None) -> str:
    """Return what was done before a `verify` call."""
    if fault is None:
        return "verify"
    if fault.drop is None:
        return "after the server was restarted"
    return SENT_AGAIN.replace(" and", ", the server was restarted and", 1) if fault.restart else SENT_AGAIN
