"""Suites with `--as`: what a client of the wild is given, and what is expected of its calls."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bespeak.conversation.profiles.known_profiles import ChosenProfile, find_profile
from bespeak.conversation.profiles.profile import Ask, Profile
from bespeak.conversation.responses import Question
from bespeak.testing.report.results import Outcome
from bespeak.testing.run_options import Options, make_options
from bespeak.testing.suite.plan import for_profile, items_of
from tests.testing.canned import (
    HEAD,
    NOVEMBER,
    Canned,
    Hold,
    Json,
    Pushing,
    Silent,
    asking,
    form,
    messages,
    rules,
    told,
)
from tests.testing.canned import hold as hold
from tests.testing.suite_files import GOOD, load

OK = {"ok": {"type": "boolean"}}
PAY = "  - name: pays\n    tool: pay\n    inputResponses: {confirm: true}\n    expect: {text: Paid.}\n"


def asked(eur: int) -> Json:
    return asking(confirm=form(f"Pay {eur} EUR?", **OK))


def playing(name: str) -> Options:
    return Options(profile=find_profile(name))


async def test_an_approval_of_100_that_pays_200_fails_the_test_as_langgraph(hold: Hold) -> None:
    server = Canned(asked(100), asked(200), told("Paid."))
    results = await hold(server, PAY, options=playing("langgraph"))
    assert rules(results) == ["stale-answer"]
    assert messages(results) == [
        "the person answered 'Pay 100 EUR?', and the server accepted the answer for 'Pay 200 EUR?'; its result is 'Paid.'"
    ]
    assert "--as=langgraph" in results[0].again


async def test_the_same_server_passes_with_an_ordinary_client(hold: Hold) -> None:
    assert messages(await hold(Canned(asked(100), told("Paid.")), PAY)) == []


async def test_langgraph_does_not_play_where_there_are_no_rounds(hold: Hold) -> None:
    server = Pushing(form("Pay?", **OK))
    for test in (PAY, PAY + "    xfail: known\n"):
        (result,) = await hold(server, test, options=playing("langgraph"))
        assert (result.outcome, result.failures) == (Outcome.SKIPPED, [])
        assert result.skipped == "this profile answers rounds, which revision 2025-11-25 does not have"


COMMANDS = """\
    setup: [[sh, -c, "echo prepared >> log; exit 1"]]
    teardown: [[sh, -c, "echo cleaned >> log; exit 1"]]
