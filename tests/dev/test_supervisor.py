"""When the server is started again, and how the command ends."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bespeak.dev.source_files import SourceFiles
from bespeak.dev.supervisor import Loaded, Report, Supervisor

Act = Callable[[], "Report | int | None"]


class FakeChild:
    """A process that does the next thing of a list at each look: a report, an exit code, an interrupt, or nothing."""

    def __init__(self, script: list[Act], ends_with: int = 0) -> None:
        self._script = script
        self._ends_with = ends_with
        self.exit_code: int | None = None
        self.stopped = 0

    def wait(self, seconds: float) -> Report | None:
        done = self._script.pop(0)() if self._script else None
        if isinstance(done, int):
            self.exit_code = done
            return None
        return done

    def stop(self) -> None:
        self.stopped += 1
        self.exit_code = self._ends_with


class Bench:
    """A supervisor with children that were written down beforehand."""

    def __init__(self, folder: Path, *children: list[Act], ends_with: int = 0) -> None:
        self.file = folder / "server.py"
        self.file.write_text("")
        self.children = [FakeChild(script, ends_with) for script in children]
        self.started: list[bool] = []
        self.said: list[str] = []
        self.ready = 0
        self.source = SourceFiles()

    def run(self) -> int:
        return Supervisor(self._start, self.said.append, self.source).run(self._ready)

    def _start(self, first: bool) -> FakeChild:
        self.started.append(first)
        return self.children[len(self.started) - 1]

    def _ready(self) -> None:
        self.ready += 1

    def save(self) -> None:
        """Save the file again."""
        self.file.write_text(self.file.read_text() + "#")

    def serves(self) -> Report:
        return Report(Loaded.SERVES, [str(self.file)])

    def fails(self) -> Report:
        return Report(Loaded.FAILED, [str(self.file)])


def nothing() -> None:
    """Let time pass."""


def interrupt() -> None:
    raise KeyboardInterrupt


def test_a_server_is_started_again_when_its_source_changes(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [], [])
    bench.children[0] = FakeChild([bench.serves, nothing, bench.save])
    bench.children[1] = FakeChild([bench.serves, interrupt])
    assert bench.run() == 0
    assert bench.started == [True, False]
    assert bench.said == ["server.py changed; the server starts again"]
    assert bench.children[0].stopped == 1
    assert bench.ready == 1, "the URLs are printed once"


def test_what_several_steps_of_saving_write_is_one_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [], [])
    more = tmp_path / "more.py"

    def save_more() -> None:
        more.write_text("")

    bench.children[0] = FakeChild([bench.serves, bench.save, save_more, bench.save, nothing])
    bench.children[1] = FakeChild([interrupt])
    bench.run()
    assert len(bench.started) == 2
    assert bench.said == ["server.py changed; the server starts again"]


def test_several_files_are_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [], [])

    def save_two() -> None:
        (tmp_path / "a.py").write_text("")
        bench.save()

    bench.children[0] = FakeChild([bench.serves, save_two])
    bench.children[1] = FakeChild([interrupt])
    bench.run()
    assert bench.said == ["a.py and 1 more changed; the server starts again"]


def test_a_change_while_the_file_is_loaded_again_counts(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [], [], [])

    def saved_meanwhile() -> Report:
        bench.save()
        return bench.serves()

    bench.children[0] = FakeChild([bench.serves, bench.save])
    bench.children[1] = FakeChild([saved_meanwhile])
    bench.children[2] = FakeChild([interrupt])
    bench.run()
    assert bench.started == [True, False, False]


def test_a_file_that_fails_the_first_time_ends_the_command(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [lambda: Report(Loaded.GIVEN_UP), nothing, lambda: 2])
    assert bench.run() == 2
    assert bench.ready == 0


def test_a_file_that_fails_later_is_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [], [], [])
    bench.children[0] = FakeChild([bench.serves, bench.save])
    bench.children[1] = FakeChild([bench.fails, nothing, bench.save])
    bench.children[2] = FakeChild([bench.serves, interrupt])
    assert bench.run() == 0
    assert bench.started == [True, False, False]
    assert bench.ready == 1


def test_a_process_that_dies_is_started_again_with_the_next_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [], [])
    bench.children[0] = FakeChild([bench.serves, lambda: 3, nothing, nothing, bench.save])
    bench.children[1] = FakeChild([interrupt])
    assert bench.run() == 0
    assert bench.said == [
        "the server's process ended with code 3; it starts again when a file changes",
        "server.py changed; the server starts again",
    ]


@pytest.mark.parametrize("code", [0, 3])
def test_a_process_that_dies_before_it_served_ends_the_command(tmp_path: Path, code: int) -> None:
    assert Bench(tmp_path, [lambda: code]).run() == code


def test_a_process_that_was_told_to_end_ends_the_command(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [])
    bench.children[0] = FakeChild([bench.serves, lambda: 0])
    assert bench.run() == 0
    assert len(bench.started) == 1


def test_an_interrupt_stops_the_process_and_a_second_one_does_not_leave_it_behind(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [])
    child = bench.children[0] = FakeChild([bench.serves, interrupt])
    stop, times = child.stop, iter([True, False])

    def interrupted() -> None:
        if next(times):
            raise KeyboardInterrupt
        stop()

    child.stop = interrupted
    assert bench.run() == 0
    assert child.stopped == 1


def test_an_approved_call_that_was_cut_off_is_the_exit_code(tmp_path: Path) -> None:
    bench = Bench(tmp_path, [], ends_with=1)
    bench.children[0] = FakeChild([bench.serves, interrupt], ends_with=1)
    assert bench.run() == 1


def test_an_interrupt_before_anything_was_started_ends_the_command(tmp_path: Path) -> None:
    def start(first: bool) -> FakeChild:
        raise KeyboardInterrupt

    assert Supervisor(start, print, SourceFiles()).run(nothing) == 0
