"""A fork shares a key, and not the ledger: keys, memory and connections belong to the process that made them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bespeak.state.forks import OfOneProcess
from tests.forking import CHILDREN

pytestmark = [
    pytest.mark.timing,
    pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system has no fork"),
]

REDIS = pytest.param("redis", marks=pytest.mark.long)
REFUSED = (
    "child -32602 invalid or expired requestState; if the call may have taken effect, check before you start it again"
)


def store_url(kind: str, folder: Path, request: pytest.FixtureRequest) -> str:
    if kind == "redis":
        return request.getfixturevalue("redis_url")
    return "memory:" if kind == "memory" else f"sqlite:{folder}/store.db"


def fork(how: str, store: str, folder: Path) -> list[str]:
    """Return what the children and the parent printed."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.forking", how, store, str(folder)],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert not done.stderr
    assert done.returncode == 0
    return done.stdout.splitlines()


def bodies(folder: Path, item: str) -> int:
    file = folder / item
    return len(file.read_text()) if file.exists() else 0


@pytest.mark.parametrize("store", ["memory", "sqlite", REDIS])
@pytest.mark.parametrize("how", ["made", "ephemeral", "made+open"])
def test_keys_made_by_a_process_open_nothing_in_its_children(
    tmp_path: Path, request: pytest.FixtureRequest, store: str, how: str
) -> None:
    *children, parent = fork(how, store_url(store, tmp_path, request), tmp_path)
    assert children == [REFUSED] * CHILDREN
    assert parent.startswith("parent ran in ")
    assert bodies(tmp_path, "approved") == 1
    assert bodies(tmp_path, "child") == CHILDREN


@pytest.mark.parametrize("store", ["sqlite", REDIS])
@pytest.mark.parametrize("how", ["configured", "configured+open"])
def test_with_configured_keys_and_a_shared_store_one_approval_runs_one_body_in_all_children(
    tmp_path: Path, request: pytest.FixtureRequest, store: str, how: str
) -> None:
    printed = fork(how, store_url(store, tmp_path, request), tmp_path)
    assert len({line.partition(" ")[2] for line in printed}) == 1
    assert len(printed) == CHILDREN + 1
    assert bodies(tmp_path, "approved") == 1
    assert bodies(tmp_path, "child") == CHILDREN
    assert bodies(tmp_path, "parent") == ("open" in how)


OPEN_FILE = """
import asyncio, os, sys
from pathlib import Path
from tests.state.stores.claiming import KnownSQLiteStore, claim, read

async def claims(store, *names):
    for name in names:
        await claim(store, name)

async def main():
    store = KnownSQLiteStore(Path(sys.argv[1]))
    await claims(store, "before")
    from_child, to_child = os.pipe(), os.pipe()
    if not os.fork():
        def work():
            async def first():
                await claims(store, "first")
                os.write(from_child[1], b"x")
                os.read(to_child[0], 1)
                await claims(store, "second")
            asyncio.run(first())
            os._exit(0)
        work()
    os.read(from_child[0], 1)
    await claims(store, "parent")
    await store.close()
    os.write(to_child[1], b"x")
    os.wait()
    for name in ("before", "first", "parent", "second"):
        print(name, await read(store, name) is not None)
    await store.close()

asyncio.run(main())
"""


def test_what_a_child_writes_to_a_file_that_was_open_is_kept_when_the_parent_closes_it(tmp_path: Path) -> None:
    """SQLite would delete its log under the child, which does not have the locks that its parent had."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", OPEN_FILE, str(tmp_path / "store.db")],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert not done.stderr
    assert done.stdout.split() == ["before", "True", "first", "True", "parent", "True", "second", "True"]


def test_whatever_belongs_to_one_process_says_how_it_begins_anew() -> None:
    with pytest.raises(NotImplementedError):
        OfOneProcess().begin_anew()
