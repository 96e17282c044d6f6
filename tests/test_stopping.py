"""Every way to stop a server in the middle of an approved call, over every transport and in both eras.

The body has finished, or is reported as unknown; it never ran twice; the program's own threads and exit handlers ran.
"""

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.stopping import Wire, stopping

pytestmark = [pytest.mark.timing, pytest.mark.skipif(sys.platform == "win32", reason="signals")]
LONG = pytest.mark.long
# The older era over one transport each time is enough in a short run; `make matrix` runs all of it.
HTTP = [pytest.param("http"), pytest.param("http-legacy", marks=LONG)]
STDIO = [pytest.param("stdio", marks=LONG), pytest.param("stdio-legacy")]
WIRES = [*HTTP, *STDIO]
CUT_OFF = "was approved and is cut off by a second interrupt; whether it took effect is unknown"
CANCELLED = "'buy' was approved, and was cancelled while it ran; whether it took effect is unknown"
LEFT = ["after", "atexit", "thread"]
"""What a program notes that ends in order: what stands behind its server, its exit handler and its own thread."""


def finished(notes: list[str]) -> bool:
    """Whether one body ran, once and to its end, and the program ended in order."""
    return notes[:2] == ["begun", "ended"] and sorted(notes[2:]) == LEFT


# Told once


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=LONG)])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.long
async def test_a_signal_lets_an_approved_body_finish(tmp_path: Path, wire: Wire, number: signal.Signals) -> None:
    async with stopping(tmp_path, wire) as program:
        await program.begin("buy")
        program.signal(number)
        await program.heard()
        program.touch("go")
        status, said = await program.ended()
        assert (status, "Traceback" in said) == (0, False), said
        assert "bought" in await program.answer()
    assert finished(program.notes)


@pytest.mark.parametrize("wire", ["http", pytest.param("stdio", marks=LONG)])
@pytest.mark.long
async def test_a_signal_lets_an_approved_sync_body_finish(tmp_path: Path, wire: Wire) -> None:
    async with stopping(tmp_path, wire) as program:
        await program.begin("buy_in_thread")
        program.signal(signal.SIGTERM)
        await program.heard()
        program.touch("go")
        assert (await program.ended())[0] == 0
        assert "bought" in await program.answer()
    assert finished(program.notes)


@pytest.mark.parametrize("wire", STDIO)
@pytest.mark.long
async def test_a_closed_stdin_lets_an_approved_body_finish(tmp_path: Path, wire: Wire) -> None:
    async with stopping(tmp_path, wire) as program:
        await program.begin("buy")
        program.close_stdin()
        await program.heard()
        program.touch("go")
        assert (await program.ended())[0] == 0
        assert "bought" in await program.answer()
    assert finished(program.notes)


@pytest.mark.long
async def test_a_signal_lets_an_approved_body_finish_though_another_loop_has_used_the_server(tmp_path: Path) -> None:
    async with stopping(tmp_path, "http") as program:
        await program.begin("buy")
        from_elsewhere = await program.over_http("elsewhere")
        program.signal(signal.SIGTERM)
        await program.heard()
        program.touch("go")
        assert (await program.ended())[0] == 0
        assert "used" in from_elsewhere
        assert "bought" in await program.answer()
    assert finished(program.notes)


@pytest.mark.parametrize("wire", ["http", pytest.param("stdio", marks=LONG)])
@pytest.mark.long
async def test_an_approved_body_that_does_not_end_is_reported_and_the_status_says_so(
    tmp_path: Path, wire: Wire
) -> None:
    patch = "from bespeak.server.calls import call_tasks; call_tasks.DRAIN_SECONDS = 0.3"
    grace = '{"timeout_graceful_shutdown": 0.2}'
    async with stopping(tmp_path, wire, patch=patch, uvicorn=grace) as program:
        await program.begin("buy")
        program.signal(signal.SIGTERM)
        status, said = await program.ended()
    assert status == 1
    assert (
        "call buy did not finish within 0.3 s of shutdown and is abandoned; whether it took effect is unknown" in said
    )
    assert sorted(program.notes) == ["atexit", "begun", "cancelled", "thread"]


@pytest.mark.long
async def test_a_server_that_is_awaited_ends_its_program_when_it_is_terminated(tmp_path: Path) -> None:
    async with stopping(tmp_path, "http", "http-async") as program:
        await program.begin("buy")
        program.signal(signal.SIGTERM)
        await program.heard()
        program.touch("go")
        status, said = await program.ended()
        assert (status, "Traceback" in said) == (128 + signal.SIGTERM, False)
    assert program.notes[:2] == ["begun", "ended"]
    assert sorted(program.notes[2:]) == ["atexit", "thread"]


# Told twice


@pytest.mark.parametrize("tool", ["buy", pytest.param("buy_in_thread", marks=LONG)])
@pytest.mark.parametrize("wire", HTTP)
@pytest.mark.long
async def test_a_second_interrupt_over_http_says_which_approved_body_it_cuts_off(
    tmp_path: Path, wire: Wire, tool: str
) -> None:
    async with stopping(tmp_path, wire) as program:
        await program.begin(tool)
        program.signal(signal.SIGINT)
        await program.heard()
        program.signal(signal.SIGINT)
        status, said = await program.ended()
    assert status == 1
    assert f"{tool!r} {CUT_OFF}" in said
    assert "Traceback" not in said
    assert "ended" not in program.notes
    assert program.notes.count("begun") == 1
    assert {"atexit", "thread"} <= set(program.notes)


