"""`bespeak keys`: a new key, and the values to set while keys are replaced."""

import inspect
import logging
import shlex
from typing import Any

import pytest
from typer.testing import CliRunner

from bespeak import RequestStateSecurity
from bespeak.cli.commands import app
from bespeak.state.seal import KEYS_VARIABLE, AESGCMRequestStateCodec

OLD, OLDER = "o" * 43, "p" * 43


def keys(*words: str, ring: str | None = None) -> Any:
    return CliRunner(env={KEYS_VARIABLE: ring}).invoke(app, ["keys", *words])


def values(printed: str) -> list[list[str]]:
    """Return the rings to set, as a shell reads them."""
    lines = [line for line in printed.splitlines() if not line.startswith("#")]
    words = [shlex.split(line) for line in lines]
    assert all(len(one) == 1 and one[0].startswith(f"{KEYS_VARIABLE}=") for one in words)
    return [one[0].partition("=")[2].split(",") for one in words]


def test_a_new_key_is_all_that_is_printed_and_seals() -> None:
    first, second = keys("new"), keys("new")
    assert (first.exit_code, first.stderr) == (0, "")
    assert first.stdout == first.stdout.strip() + "\n"
    assert first.stdout != second.stdout
    codec = AESGCMRequestStateCodec([first.stdout.strip()])
    assert codec.unseal(codec.seal(b"a state")) == b"a state"


def test_a_rotation_puts_the_new_key_last_and_then_first() -> None:
    said = keys("rotate", ring=OLD)
    assert (said.exit_code, said.stderr) == (0, "")
    (old, new), second = values(said.stdout)
    assert old == OLD
    assert second == [new, OLD]
    assert len(AESGCMRequestStateCodec([new]).seal(b"")) > 0


@pytest.mark.parametrize("ring", [f"{OLD},{OLDER}", f"{OLD} {OLDER}", f" {OLD} , {OLDER},"])
def test_all_keys_of_a_ring_are_kept_in_their_order(ring: str) -> None:
    first, second = values(keys("rotate", ring=ring).stdout)
    assert first[:2] == second[1:] == [OLD, OLDER]
    assert first[2] == second[0]


def test_a_key_with_characters_of_the_shell_is_quoted() -> None:
    ring = "$HOME;'\"#" + OLD
    first, second = values(keys("rotate", ring=ring).stdout)
    assert first[0] == second[1] == ring


@pytest.mark.parametrize(("ring", "old"), [(OLD, "key"), (f"{OLD},{OLDER}", "keys")])
def test_a_rotation_says_what_to_do_in_each_step(ring: str, old: str) -> None:
    printed = keys("rotate", ring=ring).stdout
    assert [line for line in printed.splitlines() if line.startswith("#")] == [
        "# These values are secret. Keep them until step 3 is done: running this command again makes another key.",
        "#",
        "# Step 1. Restart all servers with this value. They can then open what the new key seals, and do not",
        "# seal with it yet.",
        "# Step 2. When all servers run with the value of step 1, restart them with this one. The new key seals",
        "# from then on.",
        f"# Step 3. When all servers have run with the value of step 2 for 1 hour, remove the old {old}.",
        "# 1 hour is the time that a call may take, unless RequestStateSecurity(deadline=...) sets another.",
        f"# Results that were stored under the old {old} cannot be read after that, and older clients whose",
        "# sessions began before step 2 must begin new ones.",
    ]
    assert inspect.signature(RequestStateSecurity).parameters["deadline"].default == 3600.0


@pytest.mark.parametrize("ring", [None, "", " , "])
def test_without_keys_there_is_nothing_to_rotate(ring: str | None) -> None:
    said = keys("rotate", ring=ring)
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr == (
        "bespeak: BESPEAK_STATE_KEYS is not set, so there is no key to replace. `bespeak keys new` makes a first key\n"
    )


def test_a_ring_that_no_server_would_accept_is_an_error_that_does_not_show_it() -> None:
    said = keys("rotate", ring=f"{OLD},tooshort")
    assert (said.exit_code, said.stdout) == (2, "")
    assert said.stderr == (
        "bespeak: BESPEAK_STATE_KEYS cannot be used: a state key needs at least 32 bytes, this one has 8; make one with "
        "`bespeak keys new`\n"
    )


def test_keys_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        keys("new")
        keys("rotate", ring=OLD)
    assert caplog.text == ""


def test_the_commands_are_listed_with_what_they_print() -> None:
    listed = " ".join(keys("--help").stdout.split())
    assert "Make and replace state keys." in listed
    assert "Print a new state key" in listed
    told = " ".join(keys("rotate", "--help").stdout.split())
    assert "Each line on stdout is a value to set, or a comment that begins with #." in told
