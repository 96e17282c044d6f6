"""The refund desk under attack: restarted, sent states that are not its own, and left alone. Over stdio and HTTP."""

import secrets
from pathlib import Path

import pytest

from tests.testing.canned import messages, run

pytestmark = [pytest.mark.long, pytest.mark.timing]

DESK = Path(__file__).parents[2] / "examples" / "refund_desk" / "server.py"
SERVERS = {
    "stdio": f"command: [bespeak, run, {DESK}]",
    "http": f'command: [bespeak, run, {DESK}, --http, --port, "${{port}}"], url: "http://127.0.0.1:${{port}}/mcp"',
}
CALL = """\
    tool: refund_order
    arguments: {order_id: ORD-7002, reason: broken}
    inputResponses: ANSWERS
"""
BOTH = """\
      - {when: {message: {contains: Refund all}}, answer: {accept: {full: true}}}
      - {when: {message: {contains: back on the shelf}}, answer: true}
"""
FIRST = BOTH.partition("\n")[0] + "\n"


def written(name: str, answers: str, *more: str) -> str:
    call = CALL.replace(" ANSWERS", f"\n{answers}".rstrip() if answers else " {}")
    return f"  - name: {name}\n{call}" + "".join(f"    {line}\n" for line in more)


REFUNDED = "expect: {rounds: 2, structuredContent: {contains: {cents: 5200, restocked: true}}}"
TESTS = "".join(
    [
        written("restarted after the first round", BOTH, "fault: {round: 1, restart: true}", REFUNDED),
        written("restarted after the second round", BOTH, "fault: {round: 2, restart: true}", REFUNDED),
        written(
            "restarted after a lost response",
            BOTH,
            "fault: {round: 1, drop: response, restart: true}",
            "retry: 1",
            REFUNDED,
        ),
        written("older", BOTH, "tamper: {round: 2, requestState: older-round}"),
        *(
            written(how, FIRST, f"tamper: {{round: 1, inputResponses: {how}}}")
            for how in [
                "text",
                "list",
                "nothing",
                "no-action",
                "unknown-action",
                "no-content",
                "wrong-type",
                "oversized",
            ]
        ),
        written("unknown key", BOTH, "tamper: {round: 1, inputResponses: unknown-key}", REFUNDED),
        *(
            written(f"stopped after {after}", answers, f"stop: {{after: {after}}}", "eras: [2025-11-25, 2026-07-28]")
            for after, answers in ((1, ""), (2, FIRST))
        ),
    ]
)


@pytest.mark.parametrize("reached", SERVERS)
async def test_the_refund_desk_withstands_every_attack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reached: str
) -> None:
    monkeypatch.setenv("DESK_KEYS", secrets.token_hex(32))
    env = 'env: {BESPEAK_STATE_KEYS: "${env:DESK_KEYS}"}'
    path = tmp_path / "desk.bespeak.yaml"
    path.write_text(f"version: 1\nservers: {{desk: {{{SERVERS[reached]}, {env}}}}}\ntests:\n{TESTS}", encoding="utf-8")
    results = await run(path)
    assert {result.title: messages([result]) for result in results if not result.passed} == {}
    assert len(results) == 17
