"""The keys of hostile tests, of other requests, of outcomes and of commands: what is refused, with its line."""

from pathlib import Path

import pytest

from bespeak.testing.suite.plan import items_of, with_tags
from tests.testing.suite_files import GOOD, NEXT, in_test, load, only_fault, with_server

COMMAND = with_server("{command: [till]}")
WEB = with_server("{url: 'http://127.0.0.1:1/'}")


def added(text: str, *lines: str) -> str:
    return text + "".join(f"    {line}\n" for line in lines)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("tamper: {round: 1}", "tamper needs exactly one of requestState and inputResponses"),
        ("tamper: {round: 1, requestState: flip, inputResponses: list}", "tamper needs exactly one of"),
        ("tamper: {round: 1, inputResponses: odd}", "inputResponses: must be 'text', 'list', 'nothing'"),
        ("tamper: {round: 1, requestState: odd}", "requestState: must be 'flip', 'drop'"),
        ("tamper: {round: 1, requestState: odd}", "'older-round' or 'expired', not 'odd'"),
        ("tamper: {round: 1, requestState: flop}", ", not 'flop'; did you mean 'flip'?"),
        ("tamper: {round: 1, requestState: other-tool}", "other-tool needs tool: the tool that the state is sent to"),
        ("tamper: {round: 1, requestState: other-caller}", "other-caller needs headers: the headers of the other"),
        ("tamper: {round: 1, requestState: expired}", "expired needs after: the seconds after which the state must"),
        ("tamper: {round: 1, requestState: expired, after: 601}", "after: must be less than or equal to 600"),
        ("tamper: {round: 1, requestState: older-round}", "older-round needs an earlier round: give a round of 2"),
        ("tamper: {round: 2, requestState: older-round, from: 2}", "older-round needs an earlier round"),
        ("tamper: {round: 1, requestState: flip, tool: x}", "tool belongs to other-tool, not to flip"),
        ("tamper: {round: 1, requestState: flip, arguments: {}}", "belongs to other-arguments and other-tool, not to"),
        ("tamper: {round: 1, inputResponses: list, headers: {a: b}}", "headers belongs to other-caller, not to list"),
        ("tamper: {round: 1, requestState: drop, from: 1}", "from belongs to older-round, not to drop"),
        ("tamper: {round: 1, requestState: drop, after: 1}", "after belongs to expired, not to drop"),
        ("tamper: {round: 1, requestState: drop, frm: 1}", "unknown key 'frm'; did you mean 'from'?"),
        ("fault: {round: 1}", "fault needs drop, restart, or both"),
        ("fault: {round: 1, restart: false}", "restart must be true; leave it out otherwise"),
        ("fault: {round: 0, restart: true}", "restart needs a round of 1 or more: before the call there is nothing"),
        ("fault: {round: 1, drop: response}", "fault and retry go together"),
        ("stop: {after: 0}", "after: must be greater than or equal to 1"),
        ("stop: {}", "the key 'after' is missing"),
        ("skip:", "skip is empty; give it a value, or leave it out"),
        ("skip: true", "skip: must be a string"),
        ("xfail: ''", "xfail: is empty; write some text"),
        ("tags: []", "tags: is empty"),
        ("tags: [slow, slow]", "the tag 'slow' is listed twice"),
        ("tags: [two words]", "the tag 'two words' must consist of letters, digits, _ and -, and begin with a letter"),
        ("tags: [skip]", "the tag 'skip' has a meaning of its own in pytest; choose another name"),
        ("setup: []", "setup: is empty; give it at least one entry"),
        ("setup: [make, data]", "setup must be a list of commands, each a list of words, such as [[make, data]]"),
        ("setup: {command: [x]}", "setup: must be a list"),
        ("setup: [[]]", "command: is empty"),
        ("setup: [{command: [x], timout: 1}]", "unknown key 'timout'; did you mean 'timeout'?"),
        ("setup: [[make, '${data}']]", "${data} has no value here: no test before this one captures it"),
        ("teardown: [{command: [x], timeout: 0}]", "timeout: must be greater than 0"),
        ("method: tools/list", "name exactly one of tool, prompt, resource, method and probe"),
        ("params: {}", "params are for a method; a tool and a prompt take arguments"),
        ("verify: {method: ''}", "method: is empty"),
        (
            "verify: {method: notifications/cancelled}",
            "notifications/cancelled is a notification, and gets no response",
        ),
        ("verify: {method: subscriptions/listen}", "subscriptions/listen stays open, so a test would never end"),
        ("verify: {method: tools/list, arguments: {}}", "a method takes params, not arguments"),
        ("verify: {method: tools/list, expect: {isError: true}}", "only the result of a tool has isError"),
    ],
)
def test_what_is_wrong_with_a_key_is_said_with_its_line(tmp_path: Path, line: str, said: str) -> None:
    found, message = only_fault(tmp_path, added(COMMAND, line))
    assert said in message
    assert found in (NEXT, NEXT - 2)  # of the key, or of its test


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (added(COMMAND, "retry: 1", "fault: {round: 1, restart: true}"), "fault and retry go together"),
        (
            added(COMMAND, "stop: {after: 1}", "tamper: {round: 1, inputResponses: list}"),
            "tamper and stop cannot be combined; write separate tests",
        ),
        (added(WEB, "fault: {round: 1, restart: true}"), "only a server with a command can be restarted"),
        (in_test("fault: {round: 1, restart: true}"), "only a server with a command can be restarted"),
        (
            in_test("tamper: {round: 1, requestState: other-caller, headers: {a: b}}"),
            "other-caller needs a server with a url: over stdio there is only one caller",
        ),
        (
            in_test("tamper: {round: 1, requestState: other-tool, tool: x}").replace("tool: pay", "prompt: pay"),
            "other-tool is for a test of a tool",
        ),
        (
            in_test("stop: {after: 1}").replace("tool: pay", "method: tools/list"),
            "stop needs rounds, and only prompts/get, resources/read, tools/call have them",
        ),
        (
            in_test("eras: [2025-11-25]", "tamper: {round: 1, inputResponses: list}"),
            "tamper needs rounds, and revision 2025-11-25 does not have them; give this test its own eras",
        ),
        (in_test("stop: {after: 1}", "expect: {text: x}"), "a call that the client stops has no result; only asked,"),
        (
            in_test("stop: {after: 1}", "cases: [{name: a, expect: {error: {}}}, {name: b}]"),
            "has no result; only asked",
        ),
        (in_test("stop: {after: 1}", "capture: {a: b}"), "a call that the client stops has no result to capture"),
        (
            in_test("cases: [{name: a, arguments: {}}]").replace("tool: pay", "method: tools/list"),
            "a method takes params, not arguments",
        ),
        (GOOD + "setup: [[make, '${port}']]\n", "${port} has no value here: only ${env:NAME} can be used here"),
    ],
)
def test_a_key_that_cannot_work_in_its_test_is_refused(tmp_path: Path, text: str, said: str) -> None:
    _, message = only_fault(tmp_path, text)
    assert said in message