"""


@pytest.mark.parametrize(
    ("protocol", "what", "opened"),
    [
        ("auto", "revision 2025-11-25", True),
        ("legacy", "protocol: legacy", False),
        ("2025-06-18", "revision 2025-06-18", False),
    ],
)
async def test_a_test_that_a_profile_skips_runs_no_commands(
    hold: Hold, tmp_path: Path, protocol: str, what: str, opened: bool
) -> None:
    head = f"{HEAD.replace('timeout: 5', f'protocol: {protocol}')}setup: [[touch, suite]]\n"
    results = await hold(Pushing(), PAY + COMMANDS + "  - {name: b, tool: pay}\n", head, playing("langgraph"))
    assert [(one.skipped, one.failures) for one in results] == [
        (f"this profile answers rounds, which {what} does not have", [])
    ] * 2
    assert not (tmp_path / "log").exists()
    assert (tmp_path / "suite").exists() is opened


async def test_a_test_that_a_profile_can_run_is_set_up_before_its_server_starts(hold: Hold, tmp_path: Path) -> None:
    commands = COMMANDS.replace("; exit 1", "")
    server = Canned(asked(100), told("Paid."))
    assert messages(await hold(server, PAY + commands, options=playing("langgraph"))) == []
    assert (tmp_path / "log").read_text().split() == ["prepared", "cleaned"]


# What is declared


def declared(server: Canned) -> Any:
    return server.sent[-1]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]


async def test_a_profile_declares_what_its_client_declares(hold: Hold) -> None:
    server = Canned(told())
    head = HEAD.replace("timeout: 5", "timeout: 5, declare: {sampling: {}}")
    await hold(server, "  - {name: a, tool: pay}\n", head, playing("claude-code"))
    assert declared(server) == {"elicitation": {"form": {}}, "roots": {}}


async def test_what_a_test_declares_itself_comes_before_its_profile(hold: Hold) -> None:
    server = Canned(told())
    await hold(server, "  - {name: a, tool: pay, declare: {}}\n", options=playing("claude-code"))
    assert declared(server) == {}


# What is expected


async def test_expectations_do_not_apply_to_a_client_that_answers_itself(hold: Hold) -> None:
    test = PAY + "    capture: {id: structuredContent.id}\n    verify: {tool: balance, expect: {text: '100'}}\n"
    server = Canned(asked(100), told("Not paid.", isError=True))
    assert messages(await hold(server, test, options=playing("silent"))) == []
    assert len(server.sent) == 2


async def test_a_broken_rule_fails_a_test_with_a_silent_client(hold: Hold) -> None:
    results = await hold(Canned(asked(100), {"resultType": "complete"}), PAY, options=playing("silent"))
    assert rules(results) == ["content"]


SILENT = PAY + "    profiles: {silent: {expect: {text: Not paid.}, verify: {tool: balance, expect: {text: '0'}}}}\n"


async def test_a_test_says_what_it_expects_with_a_profile(hold: Hold) -> None:
    server = Canned(asked(100), told("Not paid."), told("0"))
    assert messages(await hold(server, SILENT, options=playing("silent"))) == []
    server = Canned(asked(100), told("Paid."), told("0"))
    assert messages(await hold(server, SILENT, options=playing("silent"))) == [
        'text: expected "Not paid.", got "Paid."'
    ]
    server = Canned(asked(100), told("Not paid."), told("100"))
    assert messages(await hold(server, SILENT, options=playing("silent"))) == ['verify: text: expected "0", got "100"']


async def test_what_it_expects_with_another_profile_does_not_count(hold: Hold) -> None:
    assert messages(await hold(Canned(asked(100), told("Paid.")), SILENT, options=playing("claude-code"))) == []


async def test_a_profile_with_a_value_is_found_by_its_name(hold: Hold) -> None:
    test = PAY + "    profiles: {impatient: {expect: {text: Slow.}}}\n"
    assert messages(await hold(Canned(asked(100), told("Slow.")), test, options=playing("impatient=5"))) == []


async def test_an_effect_that_a_lossy_client_causes_twice_is_found_as_such(hold: Hold) -> None:
    test = PAY + "    verify: {tool: balance, expect: {text: '100'}}\n"
    server = Canned(asked(100), asked(100), told("Paid."), told("Paid."), told("200"))
    results = await hold(server, test, options=playing("lossy"))
    assert rules(results) == ["single-use"]
    assert messages(results) == [
        'after a response was lost and the request was sent again: text: expected "100", got "200"'
    ]


async def test_a_server_that_an_impatient_client_gives_up_twice_fails(hold: Hold) -> None:
    results = await hold(Silent(), PAY, options=playing("impatient=0.05"))
    assert messages(results) == [
        "server 'desk' did not respond: the client gave up after 0.05 s, sent the request again and gave up again"
    ]


FORECAST: Json = {"name": "forecast", "inputSchema": {"type": "object"}}


async def test_a_tool_that_a_client_does_not_see_may_be_hidden_from_it(hold: Hold) -> None:
    hidden = "the server may hide the tool from this client, which declares only elicitation.form, roots"
    server = Canned(told("ok"))
    server.tools = [FORECAST]
    (result,) = await hold(server, "  - {name: a, tool: forcast}\n", options=playing("claude-code"))
    (note,) = result.notes
    assert note.endswith(f"desk.bespeak.yaml:4: the test passes, but the server has no tool 'forcast'; {hidden}")
    test = "  - {name: a, tool: forcast, expect: {text: Sunny.}}\n"
    (result,) = await hold(server, test, options=playing("claude-code"))
    assert result.failures[0].hint == f"the server has no tool 'forcast'; did you mean 'forecast'?\n{hidden}"


async def test_a_client_that_declares_nothing_may_see_fewer_tools(hold: Hold) -> None:
    server = Canned(told("ok"))
    server.tools = [FORECAST]
    (result,) = await hold(server, "  - {name: a, tool: weather, declare: {}, expect: {text: Sunny.}}\n")
    assert result.failures[0].hint == (
        "the server has no tool 'weather'; there are: forecast\n"
        "the server may hide the tool from this client, which declares no capabilities"
    )
    assert (await hold(server, "  - {name: a, tool: weather, declare: {}}\n"))[0].notes == []


async def test_a_skipped_test_has_no_notes(hold: Hold) -> None:
    class Older(Pushing):
        async def exchange(self, request: Any, notify: Any, ask: Any = None) -> bytes:
            if request.method != "tools/list":
                return await super().exchange(request, notify, ask)
            return json.dumps({"jsonrpc": "2.0", "id": request.id, "result": {"tools": [FORECAST]}}).encode()

    test = "  - {name: a, tool: forcast, redact: [structuredContent.id]}\n"
    (result,) = await hold(Older(), test, options=playing("langgraph"))
    assert (result.outcome, result.notes) == (Outcome.SKIPPED, [])
    (result,) = await hold(Older(), test)  # which has both
    assert len(result.notes) == 2


class Meek(Profile):
    """Declines what it is asked first, and then asks."""

    def __init__(self) -> None:
        self._declined = False

    async def answers(self, questions: Sequence[Question], ask: Ask) -> dict[str, Any]:
        if self._declined:
            return await ask()
        self._declined = True
        return {one.key: {"action": "cancel"} for one in questions}


async def test_a_profile_of_your_own_plays_each_call_anew(hold: Hold) -> None:
    server = Canned(asked(100), asked(100), told("Paid."))
    results = await hold(server, PAY, options=Options(profile=ChosenProfile("tests:Meek", Meek)))
    assert messages(results) == []
    assert [one.get("inputResponses", {}).get("confirm", {}).get("action") for one in server.params] == [
        None,
        "cancel",
        "accept",
    ]


async def test_cassettes_are_left_alone(hold: Hold, tmp_path: Path) -> None:
    head = HEAD + "cassettes: tapes\n"
    assert messages(await hold(Canned(asked(100), told("Paid.")), PAY, head, playing("claude-code"))) == []
    assert not (tmp_path / "tapes").exists()


# Which tests run


def test_hostile_tests_are_left_out_and_those_at_revisions_without_rounds_are_skipped(tmp_path: Path) -> None:
    suite = load(
        tmp_path,
        GOOD.replace("name: one", f"name: one\n    eras: [{NOVEMBER}, 2026-07-28]")
        + "  - {name: two, tool: pay, tamper: {round: 1, requestState: flip}}\n"
        + "  - {name: three, tool: pay, fault: {round: 1, drop: response}, retry: 1}\n"
        + "  - {name: four, tool: pay}\n",
    )
    items = items_of(suite)
    assert len(for_profile(items, None)) == 5
    assert {item.title: item.test.skip for item in for_profile(items, find_profile("langgraph"))} == {
        f"one [{NOVEMBER}]": "this profile answers rounds, which revision 2025-11-25 does not have",
        "one [2026-07-28]": None,
        "four": None,
    }
    assert [item.test.name for item in for_profile(items, find_profile("lossy"))] == ["one", "one", "four"]


@pytest.mark.parametrize(
    "more", [{"record": "once"}, {"verify": True}, {"cassettes": Path("tapes")}], ids=["record", "verify", "cassettes"]
)
def test_a_profile_needs_the_live_server(more: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    given: dict[str, Any] = {"record": "none", "verify": False, "cassettes": None, "servers": [], "era": None, **more}
    with pytest.raises(ValueError, match="--as runs against the live server; it cannot be combined with --record"):
        make_options(**given, profile="lossy")
