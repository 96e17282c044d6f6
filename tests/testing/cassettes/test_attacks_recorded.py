"""Hostile tests can be recorded and replayed like any other: a replay restarts nothing and waits for nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.runner import Options
from tests.testing.canned import Canned, Hold, Pushing, asking, error, form, messages, told
from tests.testing.canned import hold as hold

REFUSED = error("invalid state")


@pytest.mark.parametrize(
    ("server", "attack"),
    [
        (lambda: Canned(asking("ok"), told()), "fault: {round: 1, restart: true}"),
        (lambda: Canned(asking("ok"), asking("ok")), "stop: {after: 1}"),
        (lambda: Pushing(form()), "stop: {after: 1}, expect: {rounds: 1}"),
        (lambda: Canned(asking("ok"), REFUSED), "tamper: {round: 1, requestState: other-tool, tool: x}"),
        (lambda: Canned(asking("ok"), REFUSED), "tamper: {round: 1, requestState: expired, after: 0.01}"),
        (
            lambda: Canned(asking("ok"), asking("ok", state="two"), REFUSED),
            "tamper: {round: 2, requestState: older-round}",
        ),
        *(
            (lambda: Canned(asking("ok"), REFUSED), f"tamper: {{round: 1, inputResponses: {how}}}")
            for how in ("text", "list", "nothing", "no-action", "wrong-type")
        ),
        (lambda: Canned(asking("ok"), told()), "tamper: {round: 1, inputResponses: unknown-key}"),
    ],
)
async def test_an_attack_is_recorded_and_replayed(
    hold: Hold, tmp_path: Path, server: Callable[[], Canned], attack: str
) -> None:
    answers = "" if "stop" in attack else "inputResponses: {ok: x}, "
    tests = f"  - {{name: a, tool: pay, {answers}{attack}}}\n"
    tapes = tmp_path / "tapes"
    live = server()
    recorded = await hold(live, tests, options=Options(record=RecordMode.ONCE, cassettes=tapes))
    assert messages(recorded) == []
    (tape,) = tapes.iterdir()
    assert "tok-4f1d" not in tape.read_text()
    silent = server()
    assert messages(await hold(silent, tests, options=Options(cassettes=tapes))) == []
    assert silent.entered == 0
    again = tape.read_bytes()
    await hold(server(), tests, options=Options(record=RecordMode.REWRITE, cassettes=tapes))
    assert tape.read_bytes() == again