@pytest.mark.parametrize(
    "text",
    [
        added(COMMAND, "fault: {round: 1, restart: true}"),
        added(COMMAND, "fault: {round: 0, drop: response, restart: true}", "retry: 1"),
        added(WEB, "tamper: {round: 1, requestState: other-caller, headers: {a: b}}"),
        in_test("tamper: {round: 3.0, requestState: older-round, from: 1}"),
        in_test("stop: {after: 1}", "eras: [2025-11-25]", "expect: {rounds: 1}"),
        in_test("setup: [[make], {command: [make], cwd: .., env: {A: '${env:A}'}, timeout: 1}]"),
    ],
)
def test_what_can_work_is_accepted(tmp_path: Path, text: str) -> None:
    load(tmp_path, text)


# Tags

TAGGED = GOOD + "".join(
    f"  - {{name: {name}, tool: x, tags: [{tags}]}}\n" for name, tags in {"two": "slow", "three": "slow, web"}.items()
)


@pytest.mark.parametrize(
    ("wanted", "unwanted", "names"),
    [
        ([], [], ["one", "two", "three"]),
        (["slow"], [], ["two", "three"]),
        (["web", "slow"], [], ["two", "three"]),
        (["slow"], ["web"], ["two"]),
        ([], ["slow"], ["one"]),
    ],
)
def test_tests_are_selected_by_their_tags(
    tmp_path: Path, wanted: list[str], unwanted: list[str], names: list[str]
) -> None:
    items = items_of(load(tmp_path, TAGGED))
    assert [item.title for item in with_tags(items, items, wanted, unwanted)] == names


def test_a_tag_that_no_test_has_is_an_error(tmp_path: Path) -> None:
    items = items_of(load(tmp_path, TAGGED))
    with pytest.raises(ValueError, match="--tag: no test has the tag 'slwo'; tags: slow, web"):
        with_tags([], items, ["slwo"], [])
    with pytest.raises(ValueError, match=r"--not-tag: no test has the tag 'slow'; tags: \(none\)"):
        with_tags(items[:1], items[:1], [], ["slow"])
