"""A command that needs an extra that is not installed prints the line that installs it."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bespeak.cli.commands import app
from tests.cli.conftest import ONE, Write

SUITE = "version: 1\nservers:\n  one: {python: target_shop.py}\ntests: []\n"


def run(*words: str) -> tuple[int, str]:
    ended = CliRunner().invoke(app, words)
    return ended.exit_code, ended.output


@pytest.mark.parametrize(
    "words", [("list", "URL"), ("call", "URL"), ("call", "URL", "tool"), ("test", "--init", "URL")]
)
def test_a_server_with_a_url_needs_the_extra_http(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    code, said = run(*(word.replace("URL", "http://127.0.0.1:9/mcp") for word in words))
    assert (code, said) == (3, "bespeak: a client over HTTP needs httpx2: pip install 'bespeak[http]'\n")


@pytest.mark.parametrize(
    ("missing", "what"),
    [("uvicorn", "serving over HTTP needs uvicorn"), ("httpx2", "the page of bespeak dev needs httpx2")],
)
@pytest.mark.timing
@pytest.mark.long
def test_dev_needs_the_extra_http(missing: str, what: str) -> None:
    # In a process that has not imported the modules of the command yet.
    script = f"import sys; sys.modules[{missing!r}] = None; from bespeak.cli import main; main()"
    ended = subprocess.run(
        [sys.executable, "-c", script, "dev", "server.py"], capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (2, f"bespeak: {what}: pip install 'bespeak[http]'\n")


def test_a_suite_needs_the_extra_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop.bespeak.yaml").write_text(SUITE)
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    code, said = run("test", str(tmp_path))
    assert (code, said) == (2, "bespeak: loading suites needs ruamel.yaml: pip install 'bespeak[test]'\n")


@pytest.mark.parametrize("missing", ["httpx2", "ruamel.yaml", "regex", "jsonschema", "redis", "joserfc", "uvicorn"])
@pytest.mark.parametrize("command", ["list", "check"])
def test_a_server_in_a_file_needs_only_the_extra_cli(
    command: str, missing: str, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write("target_shop.py", ONE)
    monkeypatch.setitem(sys.modules, missing, None)
    assert run(command, str(file))[0] == 0


def test_a_store_in_redis_needs_the_extra_redis(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write("target_shop.py", ONE)
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    monkeypatch.setenv("BESPEAK_STORE", "redis://127.0.0.1:1/0")
    code, said = run("run", str(file), "--http")
    assert code == 2
    assert "needs the redis package: pip install 'bespeak[redis]'" in said
