"""What a fork must not copy: keys that a process made for itself, a ledger in its memory, and open connections.

`gunicorn --preload`, `multiprocessing` and `os.fork` copy a process. A copied key would open what the original has sealed, while a
copied ledger does not learn what the original spends: one approval could be spent in every copy. Two processes that use one copied
connection disturb each other. So everything of this kind is registered here, and the child makes it anew.
"""

import os
import weakref
from threading import Lock
from typing import Any

_owned: "weakref.WeakSet[OfOneProcess]" = weakref.WeakSet()
_lock = Lock()


class OfOneProcess:
    """Something that belongs to the process that made it."""

    def __init__(self) -> None:
        """Register it. Called when the rest of it is there."""
        with _lock:
            _owned.add(self)

    def before_fork(self) -> None:
        """Called in the parent, before a fork."""

    def after_fork(self) -> None:
        """Called in the parent, after a fork."""

    def begin_anew(self) -> None:
        """Called in the child: make anew what belongs to the parent."""
        raise NotImplementedError


def leave_to_parent(inherited: Any) -> None:
    """Never free an object that a child has inherited: freeing it would close what the parent still uses."""
    import ctypes  # few processes are forked while a connection is in use

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _before() -> None:
    _lock.acquire()  # nothing is registered while the process is copied
    for one in _owned:
        one.before_fork()


def _in_parent() -> None:
    try:
        for one in _owned:
            one.after_fork()
    finally:
        _lock.release()


def _in_child() -> None:
    try:
        for one in _owned:
            one.begin_anew()
    finally:
        _lock.release()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
