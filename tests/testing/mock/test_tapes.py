"""Reading cassettes for a mock: files and folders, what cannot be served, and what was redacted."""

import json
from pathlib import Path
from typing import Any

import pytest

from bespeak.protocol.errors import MCPError
from bespeak.testing.mock.playback import Playback
from bespeak.testing.mock.tapes import NoCassette, load_tapes

Json = dict[str, Any]


def turn(arguments: Json, result: Json | None = None) -> Json:
    told: Json = {"content": [], "resultType": "complete", **(result or {})}
    return {"method": "tools/call", "sent": {"name": "pay", "arguments": arguments}, "result": told}


def written(folder: Path, *turns: Json, name: str = "pay.json", **more: Any) -> Path:
    path = folder / name
    path.write_text(json.dumps({"format": 1, "revision": "2026-07-28", "turns": turns, **more}))
    return path


def test_files_and_folders_are_read_each_once(tmp_path: Path) -> None:
    first, second = written(tmp_path, turn({}), name="a.json"), written(tmp_path, turn({}), name="b.json")
    assert [tape.name for tape in load_tapes([tmp_path, first, second])] == ["a.json", "b.json"]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("nowhere.json", None, "there is no cassette "),
        ("", None, "there are no cassettes (*.json) in the folder "),
        ("odd.json", "{}", "odd.json is not a cassette of format 1"),
        ("odd.json", "no json", "odd.json is not a cassette of format 1"),
    ],
)
def test_what_cannot_be_served_is_said(tmp_path: Path, name: str, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(NoCassette) as caught:
        load_tapes([tmp_path / name])
    assert str(caught.value).startswith(said)


def test_a_conversation_that_was_cut_off_cannot_be_served(tmp_path: Path) -> None:
    question: Json = {"method": "elicitation/create", "params": {"message": "?", "requestedSchema": {"properties": {}}}}
    asked: Json = {"asked": [{"key": "ask", "request": question}], "answered": {}}
    pushed: Json = {"method": "tools/call", "sent": {"name": "pay", "arguments": {}}, **asked}
    assert len(load_tapes([written(tmp_path, {name: pushed[name] for name in pushed if name != "answered"})])) == 1
    with pytest.raises(NoCassette, match=r"pay.json ends in the middle of a call; record it again"):
        load_tapes([written(tmp_path, pushed)])


def find(folder: Path, arguments: Any) -> Any:
    playback = Playback(load_tapes([folder]))
    params = {"name": "pay", "arguments": arguments, "_meta": {"any": 1}}
    step = playback.find("2026-07-28", "tools/call", params).step
    return step.tape.recorded.result(step.response)


def test_what_was_redacted_may_be_anything(tmp_path: Path) -> None:
    written(tmp_path, turn({"id": "[redacted]", "lines": [{"sku": "[redacted]", "n": 1}]}))
    assert find(tmp_path, {"id": "7", "lines": [{"sku": "A", "n": 1}]})["content"] == []
    with pytest.raises(MCPError, match=r"turns\[0\].sent.arguments.lines"):
        find(tmp_path, {"id": "7", "lines": [{"sku": "A", "n": 1}, {"sku": "B", "n": 1}]})


def test_a_secret_is_put_back_if_the_environment_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, turn({"token": "${env:TILL_TOKEN}"}, {"structuredContent": {"token": "${env:TILL_TOKEN}"}}))
    monkeypatch.setenv("TILL_TOKEN", "s3cret-token")
    assert find(tmp_path, {"token": "s3cret-token"})["structuredContent"] == {"token": "s3cret-token"}
    monkeypatch.delenv("TILL_TOKEN")
    assert find(tmp_path, {"token": "${env:TILL_TOKEN}"})["structuredContent"] == {"token": "${env:TILL_TOKEN}"}


def test_a_list_that_was_recorded_is_a_request_like_any_other(tmp_path: Path) -> None:
    listed = {"method": "tools/list", "sent": {}, "result": {"resultType": "complete", "tools": [{"name": "pay"}]}}
    written(tmp_path, listed)
    step = Playback(load_tapes([tmp_path])).find("2026-07-28", "tools/list", {}).step
    assert step.target == "tools/list"
    assert step.response["result"]["tools"] == [{"name": "pay"}]
