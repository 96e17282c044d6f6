"""Runs the commands that prepare a suite or a test, and those that clean up."""

import asyncio
import shlex
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bespeak.conversation.server_targets import Target
from bespeak.conversation.servers import Unreachable, end, indented, parameters_of, start, tail
from bespeak.testing.report.results import Failure, Kind
from bespeak.testing.suite.setup_keys import Command


async def run_commands(
    commands: Sequence[Command], folder: Path, fill: Callable[[str], str], what: str, *, go_on: bool = False
) -> list[Failure]:
    """Run commands one after the other, until one fails. With `go_on`, the rest is run all the same.

    `fill` fills the placeholders in their texts, and `what` names them in messages.
    """
    failures: list[Failure] = []
    for command in commands:
        failure = await _run(command, folder, fill, what)
        if failure is not None:
            failures.append(failure)
            if not go_on:
                break
    return failures


async def _run(command: Command, folder: Path, fill: Callable[[str], str], what: str) -> Failure | None:
    # As the suite writes it: a filled one may have secrets in it.
    named = f"{what}: the command {shlex.join(command.command)}"
    with tempfile.NamedTemporaryFile("a", encoding="utf-8", errors="replace") as log:
        try:
            parameters = parameters_of(Target(command.command, command.env, command.cwd), folder, fill)
            process = await start(parameters, log, "it")
        except Unreachable as error:
            return Failure(f"{named} could not be run: {error}", kind=Kind.SETUP)
        try:
            async with asyncio.timeout(command.timeout):
                code = await process.wait()
        except TimeoutError:
            await asyncio.shield(asyncio.create_task(end(process), name="bespeak command, ending"))
            said = f"did not end within {command.timeout:g} s; give it a larger timeout"
        except BaseException:
            await asyncio.shield(asyncio.create_task(end(process), name="bespeak command, ending"))
            raise
        else:
            if code == 0:
                return None
            said = f"exited with code {code}"
        printed = tail(log)
        return Failure(
            f"{named} {said}", kind=Kind.SETUP, hint=f"it printed:\n{indented(printed)}" if printed else None
        )
