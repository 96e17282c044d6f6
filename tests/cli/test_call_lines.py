"""The lines that `bespeak run` and `bespeak dev` print for calls."""

import logging
import sys
from collections.abc import Callable, Generator
from io import StringIO

import pytest

from bespeak.cli.call_lines import show_calls
from bespeak.cli.run_command import Flags, run_server
from tests.cli.conftest import ONE, Write

logger = logging.getLogger("bespeak.calls")


@pytest.fixture
def unconfigured() -> Generator[Callable[[], None]]:
    """Called in a test, takes the handlers of pytest away, which count as an author's. They are added after fixtures have run."""
    found: list[logging.Handler] = []

    def take_away() -> None:
        found[:] = logger.handlers
        logger.handlers.clear()
        logger.propagate = False

    yield take_away
    logger.handlers[:] = found
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


def test_a_line_has_the_time_and_cannot_control_the_terminal(
    unconfigured: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    unconfigured()
    show_calls(all_of_them=True)
    logger.debug("look\x1b[2J, round 1: done")
    time, said = capsys.readouterr().err.split(" ", 1)
    assert len(time) == len("12:00:00")
    assert "\x1b" not in said
    assert said.endswith(", round 1: done\n")


def test_unless_all_calls_are_wanted_quick_ones_are_left_out(
    unconfigured: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    unconfigured()
    logger.setLevel(logging.INFO)
    show_calls(all_of_them=False)
    logger.debug("quick")
    logger.info("asked")
    assert capsys.readouterr().err.split()[1:] == ["asked"]


def test_an_author_who_has_configured_logging_gets_the_lines_there(
    unconfigured: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    unconfigured()
    own = StringIO()
    logger.addHandler(logging.StreamHandler(own))
    show_calls(all_of_them=True)
    logger.debug("look")
    assert (own.getvalue(), capsys.readouterr().err) == ("look\n", "")


@pytest.mark.parametrize("terminal", [True, False])
def test_run_shows_all_calls_only_at_a_terminal(
    terminal: bool, unconfigured: Callable[[], None], write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    unconfigured()
    file = write("one.py", ONE)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setattr("bespeak.server.running.run_http", id)  # which does nothing
    assert run_server(Flags(str(file), True, None, None, None, 1, [])) == 0
    assert logger.isEnabledFor(logging.DEBUG) == terminal
    assert logger.isEnabledFor(logging.INFO)
    assert logger.hasHandlers()
