"""The `bespeak` command itself: its version, `python -m bespeak`, shell completion, and names that are almost right."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import bespeak as package
from tests.cli.desks import bespeak, told
from tests.test_docs_command_line import COMMANDS


@pytest.mark.timing
@pytest.mark.parametrize("module", ["bespeak", "bespeak.cli"])
@pytest.mark.long
def test_the_command_can_be_run_as_a_module(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (f"bespeak {package.__version__}\n", "")


def test_the_version_is_printed() -> None:
    result = bespeak("--version")
    assert (result.exit_code, result.stdout) == (0, f"bespeak {package.__version__}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [(["rnu"], "No such command 'rnu'. Did you mean 'run'?"), (["run", "x.py", "--htp"], "No such option: --htp")],
)
def test_a_command_or_option_that_there_is_not_is_named_with_what_was_meant(words: list[str], said: str) -> None:
    assert said in told(bespeak(*words), 2)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_what_to_write_and_not_the_types_of_python(name: str) -> None:
    help_text = bespeak(*name.split()[1:], "--help").stdout
    assert not re.search(r"<[a-z]|list\[", help_text)
    assert all(one.metavar for one in COMMANDS[name].params if not getattr(one, "is_flag", False))


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("call", "[TARGET] [TOOL] [KEY=VALUE]..."),
        ("test", "[FILE]..."),
        ("mock", "CASSETTE..."),
        ("graph", "FILE[:OBJECT] [NAME]"),
    ],
)
def test_the_usage_line_says_which_words_may_be_left_out_or_repeated(name: str, usage: str) -> None:
    assert f" {name} [OPTIONS] {usage} " in " ".join(bespeak(name, "--help").stdout.split())


@pytest.mark.timing
@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("bespeak gra", {"graph"}),
        ("bespeak check server.py --js", {"--json"}),
        ("bespeak run server.py", set[str]()),
        ("bespeak graph server.py --form me", {"mermaid"}),
        ("bespeak call server.py --as l", {"langgraph", "lossy"}),
        ("bespeak list server.py --era le", {"legacy"}),
        ("bespeak test --record re", {"rewrite"}),
    ],
)
@pytest.mark.long
def test_completion_offers_commands_and_options_and_never_loads_a_server(
    tmp_path: Path, line: str, offered: set[str]
) -> None:
    (tmp_path / "server.py").write_text("from pathlib import Path\nPath('loaded').touch()\n")
    words = line.split()
    asked = {"_BESPEAK_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    # A program of its own name, as the shell starts it.
    program = "import sys; sys.argv[0] = 'bespeak'; from bespeak.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **asked},
        cwd=tmp_path,
        check=False,
    )
    assert set(done.stdout.split()) == offered, done.stderr
    assert not (tmp_path / "loaded").exists()
