"""The private directory of one `bespeak run --workers N`: the ledger its workers share, gone when the run has ended.

Everybody who uses the directory holds a lock on it, which goes with the process however that ends. So a directory whose lock is
free was left behind by a run that was killed, and the next run removes it.
"""

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

LEDGER = "ledger.db"
_RUN = "run-"


class UnsafeDirectory(Exception):
    """The place for these directories belongs to somebody else, or others may write to it."""


@contextmanager
def run_directory() -> Generator[Path]:
    """Return a new private directory, and remove it when the block ends. Directories of killed runs are removed first.

    Raises `UnsafeDirectory`.
    """
    home = _home()
    with _locked(home):
        _remove_abandoned(home)
        made = Path(tempfile.mkdtemp(prefix=_RUN, dir=home))
        lock = hold(made)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(lock)


def hold(directory: Path) -> int:
    """Keep a directory from being removed for as long as this process lives. Returns the open directory."""
    import fcntl  # not on Windows

    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def _home() -> Path:
    """The place for the directories of this user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    home = Path(runtime) / "bespeak" if runtime else Path(tempfile.gettempdir()) / f"bespeak-{os.getuid()}"
    try:
        with suppress(FileExistsError):
            home.mkdir(mode=0o700)
        there = home.lstat()
    except OSError as error:
        raise UnsafeDirectory(f"{home} cannot be used: {error.strerror}; give --store") from None
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or there.st_mode & 0o077:
        raise UnsafeDirectory(
            f"{home} must be a directory that belongs to you and that nobody else may use; remove it, or give --store"
        )
    return home


def _remove_abandoned(home: Path) -> None:
    for directory in home.glob(f"{_RUN}*"):
        with suppress(OSError), _locked(directory, wait=False):
            shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def _locked(directory: Path, *, wait: bool = True) -> Generator[None]:
    """Hold a lock while the block is open. Raises `OSError` if it is taken and is not to be waited for."""
    import fcntl

    lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(lock)
