"""Several worker processes share a port, their settings, the keys of states, and a store of their own for the run."""

import os
import sqlite3
import stat
import tempfile
from pathlib import Path
from typing import Any

import pytest

from bespeak.cli import workers
from bespeak.cli.run_directories import LEDGER, UnsafeDirectory, hold, run_directory
from bespeak.cli.workers import Settings, make_app
from bespeak.state.seal import KEYS_VARIABLE
from bespeak.state.stores.store import BadStore, StoreUnavailable
from bespeak.state.stores.store_urls import STORE_VARIABLE
from bespeak.transports.http.app import HttpApp
from bespeak.transports.interfaces import CannotStart
from tests.cli.conftest import ONE, Write


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the directories of runs are."""
    (tmp_path / "runtime").mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.delenv(STORE_VARIABLE, raising=False)
    return tmp_path / "runtime" / "bespeak"


@pytest.fixture
def target(write: Write) -> str:
    return str(write("target_shop.py", ONE))


def settings(target: str, *proxies: str) -> Settings:
    return Settings(target, "127.0.0.1", 8123, "/here", proxies)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch, started: list[Any]) -> dict[str, Any]:
    """What a worker that starts now would see."""
    found: dict[str, Any] = {}

    def look(factory: str, number: int, *rest: object) -> set[int | None]:
        found.update(factory=factory, number=number, environment=dict(os.environ), app=make_app())
        found["environment after"] = dict(os.environ)
        return set()

    monkeypatch.setattr("bespeak.transports.http.uvicorn_server.run_workers", look)
    return found


def test_workers_share_one_port_and_each_makes_its_own_app(target: str, started: list[Any]) -> None:
    workers.run(settings(target), 3)
    ((app, options),) = started
    assert app == "bespeak.cli.workers:make_app"
    assert (options["workers"], options["factory"]) == (3, True)
    assert (options["host"], options["port"]) == ("127.0.0.1", 8123)
    assert Settings.inherited() == settings(target)


def test_workers_are_told_which_proxies_to_trust(target: str, started: list[Any]) -> None:
    told = settings(target, "10.0.0.4", "fd00::/8")
    workers.run(told, 2)
    assert Settings.inherited() == told


@pytest.mark.parametrize("before", [None, "", " , "])
def test_keys_are_made_once_where_there_are_none(before: str | None, target: str, seen: dict[str, Any]) -> None:
    if before is not None:
        os.environ[KEYS_VARIABLE] = before
    workers.run(settings(target), 2)
    assert len(seen["environment"][KEYS_VARIABLE].strip(" ,")) >= 32
    assert KEYS_VARIABLE not in os.environ


def test_keys_that_are_there_are_kept(target: str, seen: dict[str, Any]) -> None:
    os.environ[KEYS_VARIABLE] = "k" * 32
    workers.run(settings(target), 2)
    assert seen["environment"][KEYS_VARIABLE] == "k" * 32


def test_without_a_store_the_workers_of_one_command_share_a_ledger_of_their_own(
    target: str, seen: dict[str, Any], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workers.run(settings(target), 2)
    url = seen["environment"][STORE_VARIABLE]
    file = Path(url.removeprefix("sqlite:").partition("?")[0])
    assert url.endswith(f"/{LEDGER}?create=no&durable=no")
    assert isinstance(seen["app"], HttpApp)
    assert file.parent.parent == home
    assert not file.parent.exists(), "it is removed at exit"
    assert STORE_VARIABLE not in os.environ
    assert capsys.readouterr().err == "", "no warning is printed unless keys were given"


def test_workers_remove_keys_and_store_from_their_environment_after_reading_them(
    target: str, seen: dict[str, Any]
) -> None:
    workers.run(settings(target), 2)
    assert {KEYS_VARIABLE, STORE_VARIABLE} <= seen["environment"].keys()
    assert not {KEYS_VARIABLE, STORE_VARIABLE} & seen["environment after"].keys()


def test_keys_that_outlive_the_ledger_of_a_run_are_a_warning(
    target: str, started: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    os.environ[KEYS_VARIABLE] = "k" * 32
    workers.run(settings(target), 2)
    assert "bespeak: State keys outlive this run, its ledger does not; give --store\n" in capsys.readouterr().err


def test_keys_are_no_warning_for_a_server_with_a_shared_store_of_its_own(
    write: Write, started: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.environ[KEYS_VARIABLE] = "k" * 32
    store = f"sqlite:{tmp_path / 'shop.db'}"
    source = f"from bespeak import MCPServer\nmcp = MCPServer('shop', store={store!r})\n"
    workers.run(settings(str(write("own_store.py", source))), 2)
    assert "State keys" not in capsys.readouterr().err


def test_a_configured_store_is_used_as_it_is(target: str, seen: dict[str, Any], tmp_path: Path, home: Path) -> None:
    os.environ[STORE_VARIABLE] = url = f"sqlite:{tmp_path / 'shop.db'}"
    workers.run(settings(target), 2)
    assert seen["environment"][STORE_VARIABLE] == url
    assert (tmp_path / "shop.db").exists()
    assert not home.exists()


def test_a_store_of_one_process_is_refused(target: str, started: list[Any]) -> None:
    os.environ[STORE_VARIABLE] = "memory:"
    with pytest.raises(BadStore, match="memory: keeps approvals in one process; several workers need sqlite:"):
        workers.run(settings(target), 2)


def test_a_store_that_cannot_be_reached_stops_the_run_before_any_worker_starts(
    target: str, started: list[Any], tmp_path: Path
) -> None:
    os.environ[STORE_VARIABLE] = f"sqlite:{tmp_path / 'no' / 'shop.db'}"
    with pytest.raises(StoreUnavailable, match=r"shop\.db cannot be created: No such file or directory"):
        workers.run(settings(target), 2)
    assert started == []


def test_a_server_with_a_store_of_its_own_process_is_not_run_by_several_workers(
    write: Write, seen: dict[str, Any]
) -> None:
    source = "from bespeak.server import MCPServer, MemoryStore\nmcp = MCPServer('one', store=MemoryStore())\n"
    with pytest.raises(CannotStart, match="passes a store of one process to MCPServer, so each worker would accept"):
        workers.run(settings(str(write("own_store.py", source))), 2)


# The directory of a run


def test_the_directory_of_a_run_is_private_and_removed_at_exit() -> None:
    with run_directory() as directory:
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700
        assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
    assert not directory.exists()


def test_a_directory_left_by_a_killed_parent_is_removed_at_the_next_start(home: Path) -> None:
    with run_directory() as first:
        left = first.parent / "run-left"
        left.mkdir()
        sqlite3.connect(left / LEDGER).close()
        with run_directory() as second:
            assert not left.exists()
            assert first.exists()
            assert second.exists()


def test_a_directory_is_not_removed_while_a_worker_still_holds_it(home: Path) -> None:
    with run_directory() as directory:
        left = directory.parent / "run-left"
        left.mkdir()
        lock = hold(left)
        with run_directory():
            assert left.exists()
        os.close(lock)
        with run_directory():
            assert not left.exists()


def test_without_a_runtime_directory_runs_are_in_a_folder_of_the_user(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with run_directory() as directory:
        assert directory.parent == tmp_path / f"bespeak-{os.getuid()}"


@pytest.mark.parametrize("kind", ["a link", "open to others", "a file"])
def test_a_place_that_others_may_use_is_refused(kind: str, home: Path, tmp_path: Path) -> None:
    if kind == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        home.symlink_to(tmp_path / "elsewhere")
    elif kind == "a file":
        home.touch(0o600)
    else:
        home.mkdir()
        home.chmod(0o755)
    with pytest.raises(UnsafeDirectory, match="must be a directory that belongs to you and that nobody else may use"):
        run_directory().__enter__()


def test_a_runtime_directory_that_does_not_exist_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "missing"))
    with pytest.raises(
        UnsafeDirectory, match=r"missing/bespeak cannot be used: No such file or directory; give --store"
    ):
        run_directory().__enter__()
