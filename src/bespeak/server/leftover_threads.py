"""Threads of sync functions that still run when a program's server has stopped: they can only be abandoned."""

import atexit
import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import cast

from bespeak.aio.threads import running_functions

logger = logging.getLogger("bespeak.server")

STUCK_SECONDS = 1.0
"""How long such a function may still run when the rest of the program is done."""
STATUS = 1
"""The exit status of a program that abandons a function: it was not a success."""


def leave_threads_behind() -> None:
    """Prevent a hanging sync function from keeping the program alive after its server has stopped.

    Python waits for every thread that is not a daemon, and the threads of functions are not. So another thread first waits
    for the program's own threads, and then ends the program if only hanging functions are left.
    """
    if running_functions():
        # Not a daemon: as long as it runs, Python waits for it and does not begin to end the program itself.
        threading.Thread(target=_end_with_the_others, name="bespeak end").start()


def _end_with_the_others() -> None:
    threading.main_thread().join()
    while others := _others():
        others[0].join()
    give_up = time.monotonic() + STUCK_SECONDS
    for thread in running_functions():
        thread.join(max(0.0, give_up - time.monotonic()))
    stuck = running_functions()
    if not stuck:
        return  # Python ends the program, as always
    for name in stuck.values():
        logger.error("%r is still running in a thread; the program ends without it", name)
    run_exit_handlers = cast("Callable[[], None]", vars(atexit)["_run_exitfuncs"])
    with contextlib.suppress(Exception):  # which it has printed
        run_exit_handlers()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(STATUS)


def _others() -> list[threading.Thread]:
    """The program's own threads that Python waits for."""
    leave = {threading.main_thread(), threading.current_thread(), *running_functions()}
    return [thread for thread in threading.enumerate() if not thread.daemon and thread not in leave]
