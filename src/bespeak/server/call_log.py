"""One log line for each round of a call: what was called, the round, how it ended, and how long it took.

Never an argument, an answer or a result. Calls that asked something, failed or took over a second are logged as INFO, all others
as DEBUG.
"""

import logging
import time
from typing import Any

from bespeak.protocol.errors import MCPError
from bespeak.protocol.methods import TARGET_PARAMETERS
from bespeak.server.incoming import Incoming

logger = logging.getLogger("bespeak.calls")

SLOW_SECONDS = 1.0
LONGEST_NAME = 100
clock = time.perf_counter


def log_result(incoming: Incoming, result: dict[str, Any], began: float) -> None:
    """Log a round that ended with a result. `began` is when it began, by `clock`."""
    if not logger.isEnabledFor(logging.INFO):
        return
    seconds = clock() - began
    if result.get("resultType") == "input_required":
        _log(logging.INFO, incoming, f"asked {_questions(len(result.get('inputRequests') or ()))}", seconds)
        return
    pushed = incoming.asker.asked if incoming.asker is not None else 0
    after = f" after {_questions(pushed)}" if pushed else ""
    if result.get("isError"):
        _log(logging.INFO, incoming, f"{incoming.refusal or 'failed'}{after}", seconds)
    elif after or incoming.round > 1 or seconds > SLOW_SECONDS:
        _log(logging.INFO, incoming, f"done{after}", seconds)
    elif logger.isEnabledFor(logging.DEBUG):
        _log(logging.DEBUG, incoming, "done", seconds)


def log_error(incoming: Incoming, error: Exception, began: float) -> None:
    """Log a round that ended with an error of the protocol."""
    code = f" with error {error.code}" if isinstance(error, MCPError) else ""
    _log(logging.INFO, incoming, incoming.refusal or f"failed{code}", clock() - began)


def _log(level: int, incoming: Incoming, outcome: str, seconds: float) -> None:
    if logger.isEnabledFor(level) and logger.hasHandlers():  # otherwise nobody would read it
        logger.log(level, "%s, round %d: %s, %d ms", _name(incoming), incoming.round, outcome, seconds * 1000)


def _name(incoming: Incoming) -> str:
    """What was called. The URI of a template is not shown: it has the arguments in it."""
    name: Any = incoming.target
    if name is None and incoming.request.method != "resources/read":
        name = incoming.request.params.get(TARGET_PARAMETERS[incoming.request.method])
    if not isinstance(name, str):
        return f"unknown target of {incoming.request.method}"
    return (name if name.isprintable() else ascii(name)[1:-1])[:LONGEST_NAME]


def _questions(count: int) -> str:
    return "1 question" if count == 1 else f"{count} questions"
