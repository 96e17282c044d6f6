"""Questions outside a call in a suite: they are no test's failure, and no test is said to have been asked them."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bespeak.testing.cassettes.record_mode import RecordMode
from bespeak.testing.report.html_report import HtmlReport
from bespeak.testing.report.pretty_report import PrettyReport, describe
from bespeak.testing.report.results import Outcome, Result
from bespeak.testing.report.summary import Summary
from bespeak.testing.run_options import Options
from tests.curious_server import CITY, NOTHING, ROOTS, SAMPLE, as_target, curious
from tests.testing.canned import messages, run
from tests.testing.conftest import Bench, said
from tests.testing.runs import FAILED, written

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
@pytest.mark.long
async def test_roots_that_a_server_asks_for_by_itself_are_no_test_s_failure(tmp_path: Path, when: str) -> None:
    results = await held(tmp_path, curious(tmp_path, **{when: [ROOTS]}), BESIDE + heard(NOTHING))
    assert messages(results) == []
    assert [result.rounds for result in results] == [[], []]


@pytest.mark.long
async def test_a_server_gets_the_roots_and_answers_of_the_suite(tmp_path: Path) -> None:
    command = curious(tmp_path, initialized=[ROOTS, CITY, SAMPLE])
    server = {"roots": ["data"], "answers": {"city": "Oslo", "sampling": {"sample": "Hi"}}}
    tests = "  - {name: heard, tool: heard, expect: {rounds: 0, text: {contains: '%s'}}}\n"
    for part in ((tmp_path / "data").as_uri(), "Oslo", '"Hi"'):
        assert messages(await held(tmp_path, command, tests % part, server)) == []


@pytest.mark.long
async def test_a_server_that_replaces_another_gets_its_roots(tmp_path: Path) -> None:
    command = curious(tmp_path, initialized=[ROOTS])
    options = Options(servers={"desk": as_target(command)})
    uri = (tmp_path / "data").as_uri()
    tests = f"  - {{name: a, tool: heard, expect: {{text: {{contains: '{uri}'}}}}}}\n"
    assert messages(await held(tmp_path, ["absent"], tests, {"roots": ["data"]}, options)) == []


@pytest.mark.long
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


@pytest.mark.long
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


# What reports say of them


FAILS = "  - {name: fails, tool: beside, expect: {text: other}}\n"
NO_ROOTS = "server 'desk' asked for roots once, outside a call, and was told that there are none"
NAME_SOME = f"{NO_ROOTS}; roots: [FOLDER] beside its command or url names some"


@pytest.mark.long
async def test_a_failing_test_says_what_the_server_asked_outside_of_a_call_and_was_told(tmp_path: Path) -> None:
    (result,) = await held(tmp_path, curious(tmp_path, initialized=[ROOTS]), FAILS)
    assert list(result.outside) == [NAME_SOME]
    assert f"\n  {NAME_SOME}\n" in describe(result)
    assert result.as_json()["outside"] == [NAME_SOME]
    assert Result.from_json(result.as_json()).outside == [NAME_SOME]
    assert NO_ROOTS in written(HtmlReport, Summary([result]))


@pytest.mark.long
async def test_no_roots_that_the_suite_names_are_not_advised(tmp_path: Path) -> None:
    (result,) = await held(tmp_path, curious(tmp_path, initialized=[ROOTS]), FAILS, {"roots": []})
    assert list(result.outside) == [NO_ROOTS]


def test_what_was_asked_outside_of_a_call_is_told_once_for_each_server() -> None:
    def failing(server: str, times: str) -> Result:
        sentence = f"server {server!r} asked for roots {times}, outside a call, and was told that there are none"
        return replace(FAILED, server=server, outside=[sentence])

    results = [failing("a", "once"), failing("a", "twice"), failing("b", "once")]
    shown = written(PrettyReport, Summary([replace(one, line=line) for line, one in enumerate(results)]))
    assert [shown.count(f"server {name!r} asked for roots") for name in "ab"] == [1, 1]
    assert "asked for roots once" in shown


@pytest.mark.long
async def test_each_question_outside_of_a_call_is_told_with_its_answer(tmp_path: Path) -> None:
    command = curious(tmp_path, initialized=[ROOTS, CITY, CITY, SAMPLE])
    server = {"roots": ["file:///maps"], "answers": {"city": "Oslo"}}
    (result,) = await held(tmp_path, command, BESIDE, server)
    assert list(result.outside) == [
        "server 'desk' asked for roots once, outside a call, and was told: file:///maps",
        "server 'desk' asked 'City?' twice, outside a call, and was told: "
        '{"action": "accept", "content": {"city": "Oslo"}}',
        "server 'desk' asked for a model's reply once, outside a call, and got the error: sampling was declined",
    ]


@pytest.mark.long
async def test_an_answer_of_the_suite_that_does_not_fit_a_question_outside_of_a_call_is_told(tmp_path: Path) -> None:
    command = curious(tmp_path, initialized=[CITY])
    (result,) = await held(tmp_path, command, BESIDE, {"answers": {"city": "omit"}})
    assert list(result.outside) == [
        "server 'desk' asked 'City?' once, outside a call, and was told: {\"action\": \"decline\"}; "
        "the answer of the suite could not be used: 'city' was asked outside a call and cannot be omitted"
    ]


@pytest.mark.long
async def test_an_answer_that_does_not_fit_a_question_outside_of_a_call_is_noted_once(tmp_path: Path) -> None:
    command = curious(tmp_path, initialized=[CITY], beside=[CITY])
    server = {"answers": {"city": {"accept": {"cityy": "Oslo"}}}}
    first, second = await held(tmp_path, command, BESIDE + BESIDE.replace("name: beside", "name: again"), server)
    assert messages([first, second]) == []
    (note,) = first.notes
    head, _, problem = note.partition(": ")
    assert head.endswith("desk.bespeak.yaml:2")
    assert problem == (
        "server 'desk' asked outside a call, and its prepared answer could not be sent: "
        "the form of 'city' has no field 'cityy'; it has city"
    )
    assert note not in second.notes


@pytest.mark.long
async def test_a_secret_is_not_in_the_note_about_an_answer_that_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITY_TOKEN", "s3cret-city")
    command = curious(tmp_path, initialized=[CITY])
    server = {"answers": {"city": {"accept": {"${env:CITY_TOKEN}": "Oslo"}}}}
    (result,) = await held(tmp_path, command, BESIDE, server)
    assert "could not be sent" in str(result.notes)
    assert "s3cret" not in str(result.notes)


@pytest.mark.long
async def test_a_secret_is_not_in_what_a_server_was_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITY_TOKEN", "s3cret-city")
    command = curious(tmp_path, initialized=[CITY])
    (result,) = await held(tmp_path, command, BESIDE, {"answers": {"city": "${env:CITY_TOKEN}"}})
    assert "${env:CITY_TOKEN}" in result.outside[0]
    assert "s3cret" not in result.outside[0]


async def test_a_root_that_does_not_exist_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    server = {"roots": ["data", "nosuch", {"uri": "../no/such"}, "file:///not/checked"]}
    options = Options(start=tmp_path)
    first, second = await held(tmp_path, curious(tmp_path), BESIDE + FAILS, server, options)
    assert first.notes == second.notes
    assert list(first.notes) == [
        f"desk.bespeak.yaml:2: server 'desk': the root 'nosuch' does not exist ('{tmp_path / 'nosuch'}')",
        f"desk.bespeak.yaml:2: server 'desk': the root '../no/such' does not exist ('{tmp_path.parent / 'no/such'}')",
    ]


# What the server prints


LOUD = r"""
import json, sys
for raw in sys.stdin:
    message = json.loads(raw)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        info = {"name": "c", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
    elif message["method"] == "tools/call":
        name = message["params"]["name"]
        if name != "quiet":
            print(f"\x1b[31mcalled\x1b[0m {name} with s3cret-token\a", file=sys.stderr, flush=True)
        result = {"content": [{"type": "text", "text": name}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


async def loud(folder: Path, *tests: str) -> list[Result]:
    (folder / "loud.py").write_text(LOUD)
    listed = "".join(f"  - {{name: t{number}, {one}}}\n" for number, one in enumerate(tests))
    command = [sys.executable, "-I", "-S", str(folder / "loud.py")]
    return await held(folder, command, listed, {"env": {"T": "${env:LOUD_TOKEN}"}})


async def test_a_failing_test_shows_what_the_server_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUD_TOKEN", "s3cret-token")
    passed, failed = await loud(tmp_path, "tool: one", "tool: two, expect: {text: other}")
    assert passed.printed == ""
    assert failed.printed == "called one with ${env:LOUD_TOKEN}\ncalled two with ${env:LOUD_TOKEN}"
    assert "\n  server 'desk' printed:\n    called one with ${env:LOUD_TOKEN}\n    called two" in describe(failed)
    assert failed.as_json()["printed"] == failed.printed
    assert Result.from_json(failed.as_json()).printed == failed.printed
    assert "called two with" in written(HtmlReport, Summary([failed]))


QUIET = "tool: quiet, expect: {text: other}"


async def test_what_the_server_printed_is_shown_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOUD_TOKEN", "s3cret-token")
    results = await loud(tmp_path, "tool: one", QUIET, QUIET)
    assert [result.printed.count("called") for result in results] == [0, 1, 0]


async def test_what_the_server_printed_in_a_test_that_failed_as_expected_is_not_shown_with_a_later_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOUD_TOKEN", "s3cret-token")
    results = await loud(tmp_path, "tool: one, xfail: known, expect: {text: other}", QUIET)
    assert [result.outcome for result in results] == [Outcome.XFAILED, Outcome.FAILED]
    assert [result.printed for result in results] == ["called one with ${env:LOUD_TOKEN}", ""]


@pytest.mark.long
def test_pytest_tells_what_was_asked_outside_of_a_call_once_too(bench: Bench) -> None:
    server = json.dumps({"command": curious(bench.path, initialized=[ROOTS]), "protocol": "legacy"})
    bench.write(
        "a.bespeak.yaml", f"version: 1\nservers: {{desk: {server}}}\ntests:\n{FAILS}{FAILS.replace('fails', 'b')}"
    )
    ran = said(bench.pytest("a.bespeak.yaml"))
    assert "2 failed" in ran
    assert ran.count(NO_ROOTS) == 1