@pytest.mark.long
async def test_a_second_interrupt_is_heard_while_approved_bodies_are_waited_for(tmp_path: Path) -> None:
    async with stopping(tmp_path, "http", uvicorn='{"timeout_graceful_shutdown": 0.1}') as program:
        await program.begin("buy")
        program.signal(signal.SIGINT)
        with pytest.raises(Exception, match="cancelled this request"):
            await program.answer()
        program.signal(signal.SIGINT)
        status, said = await program.ended()
    assert status == 1
    assert f"'buy' {CUT_OFF}" in said
    assert sorted(program.notes) == ["atexit", "begun", "cancelled", "thread"]


@pytest.mark.long
async def test_a_second_interrupt_with_nothing_approved_just_ends(tmp_path: Path) -> None:
    async with stopping(tmp_path, "http") as program:
        await program.begin("nap")
        program.signal(signal.SIGINT)
        await program.heard()
        program.signal(signal.SIGINT)
        status, said = await program.ended(8)  # the request had 10 s
    assert (status, "cut off" in said, "Traceback" in said) == (0, False, False), said
    assert sorted(program.notes) == ["after", "atexit", "begun", "thread"]


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=LONG)])
@pytest.mark.parametrize("wire", STDIO)
@pytest.mark.long
async def test_a_second_signal_on_stdio_still_lets_an_approved_body_finish(
    tmp_path: Path, wire: Wire, number: signal.Signals
) -> None:
    # the client may send several on its way out, and nobody sits at this terminal
    async with stopping(tmp_path, wire) as program:
        await program.begin("buy")
        for _ in range(2):
            program.signal(number)
            await program.heard()
        program.touch("go")
        assert (await program.ended())[0] == 0
    assert finished(program.notes)


# The loop is closed


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.long
async def test_an_approved_body_whose_loop_is_closed_is_reported(tmp_path: Path, wire: Wire) -> None:
    async with stopping(tmp_path, wire, f"{wire.partition('-')[0]}-closed") as program:
        await program.begin("buy")
        program.touch("close")
        status, said = await program.ended()
    assert status == 0, "that is the program's own doing"
    assert CANCELLED in said
    assert program.notes[:2] == ["begun", "cancelled"]
    assert sorted(program.notes[2:]) == LEFT


# A sync function that does not end


@pytest.mark.long
@pytest.mark.parametrize("wire", ["http", pytest.param("stdio", marks=LONG)])
async def test_a_sync_tool_that_hangs_is_left_behind_after_the_program_s_own_threads_and_handlers(
    tmp_path: Path, wire: Wire
) -> None:
    grace = '{"timeout_graceful_shutdown": 0.2}'
    async with stopping(tmp_path, wire, uvicorn=grace, OWN_SECONDS="2.5") as program:
        await program.begin("hang")
        program.signal(signal.SIGTERM)
        status, said = await program.ended()
    assert status == 1
    assert "'hang' is still running in a thread; the program ends without it" in said
    assert sorted(program.notes) == ["after", "atexit", "begun", "thread"]


@pytest.mark.long
async def test_a_sync_tool_that_ends_soon_enough_leaves_no_trace(tmp_path: Path) -> None:
    grace = '{"timeout_graceful_shutdown": 0.2}'
    async with stopping(tmp_path, "http", uvicorn=grace, OWN_SECONDS="1.5") as program:
        await program.begin("hang")
        program.signal(signal.SIGTERM)
        await program.heard()
        with pytest.raises(Exception, match="cancelled this request"):
            await program.answer()
        program.touch("go")
        status, said = await program.ended()
    assert (status, "still running" in said) == (0, False)
    assert sorted(program.notes) == ["after", "atexit", "begun", "thread"]


# Several workers

WORKERS = [sys.executable, "-m", "bespeak.cli", "run", "SCRIPT", "--http", "--port", "PORT", "--workers", "2"]


@pytest.mark.long
async def test_workers_finish_an_approved_body_and_run_their_exit_handlers(tmp_path: Path) -> None:
    async with stopping(tmp_path, "http", command=WORKERS, workers=2) as program:
        await program.begin("buy")
        os.killpg(program.process.pid, signal.SIGINT)  # what Ctrl-C at a terminal does
        await program.heard()
        program.touch("go")
        status, said = await program.ended()
        assert "bought" in await program.answer()
    assert (status, "Traceback" in said) == (0, False), said
    assert sorted(program.notes) == ["atexit"] * 3 + ["begun", "ended"] + ["thread"] * 3


@pytest.mark.long
async def test_a_worker_that_cuts_an_approved_body_off_is_an_error_of_the_whole_program(tmp_path: Path) -> None:
    async with stopping(tmp_path, "http", command=WORKERS, workers=2) as program:
        await program.begin("buy")
        os.killpg(program.process.pid, signal.SIGINT)
        await program.heard()
        os.killpg(program.process.pid, signal.SIGINT)
        status, said = await program.ended()
    assert status == 1
    assert f"'buy' {CUT_OFF}" in said
    assert sorted(program.notes) == ["atexit"] * 3 + ["begun", "cancelled"] + ["thread"] * 3
