"""`bespeak check`: load a whole server, and report every registration error of all its functions, and what is suspicious."""

import sys
import warnings
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import complain, result_lines
from bespeak.cli.target_server import server_of
from bespeak.resolve.errors import Fault, InvalidSignature
from bespeak.resolve.graph.faults import RegistrationWarning
from bespeak.server.features.registered import Registered
from bespeak.server.loading import loading
from bespeak.server.server import MCPServer
from bespeak.server.targets import CannotLoad, NoServer
from bespeak.server.unmarked_parameters import unmarked_parameters
from bespeak.server.unused_askers import unused_askers

STOPPED = "The file could not be loaded to its end, so what follows was not checked"


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line of `bespeak check`."""

    target: str
    whole: bool
    """Whether the findings are printed as JSON."""


def check_server(flags: Flags) -> int:
    """Report the registration errors of a server, and warnings, which do not change the exit code. Return the exit code."""
    server: MCPServer[Any] | None = None
    stopped: NoServer | None = None
    with loading(collects=True) as current, _registration_warnings() as issued:
        try:
            server = server_of(flags.target)
        except NoServer as error:
            stopped = error
    invalid = list(current.errors)
    if isinstance(stopped, CannotLoad) and isinstance(stopped.__cause__, InvalidSignature):
        # Raised where nothing collects, such as Tool.from_function: the rest of the file did not run.
        invalid.append(stopped.__cause__)
    elif stopped is not None and not invalid:
        if flags.whole:
            _print_json(flags.target, [], [], None, stopped)
        return complain(str(stopped), ExitCode.BAD_USAGE, stopped)
    found = [(one.consumer, fault) for one in invalid for fault in one.faults]
    registered: Sequence[Registered] = server.registered if server is not None else ()
    unused = unused_askers(registered) if not found else ()  # what could not be registered may use them
    suspicious = [*issued, *(str(one) for one in (*unmarked_parameters(registered), *unused))]
    if flags.whole:
        _print_json(flags.target, found, suspicious, server, stopped)
    else:
        warned = [f"warning: {one}" for one in suspicious]
        text = "\n\n".join([*_written(found), *warned, _summary(flags.target, found, suspicious, server)])
        sys.stdout.write("\n".join(result_lines(text, sys.stdout)) + "\n")
    if stopped is not None:
        reason = "" if isinstance(stopped.__cause__, InvalidSignature) else f":\n{stopped}"
        return complain(f"{STOPPED}{reason}", ExitCode.FAILED, stopped)
    return ExitCode.FAILED if found else ExitCode.OK


@contextmanager
def _registration_warnings() -> Generator[list[str]]:
    """Collect what registration warns of in the block. All other warnings are shown as always."""
    issued: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", RegistrationWarning)
        show = warnings.showwarning

        def collect(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, RegistrationWarning):
                issued.append(str(message))
            else:
                show(message, category, *where, **more)

        warnings.showwarning = collect
        yield issued


def _print_json(
    target: str,
    found: Sequence[tuple[str, Fault]],
    suspicious: Sequence[str],
    server: MCPServer[Any] | None,
    stopped: NoServer | None,
) -> None:
    told = _as_json(target, found, suspicious, server, stopped)
    sys.stdout.write(to_json(told, indent=2).decode() + "\n")


def _written(found: Sequence[tuple[str, Fault]]) -> list[str]:
    # A fault that was found while the consumer itself was read begins with its name.
    return [
        f"{number}. cannot register {consumer!r}: {str(fault).removeprefix(f'{consumer}: ')}"
        for number, (consumer, fault) in enumerate(found, 1)
    ]


def _summary(
    target: str, found: Sequence[tuple[str, Fault]], suspicious: Sequence[str], server: MCPServer[Any] | None
) -> str:
    also = f", {_count(len(suspicious), 'warning')}" if suspicious else ""
    if found:
        functions = len({consumer for consumer, _ in found})
        return f"{target}: {_count(len(found), 'registration error')} in {_count(functions, 'function')}{also}"
    counts = _counts(server)
    listed = ", ".join(_count(number, what) for what, number in counts.items()) or "nothing registered"
    return f"{target}: no registration errors{also} ({listed})"


def _counts(server: MCPServer[Any] | None) -> Counter[str]:
    return Counter(one.what for one in server.registered) if server is not None else Counter()


def _as_json(
    target: str,
    found: Sequence[tuple[str, Fault]],
    suspicious: Sequence[str],
    server: MCPServer[Any] | None,
    stopped: NoServer | None,
) -> dict[str, Any]:
    return {
        "target": target,
        "errors": [
            {
                "function": consumer,
                "problem": fault.problem.removeprefix(f"{consumer}: "),
                "file": fault.place.rpartition(":")[0] or fault.place,
                "line": int(line) if (line := fault.place.rpartition(":")[2]).isdigit() else None,
                "drawing": fault.drawing,
                "fix": fault.fix,
            }
            for consumer, fault in found
        ],
        "warnings": suspicious,
        "registered": dict(_counts(server)),
        "complete": stopped is None,
        **({} if stopped is None else {"reason": str(stopped)}),
    }


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
