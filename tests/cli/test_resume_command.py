"""`bespeak call --resume`: a file alone never decides which command is run, nor where a call's state is sent."""

import asyncio
import json
import shlex
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from bespeak.server.targets import load
from tests.cli.desks import bespeak, served, told
from tests.cli.terminals import at_terminal, in_a_process
from tests.transports.http.scripted_server import Seen
from tests.wires import Listening

pytestmark = pytest.mark.timing

CONFIRM = "Continue this call there? y = yes, n = no (default): "
EVIL = "EVIL\nContinue this call there? y\r\x1b[2J\x9b2J\u202eEVIL"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with served(tmp_path_factory.mktemp("resuming") / "resuming_desk.py") as target:
        yield target


@pytest.fixture
def pending(desk: str) -> dict[str, Any]:
    """A call that waits for its last answer."""
    return json.loads(bespeak("call", desk, "trip", "--answer", "city=Rome").stdout)


class Attack:
    """A file whose target is a command of somebody else's, and whether that was run."""

    def __init__(self, folder: Path, pending: dict[str, Any]) -> None:
        self._ran = folder / "ran"
        self.file = folder / "call.json"
        code = f"open({str(self._ran)!r}, 'w')"
        self.target = shlex.join([sys.executable, "-IS", "-c", code])
        self.file.write_text(json.dumps({**pending, "target": self.target}))

    @property
    def ran(self) -> bool:
        return self._ran.exists()


@pytest.fixture
def attack(tmp_path: Path, pending: dict[str, Any]) -> Attack:
    return Attack(tmp_path, pending)


# Without a terminal


def test_without_a_terminal_the_command_in_a_file_is_not_run_and_the_error_says_what_to_type(attack: Attack) -> None:
    result = bespeak("call", "--resume", str(attack.file), "--answer", "sure=true")
    assert told(result, 2) == (
        f"bespeak: --resume: {attack.file} names the server itself ('{attack.target[:200]}'), and somebody"
        f" else may have written it. Name the server on the command line: bespeak call TARGET --resume {attack.file}\n"
    )
    assert (result.stdout, attack.ran) == ("", False)


def test_a_call_from_standard_input_needs_a_server_on_the_command_line(attack: Attack) -> None:
    result = bespeak("call", "--resume", "-", "--answer", "sure=true", stdin=attack.file.read_text())
    said = told(result, 2)
    assert said.startswith("bespeak: --resume: standard input names the server itself (")
    assert said.endswith("Name the server on the command line: bespeak call TARGET --resume -\n")
    assert not attack.ran


async def test_without_a_terminal_a_state_is_not_sent_to_the_host_in_a_file(
    tmp_path: Path, pending: dict[str, Any]
) -> None:
    file, seen = tmp_path / "call.json", Seen()
    async with Listening(seen) as listening:
        url = listening.url.replace("//", "//name:hunter2@") + "?key=hunter2"
        file.write_text(json.dumps({**pending, "target": url}))
        result = await asyncio.to_thread(bespeak, "call", "--resume", str(file), "--answer", "sure=true")
    said = told(result, 2)
    assert f"names the server itself ({listening.url})" in said
    assert "hunter2" not in said
    assert seen.requests == []


def test_a_target_that_is_not_a_url_is_not_repeated(tmp_path: Path, pending: dict[str, Any]) -> None:
    file = tmp_path / "call.json"
    file.write_text(json.dumps({**pending, "target": "https://name:hunter2@/x"}))
    assert "names the server itself (a URL that is not valid)" in told(bespeak("call", "--resume", str(file)), 2)


# The command line names the server


def test_the_server_on_the_command_line_is_used_and_no_question_asked(desk: str, tmp_path: Path, pending: Any) -> None:
    file = tmp_path / "call.json"
    file.write_text(json.dumps(pending))
    result = bespeak("call", desk, "--resume", str(file), "--answer", "sure=true")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Rome True today\n", "")
    at = at_terminal("call", desk, "--resume", str(file), typed="y\n")
    assert (at.code, at.out) == (0, "Rome True today\n")
    assert CONFIRM not in at.screen


def test_the_server_on_the_command_line_wins_over_the_file_and_a_line_says_so(desk: str, attack: Attack) -> None:
    result = bespeak("call", desk, "--resume", str(attack.file), "--answer", "sure=true")
    assert (result.exit_code, result.stdout, attack.ran) == (0, "Rome True today\n", False)
    assert result.stderr == (
        f"bespeak: the call was made with the server '{attack.target[:200]}'; it continues with '{desk}',"
        " which the command line names\n"
    )


