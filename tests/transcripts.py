"""Documents that show files and commands: their files are written, their commands are run, and the output is compared."""

import os
import re
import subprocess
import sys
from pathlib import Path

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SECONDS = 60


def blocks(document: Path, language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(document.read_text()) if kind == language]


def commands(transcript: str) -> list[tuple[str, str]]:
    """Return each command of a transcript with the output that the transcript shows."""
    parts = re.split(r"^\$ ", transcript, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def write_files(document: Path, folder: Path) -> None:
    """Write the files of a document to a folder. The first line of each is its name."""
    for text in (*blocks(document, "python"), *blocks(document, "yaml")):
        named = re.match(r"# (\S+\.(?:py|yaml))\n", text)
        if named:
            (folder / named[1]).write_text(text)


def check_transcript(transcript: str, folder: Path) -> None:
    """Run the commands of a transcript. Each must print what is shown, where `...` stands for anything."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**{name: value for name, value in os.environ.items() if name != "CI"}, "PATH": path}
    env = {name: value for name, value in env.items() if not name.startswith(("PYTEST_", "COV_"))}
    for command, shown in commands(transcript):
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            said = subprocess.run(f"echo {value}", shell=True, env=env, capture_output=True, text=True, check=True)
            env[name] = said.stdout.strip()
            continue
        run = subprocess.run(
            command,
            shell=True,
            check=False,
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            stdin=subprocess.DEVNULL,
        )
        pattern = "".join(r".*?" if part == "..." else re.escape(part) for part in re.split(r"(\.\.\.)", shown))
        assert re.fullmatch(pattern, run.stdout, re.DOTALL), run.stdout + run.stderr
