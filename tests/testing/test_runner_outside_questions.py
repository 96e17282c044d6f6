"""Questions outside a call in a suite: they are no test's failure, and no test is said to have been asked them."""

import json
from pathlib import Path
from typing import Any

import pytest

from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.report.results import Result
from bespeak.testing.run_options import Options
from tests.curious_server import CITY, NOTHING, ROOTS, SAMPLE, as_target, curious
from tests.testing.canned import messages, run

Json = dict[str, Any]


async def held(
    folder: Path, command: list[str], tests: str, server: Json | None = None, options: Any = None
) -> list[Result]:
    path = folder / "desk.bespeak.yaml"
    servers = json.dumps({"desk": {"command": command, "protocol": "legacy", "timeout": 10, **(server or {})}})
    path.write_text(f"version: 1\nservers: {servers}\ntests:\n{tests}", encoding="utf-8")
    return await run(path, options)


def heard(*answers: Json, name: str = "heard") -> str:
    """A test that the server has heard these answers."""
    return f"  - {{name: {name}, tool: heard, expect: {{rounds: 0, asked: [], text: {json.dumps(json.dumps(answers))}}}}}\n"


BESIDE = "  - {name: beside, tool: beside, expect: {rounds: 0, asked: []}}\n"


@pytest.mark.parametrize("when", ["initialized", "beside"])
async def test_roots_that_a_server_asks_for_by_itself_are_no_test_s_failure(tmp_path: Path, when: str) -> None:
    results = await held(tmp_path, curious(tmp_path, **{when: [ROOTS]}), BESIDE + heard(NOTHING))
    assert messages(results) == []
    assert [result.rounds for result in results] == [[], []]


async def test_a_server_gets_the_roots_and_answers_of_the_suite(tmp_path: Path) -> None:
    command = curious(tmp_path, initialized=[ROOTS, CITY, SAMPLE])
    server = {"roots": ["data"], "answers": {"city": "Oslo", "sampling": {"sample": "Hi"}}}
    tests = "  - {name: heard, tool: heard, expect: {rounds: 0, text: {contains: '%s'}}}\n"
    for part in ((tmp_path / "data").as_uri(), "Oslo", '"Hi"'):
        assert messages(await held(tmp_path, command, tests % part, server)) == []


async def test_a_server_that_replaces_another_gets_its_roots(tmp_path: Path) -> None:
    command = curious(tmp_path, initialized=[ROOTS])
    options = Options(servers={"desk": as_target(command)})
    uri = (tmp_path / "data").as_uri()
    tests = f"  - {{name: a, tool: heard, expect: {{text: {{contains: '{uri}'}}}}}}\n"
    assert messages(await held(tmp_path, ["absent"], tests, {"roots": ["data"]}, options)) == []


async def test_a_test_may_script_the_roots_that_its_tool_asks_for(tmp_path: Path) -> None:
    answer = json.dumps(json.dumps({"result": {"roots": [{"uri": "file:///mine"}]}}))
    tests = (
        "  - {name: within, tool: within, inputResponses: {roots: {roots: ['file:///mine']}},"
        f" expect: {{rounds: 1, asked: [roots], text: {answer}}}}}\n"
    )
    results = await held(tmp_path, curious(tmp_path, initialized=[ROOTS], within=[ROOTS]), tests, {"roots": ["data"]})
    assert messages(results) == []


async def test_a_test_may_script_the_roots_of_a_round(tmp_path: Path) -> None:
    tests = (
        "  - {name: within, tool: within, rounds: [{expect: {asks: [roots]}, answer: {roots: {roots: []}}}]}\n"
        "  - {name: other, tool: within, rounds: [{expect: {asks: [city]}, answer: {city: Rome}}]}\n"
    )
    first, second = await held(tmp_path, curious(tmp_path, within=[ROOTS]), tests)
    assert messages([first]) == []
    assert messages([second]) == ["round 1 was never reached: the server asked no more questions"]


async def test_a_rule_for_everything_does_not_claim_roots_that_may_belong_to_no_call(tmp_path: Path) -> None:
    tests = "  - {name: a, tool: within, inputResponses: [{otherwise: decline}], expect: {rounds: 0}}\n"
    assert messages(await held(tmp_path, curious(tmp_path, within=[ROOTS]), tests)) == []


async def test_any_other_question_in_a_call_still_needs_an_answer(tmp_path: Path) -> None:
    results = await held(tmp_path, curious(tmp_path, within=[CITY]), "  - {name: a, tool: within}\n")
    assert messages(results) == ["there is no answer to 'city' (City?)"]
    assert results[0].failures[0].hint == 'inputResponses:\n  city: "..."'


async def test_a_question_outside_a_call_is_not_in_a_cassette(tmp_path: Path) -> None:
    command = curious(tmp_path, initialized=[ROOTS], beside=[ROOTS])
    options = Options(cassettes=tmp_path / "tapes", record=RecordMode.ONCE)
    assert messages(await held(tmp_path, command, BESIDE, options=options)) == []
    (tape,) = (tmp_path / "tapes").rglob("*.json")
    assert "roots" not in tape.read_text()
    assert messages(await held(tmp_path, ["absent"], BESIDE, options=Options(cassettes=tmp_path / "tapes"))) == []


async def test_a_test_may_decline_sampling_that_is_pushed(tmp_path: Path) -> None:
    answer = json.dumps(json.dumps({"error": {"code": -1, "message": "the user declined this request"}}))
    tests = (
        "  - {name: within, tool: within, inputResponses: {sampling: decline},"
        f" expect: {{rounds: 1, asked: [sampling], text: {answer}}}}}\n"
    )
    command = curious(tmp_path, within=[SAMPLE])
    options = Options(cassettes=tmp_path / "tapes", record=RecordMode.ONCE)
    for one in (options, Options(cassettes=tmp_path / "tapes")):
        assert messages(await held(tmp_path, command, tests, options=one)) == []