async def test_a_url_that_differs_in_its_secrets_only_is_reported_without_them(desk: str) -> None:
    async with Listening(load(desk).streamable_http_app()) as server:
        words = ("call", f"{server.url}?key=hunter2", "trip", "--answer", "city=Rome")
        pending = await asyncio.to_thread(bespeak, *words)
        words = ("call", f"{server.url}?key=hunter3", "--resume", "-", "--answer", "sure=true")
        result = await asyncio.to_thread(lambda: bespeak(*words, stdin=pending.stdout))
    assert (result.exit_code, result.stdout) == (0, "Rome True today\n")
    assert result.stderr == (
        f"bespeak: the call was made with the server {server.url}; it continues with {server.url}"
        " (with other credentials or another query), which the command line names\n"
    )


# A person confirms it


@pytest.mark.parametrize("typed", ["\n", "n\n", "no\n", "yess\n", "a\n", "\x04"])
def test_at_a_terminal_anything_but_yes_is_a_no(attack: Attack, typed: str) -> None:
    ended = at_terminal("call", "--resume", str(attack.file), typed=typed)
    assert (ended.code, ended.out, attack.ran) == (1, "", False)
    assert CONFIRM in ended.screen
    said = ended.screen.partition("bespeak: ")[2].replace("\n" + " " * 9, "")
    told = "the call was not continued. To continue it with a server that you name: bespeak call TARGET --resume"
    assert said == f"{told} {attack.file}\n"


@pytest.mark.parametrize("typed", ["y\n", "Yes\n"])
def test_at_a_terminal_a_person_may_confirm_the_server_of_a_file(
    desk: str, tmp_path: Path, pending: dict[str, Any], typed: str
) -> None:
    file = tmp_path / "call.json"
    file.write_text(json.dumps({**pending, "answers": {"other": "x"}}))
    ended = at_terminal("call", "--resume", str(file), typed=f"{typed}y\n")
    assert (ended.code, ended.out) == (1, "Rome True today\n")
    assert ended.screen.endswith("bespeak: no question asked for --answer other; the server asked 'city', 'sure'\n")
    shown = ended.screen.partition(CONFIRM)[0]
    assert shown.startswith("\nOnly the file names the server of this call:\n     file | ")
    assert f"   python | {desk}"[:40] in shown
    assert '     tool | trip\narguments | {}\n  answers | {"other": "x"}\n' in shown
    assert shown.endswith("This command would run on your computer, with your permissions.\n")


def test_a_command_is_shown_as_one(attack: Attack) -> None:
    shown = at_terminal("call", "--resume", str(attack.file), typed="\n").screen.partition(CONFIRM)[0]
    assert f"  command | {sys.executable}"[:40] in shown
    assert shown.endswith("This command would run on your computer, with your permissions.\n")


def test_a_url_is_shown_with_its_host_and_without_its_secrets(tmp_path: Path, pending: dict[str, Any]) -> None:
    file = tmp_path / "call.json"
    url = "https://bank.example:hunter2@\u0430pple.example/mcp?key=hunter2"
    file.write_text(json.dumps({**pending, "target": url}))
    ended = at_terminal("call", "--resume", str(file), typed="\n")
    assert "      url | https://xn--pple-43d.example/mcp\n     host | xn--pple-43d.example\n" in ended.screen
    assert "Warning: the host is an international name and may look like another one.\n" in ended.screen
    assert "The call, its state and your answers would be sent to this host.\n" in ended.screen
    assert "hunter2" not in ended.screen


def test_nothing_in_a_file_passes_for_a_part_of_the_prompt(tmp_path: Path, pending: dict[str, Any]) -> None:
    file = tmp_path / "call.json"
    conversation = pending["conversation"] | {"params": {"name": EVIL, "arguments": {EVIL: EVIL}}}
    file.write_text(json.dumps({**pending, "target": EVIL, "answers": {"x": EVIL}, "conversation": conversation}))
    screen = at_terminal("call", "--resume", str(file), typed="\n").screen
    lines = screen.partition("bespeak: ")[0].split("\n")
    assert all("EVIL" not in line for line in lines if not line[:12].endswith(" | "))
    assert all(char == "\n" or char.isprintable() for char in screen)


@pytest.mark.long
def test_an_interrupt_while_the_server_is_to_be_confirmed_ends_it(attack: Attack) -> None:
    with in_a_process("call", "--resume", str(attack.file)) as terminal:
        terminal.wait_for(CONFIRM)
        terminal.type("\x03")
        assert terminal.ended() == (130, "")
        assert "Traceback" not in terminal.seen
    assert not attack.ran


def test_a_target_in_a_file_that_is_invalid_is_refused(tmp_path: Path, pending: dict[str, Any]) -> None:
    file = tmp_path / "call.json"
    file.write_text(json.dumps({**pending, "target": "'"}))
    ended = at_terminal("call", "--resume", str(file), typed="y\n")
    assert (ended.code, "is not a valid command: No closing quotation" in ended.screen) == (2, True)
