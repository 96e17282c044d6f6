"""A server that goes on without a required answer gets advice, whether it fails the call or completes it."""

from pathlib import Path

import pytest

from bespeak.testing.report.results import Result
from tests.conversation.raw_runs import held
from tests.conversation.raw_servers import Raw, asks, done, failed

OMITTED = "tool: x, inputResponses: {q: omit}"


def advice(result: Result) -> list[tuple[str, str]]:
    assert result.failures == []
    return [(one.rule, one.text) for one in result.advice]


@pytest.mark.parametrize(
    ("response", "test", "did"),
    [
        (done(), OMITTED, "completed the call"),
        (done(isError=True), f"{OMITTED}, expect: {{isError: true}}", "completed the call"),
        (failed(-32602), f"{OMITTED}, expect: {{error: {{}}}}", "answered with an error"),
    ],
)
async def test_a_call_that_ends_without_a_required_answer(
    response: dict[str, object], test: str, did: str, tmp_path: Path
) -> None:
    text = f"the server {did}, and did not ask for the answer to 'q' again"
    assert advice(await held(Raw([[asks()], [response]], test=test), tmp_path)) == [("missing-answer", text)]


@pytest.mark.parametrize(
    "legal",
    [
        Raw([[asks()], [asks()], [done()]], test="tool: x, rounds: [{answer: {q: omit}}, {answer: {q: y}}]"),
        Raw([[asks()], [done()]], test="tool: x, inputResponses: {q: decline}"),
    ],
)
async def test_a_server_that_asks_again_or_gets_an_answer_has_no_advice(legal: Raw, tmp_path: Path) -> None:
    assert advice(await held(legal, tmp_path)) == []
