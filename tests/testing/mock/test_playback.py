"""What is said of a request that differs from all recordings of its tool."""

import json
from pathlib import Path
from typing import Any

import pytest

from bespeak.protocol.errors import MCPError
from bespeak.testing.mock.playback import MOST_ARGUMENTS, Playback
from bespeak.testing.mock.tapes import load_tapes

Json = dict[str, Any]


def refused(folder: Path, recorded: list[Json], sent: Json, method: str = "tools/call") -> str:
    """The message for a request, if there are these recordings of its method."""
    result: Json = {"resultType": "complete"}
    for number, params in enumerate(recorded):
        turns = [{"method": method, "sent": params, "result": result}]
        cassette = {"format": 1, "revision": "2026-07-28", "turns": turns}
        (folder / f"tape-{number}.json").write_text(json.dumps(cassette))
    with pytest.raises(MCPError) as caught:
        Playback(load_tapes([folder])).find("2026-07-28", method, sent)
    return caught.value.message


def reading(path: str) -> Json:
    return {"name": "read", "arguments": {"path": path}}


def test_the_recorded_arguments_of_a_tool_are_listed_each_once(tmp_path: Path) -> None:
    recorded = [reading("a.txt"), reading("b.txt"), reading("b.txt"), {"name": "write", "arguments": {"path": "c"}}]
    assert refused(tmp_path, recorded, reading("other.txt")) == (
        'diverged at round 0: turns[0].sent.arguments.path: expected "a.txt", got "other.txt"; see tape-0.json; '
        'recorded for tools/call read: {"path": "a.txt"}, {"path": "b.txt"}'
    )


def test_only_some_of_many_arguments_are_listed(tmp_path: Path) -> None:
    message = refused(tmp_path, [reading(f"{number}.txt") for number in range(MOST_ARGUMENTS + 2)], reading("other"))
    assert message.count('{"path": ') == MOST_ARGUMENTS
    assert message.endswith(f'{{"path": "{MOST_ARGUMENTS - 1}.txt"}} and 2 more')


def test_the_params_of_another_method_are_listed_in_full(tmp_path: Path) -> None:
    recorded: list[Json] = [{"ref": {"type": "a"}}, {"ref": {"type": "b"}}]
    message = refused(tmp_path, recorded, {"ref": {"type": "c"}}, "completion/complete")
    assert message.endswith('; recorded for completion/complete: {"ref": {"type": "a"}}, {"ref": {"type": "b"}}')


def test_a_secret_is_listed_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOLDER_TOKEN", "hunter2-hunter2")
    message = refused(tmp_path, [reading("a"), reading("${env:FOLDER_TOKEN}")], reading("b"))
    assert message.endswith(': {"path": "a"}, {"path": "${env:FOLDER_TOKEN}"}')
    assert "hunter2" not in message


def test_the_arguments_of_the_only_recording_are_not_repeated(tmp_path: Path) -> None:
    assert refused(tmp_path, [reading("a.txt")], reading("b.txt")).endswith('got "b.txt"; see tape-0.json')
