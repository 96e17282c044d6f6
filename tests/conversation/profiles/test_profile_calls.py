"""What is said of a profile that returns something else than it should: which one, what it returned, and what to write."""

from collections.abc import Sequence
from typing import Any

import pytest

from bespeak.conversation.answers import CannotAnswer
from bespeak.conversation.connection import Received
from bespeak.conversation.profiles.profile import Ask, Profile, Send
from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.responses import Question, Reading
from tests.conversation.profiles.test_known_profiles import Line, held
from tests.testing.canned import asking, told


class Sends(Profile):
    """A client whose `send` forgets to return the response."""

    async def send(self, send: Send) -> Received:
        await send()
        return None  # type: ignore[return-value]


class SendsAtOnce(Profile):
    def send(self, send: Send) -> Any:
        return Received({})


class Answers(Profile):
    async def answers(self, questions: Sequence[Question], ask: Ask) -> dict[str, Any]:
        await ask()
        return None  # type: ignore[return-value]


class AnswersAtOnce(Profile):
    def answers(self, questions: Sequence[Question], ask: Ask) -> Any:
        return {}


class AnswersAnother(Profile):
    async def answers(self, questions: Sequence[Question], ask: Ask) -> dict[str, Any]:
        return {"town": {"action": "decline"}}


class Judges(Profile):
    def judge(self, response: Any, read: Reading) -> Any:
        return None


class JudgesInWords(Profile):
    def judge(self, response: Any, read: Reading) -> Any:
        return ["it is slow"]


MAP = "return a map of key to answer, such as what `await ask()` returned"
FINDINGS = "return a list of Finding, or () for none"


@pytest.mark.parametrize(
    ("client", "said"),
    [
        (Sends, "send() returned None; return what `await send()` returned"),
        (SendsAtOnce, "send() must be asynchronous; write `async def send`"),
        (Answers, f"answers() returned None; {MAP}"),
        (AnswersAtOnce, "answers() must be asynchronous; write `async def answers`"),
        (AnswersAnother, "answers() answered 'town'; the server asked 'city'"),
        (Judges, f"judge() returned None; {FINDINGS}"),
        (JudgesInWords, f"judge() returned an array; {FINDINGS}"),
    ],
)
async def test_a_profile_that_returns_something_else_is_told_what_to_return(client: type[Profile], said: str) -> None:
    with pytest.raises(CannotAnswer) as raised:
        await held(Line([asking("city"), told()]), client(), {"city": "Rome"})
    assert str(raised.value) == f"profile {client.__name__}: {said}"


class Fine(Profile):
    """A client whose methods return what they should, in other forms."""

    def send(self, send: Send) -> Any:
        return send()

    def answers(self, questions: Sequence[Question], ask: Ask) -> Any:
        return ask()

    def judge(self, response: Any, read: Reading) -> Sequence[Finding]:
        return [Finding("declined", "it asked")] if read.questions else ()


async def test_what_can_be_awaited_need_not_be_an_async_function() -> None:
    talk, _ = await held(Line([asking("city"), told()]), Fine(), {"city": "Rome"})
    assert [one.text for one in talk.conversation.findings] == ["it asked"]
