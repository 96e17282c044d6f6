"""What a call came to, held against `expect`: what is not named may be anything, but a failure must be named."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.conversation.matchers import ABSENT, Difference
from bespeak.conversation.result_text import text_of
from bespeak.testing.expect.expectations import ended, failed, judge
from bespeak.testing.report.results import Failure, Result
from bespeak.testing.runner import Runner, run_items
from bespeak.testing.suite.plan import items_of
from bespeak.testing.suite.suite_file import Expect
from tests.testing.suite_files import load

PAID: dict[str, Any] = {
    "resultType": "complete",
    "_meta": {"serverInfo": {"version": "1"}},
    "content": [{"type": "text", "text": "Paid."}],
    "structuredContent": {"cents": 5, "to": {"name": "Ada"}},
    "isError": False,
}
FAILED: dict[str, Any] = {"resultType": "complete", "content": [{"type": "text", "text": "No money."}], "isError": True}
REFUSED: dict[str, Any] = {"code": -32602, "message": "no such order", "data": {"order": 7}}


@dataclass(slots=True)
class Kept:
    """Snapshots that are told what they were asked."""

    asked: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    difference: Difference | None = None

    def check(self, name: str, actual: Any) -> Difference | None:
        self.asked.append((name, actual))
        return self.difference

    def kept(self, name: str) -> Any:
        return ABSENT


def judged(expect: dict[str, Any], *, result: Any = None, error: Any = None, **more: Any) -> list[Failure]:
    envelope: dict[str, Any] = {"jsonrpc": "2.0", "id": 1}
    envelope |= {"result": PAID if result is None else result} if error is None else {"error": error}
    given: dict[str, Any] = {"rounds": 0, "asked": [], "notifications": [], "snapshots": None, **more}
    return judge(Expect.model_validate(expect), envelope, **given)


def only(failures: list[Failure]) -> Failure:
    assert len(failures) == 1, failures
    return failures[0]


# What is as expected


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"text": "Paid."},
        {"text": {"matches": "^P"}},
        {"structuredContent": {"cents": 5, "to": {"name": "Ada"}}},
        {"structuredContent": {"contains": {"cents": {"gt": 4}}}},
        {"structuredContent": {"cents": 5, "to": {"name": {"length": 3}}}},
        {"content": [{"type": "text", "text": "Paid."}]},
        {"content": {"length": 1}},
        {"isError": False},
        {"messages": {"absent": True}, "contents": {"absent": True}},
        {"rounds": 0, "asked": [], "notifications": []},
        {"result": {"contains": {"isError": False}}},
    ],
)
def test_a_call_that_came_to_what_is_expected_has_no_failures(expect: dict[str, Any]) -> None:
    assert judged(expect) == []


def test_a_result_is_without_what_only_its_envelope_needs() -> None:
    whole = {name: value for name, value in PAID.items() if name not in ("resultType", "_meta")}
    assert judged({"result": whole}) == []
    assert only(judged({"result": PAID})).path == "result.resultType"


def test_rounds_questions_and_notifications_are_those_of_the_conversation() -> None:
    notes = [{"method": "notifications/message", "params": {"data": "half way"}}]
    expect = {
        "rounds": 2,
        "asked": ["city", "units"],
        "notifications": [{"method": {"contains": "message"}, "params": {"present": True}}],
    }
    assert judged(expect, rounds=2, asked=["city", "units"], notifications=notes) == []


# What is not


@pytest.mark.parametrize(
    ("expect", "hint"),
    [
        ({"text": "present"}, "to expect any value, write {present: true}"),
        ({"text": "absent"}, "to expect that there is no value, write {absent: true}"),
        (
            {"structuredContent": {"contains": {"no": "absent"}}},
            "to expect that there is no value, write {absent: true}",
        ),
        ({"structuredContent": {"cents": 5}}, "to compare only some of the members, write {contains: {...}}"),
        ({"text": "Sunny."}, None),
    ],
)
def test_what_was_probably_meant_is_a_hint(expect: dict[str, Any], hint: str | None) -> None:
    assert only(judged(expect)).hint == hint


@pytest.mark.parametrize(
    ("expect", "path", "said", "expected", "actual"),
    [
        ({"text": "paid."}, "text", 'text: expected "paid.", got "Paid."', "paid.", "Paid."),
        ({"text": {"contains": "x"}}, "text", 'text: does not contain "x": "Paid."', {"contains": "x"}, "Paid."),
        (
            {"structuredContent": {"cents": 5, "to": {"name": "Eve"}}},
            "structuredContent.to.name",
            'structuredContent.to.name: expected "Eve", got "Ada"',
            "Eve",
            "Ada",
        ),
        (
            {"structuredContent": {"cents": 5}},
            "structuredContent.to",
            "was not expected",
            ABSENT,
            {"name": "Ada"},
        ),
        ({"structuredContent": {"contains": {"tip": 1}}}, "structuredContent.tip", "is missing", 1, ABSENT),
        (
            {"content": []},
            "content[0]",
            "was not expected; the list should be empty, but has 1",
            ABSENT,
            {"type": "text", "text": "Paid."},
        ),
        ({"isError": True}, "isError", "the tool was expected to fail, but returned: Paid.", True, False),
        ({"messages": []}, "messages", "messages: is missing", [], ABSENT),
        ({"rounds": 1}, "rounds", "rounds: expected 1, got 0", 1, 0),
        ({"asked": ["city"]}, "asked[0]", "asked[0]: is missing", "city", ABSENT),
        ({"notifications": {"length": 1}}, "notifications", "should have 1 entry, but has 0", {"length": 1}, []),
    ],
)
def test_what_is_not_as_expected_is_reported_with_the_first_differing_path(
    expect: dict[str, Any], path: str, said: str, expected: Any, actual: Any
) -> None:
    failure = only(judged(expect))
    assert (failure.path, failure.expected, failure.actual) == (path, expected, actual)
    assert said in failure.message


def test_all_that_is_not_as_expected_is_reported() -> None:
    failures = judged({"text": "x", "rounds": 3, "structuredContent": {}, "isError": True})
    assert {failure.path for failure in failures} == {"rounds", "text", "structuredContent.cents", "isError"}


def test_null_is_a_value_and_is_not_what_is_left_out() -> None:
    assert judged({"structuredContent": None}, result={**PAID, "structuredContent": None}) == []
    without = {name: value for name, value in PAID.items() if name != "structuredContent"}
    assert only(judged({"structuredContent": None}, result=without)).message == "structuredContent: is missing"
    assert judged({"structuredContent": {"absent": True}}, result=without) == []


# Tools that fail


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"isError": False},
        {"text": "No money."},
        {"rounds": 0},
        {"content": {"length": 1}},
        {"result": {"present": True}},
    ],
)
def test_a_tool_that_fails_fails_the_test_unless_that_is_expected(expect: dict[str, Any]) -> None:
    failure = only(judged(expect, result=FAILED))
    assert failure.message == "the tool failed: No money."
    assert (failure.path, failure.expected, failure.actual) == ("isError", False, True)


def test_a_tool_that_is_expected_to_fail_passes() -> None:
    assert judged({"isError": True, "text": "No money."}, result=FAILED) == []


def test_a_result_that_does_not_say_whether_it_failed_did_not() -> None:
    assert judged({"isError": False}, result={"content": []}) == []
    assert only(judged({"isError": True}, result={"content": []})).actual is False


# Errors


def test_an_error_fails_the_test_unless_it_is_expected() -> None:
    failure = only(judged({"rounds": 5, "text": "x", "isError": True}, error=REFUSED))
    assert failure.message == "the call ended with an error: no such order (-32602)"
    assert (failure.path, failure.expected, failure.actual) == ("error", ABSENT, REFUSED)


@pytest.mark.parametrize(
    "expect",
    [
        {},
        {"code": -32602},
        {"code": {"lt": 0}, "message": {"contains": "order"}},
        {"data": {"order": 7}},
        {"data": {"contains": {"order": {"gt": 6}}}},
    ],
)
def test_an_error_that_is_expected_passes(expect: dict[str, Any]) -> None:
    assert judged({"error": expect}, error=REFUSED) == []
    assert judged({"error": expect, "text": {"absent": True}, "result": {"absent": True}}, error=REFUSED) == []


@pytest.mark.parametrize(
    ("expect", "path"),
    [
        ({"code": -32021}, "error.code"),
        ({"code": "-32602"}, "error.code"),
        ({"message": "no"}, "error.message"),
        ({"data": {"order": 8}}, "error.data.order"),
        ({"data": {"absent": True}}, "error.data"),
        ({"data": None}, "error.data"),
    ],
)
def test_an_error_that_differs_from_what_is_expected_is_reported_with_its_path(
    expect: dict[str, Any], path: str
) -> None:
    assert only(judged({"error": expect}, error=REFUSED)).path == path


@pytest.mark.parametrize(("result", "said"), [(PAID, "Paid."), (FAILED, "No money.")])
def test_a_call_that_does_not_end_with_the_error_that_is_expected_says_what_it_came_to(result: Any, said: str) -> None:
    failure = judged({"error": {"code": -32602}}, result=result)[0]
    assert failure.message == f"the call did not end with an error, but with: {said}"
    assert (failure.path, failure.expected, failure.actual) == ("error", {"code": -32602}, ABSENT)
    hint = "this server says with isError that a call failed; expect isError: true"
    assert failure.hint == (hint if result is FAILED else None)


SILENT: dict[str, Any] = {"resultType": "complete", "content": [{"type": "text", "text": " "}]}


@pytest.mark.parametrize(
    ("expect", "more", "told"),
    [
        ({"error": {}}, {}, "the call did not end with an error, but with: "),
        ({"isError": True}, {}, "the tool was expected to fail, but returned: "),
        ({}, {"isError": True}, "the tool failed: "),
    ],
)
def test_a_result_without_a_text_is_told_as_json(expect: Any, more: Any, told: str) -> None:
    result = {**SILENT, **more, "structuredContent": {"code": 7}}
    (failure, *_) = judged(expect, result=result)
    assert failure.message.startswith(f'{told}{{"content": [')
    assert ended({"result": result}).startswith('; the call ended with: {"content": [')
    assert str(failed({"result": {**result, "isError": True}})).startswith('the tool failed: {"content": [')
    listed = judged({"error": {}}, result={"resultType": "complete", "tools": []})[0]
    assert listed.message == 'the call did not end with an error, but with: {"tools": []}'


@pytest.mark.parametrize("error", ["boom", 5, [], {"code": None}, {}, {"message": 7}])
def test_an_error_of_no_shape_at_all_is_a_failure_too(error: Any) -> None:
    assert only(judged({}, error=error)).path == "error"
    assert judged({"error": {"code": -32602}}, error=error)


def test_an_error_that_is_not_an_object_does_not_meet_an_expected_one() -> None:
    failure = only(judged({"error": {}}, error="boom"))
    assert (failure.message, failure.actual) == ("the error is a string, not an object", "boom")


# Texts


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (
            {"content": [{"type": "text", "text": "a"}, {"type": "image", "data": ""}, {"type": "text", "text": "b"}]},
            "a\nb",
        ),
        (
            {
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": "a"}},
                    {"role": "x", "content": {"text": "b"}},
                ]
            },
            "a\nb",
        ),
        ({"messages": [{"role": "user", "content": [{"text": "a"}, {"text": "b"}]}]}, "a\nb"),
        ({"contents": [{"uri": "x", "text": "a"}, {"uri": "y", "blob": "AA=="}, {"uri": "z", "text": "b"}]}, "a\nb"),
        ({"content": []}, ""),
        ({"content": "a"}, ""),
        ({"content": ["a", None, {"text": 5}, {"text": None}, {}]}, ""),
        ({"messages": [{"content": "a"}, {"content": None}, {}, "a"]}, ""),
    ],
)
def test_the_text_of_a_tool_a_prompt_or_a_resource_is_that_of_its_blocks(result: dict[str, Any], text: str) -> None:
    assert text_of(result) == text
    assert judged({"text": text}, result=result) == []


_NAMES = st.sampled_from(["content", "messages", "contents", "text", "isError", "error", "result", "code"])
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
)


@given(_JSON)
def test_no_result_is_too_odd_to_be_judged(envelope: Any) -> None:
    expect = Expect.model_validate({"text": "x", "isError": True, "result": {}, "error": {"code": 1}})
    assert judge(expect, envelope, rounds=0, asked=[], notifications=[], snapshots=None)
    assert isinstance(judge(Expect(), envelope, rounds=0, asked=[], notifications=[], snapshots=None), list)


# Snapshots


def test_a_snapshot_is_asked_for_the_value_in_its_place() -> None:
    kept = Kept()
    expect = {"structuredContent": {"contains": {"to": {"snapshot": "who"}}}, "text": {"snapshot": "said"}}
    assert judged(expect, snapshots=kept) == []
    assert sorted(kept.asked) == [("said", "Paid."), ("who", {"name": "Ada"})]


def test_a_snapshot_that_differs_is_reported_with_the_path_to_it() -> None:
    kept = Kept(difference=Difference("name", 'expected "Eve", got "Ada"', "Eve", "Ada"))
    failure = only(judged({"structuredContent": {"contains": {"to": {"snapshot": "who"}}}}, snapshots=kept))
    assert failure.path == "structuredContent.to.name"


def test_without_snapshots_a_snapshot_cannot_be_expected() -> None:
    assert "snapshots cannot be used here" in only(judged({"text": {"snapshot": "said"}})).message


# Redaction: what is declared is not compared and not shown

SERVER = """
from typing import Any

from bespeak import MCPError, MCPServer

mcp = MCPServer("desk")


@mcp.tool()
def order() -> dict[str, Any]:
    return {"id": "id-1234", "items": [{"id": "id-5678", "cents": 5}]}


@mcp.tool()
def refuse() -> str:
    raise MCPError(-32000, "no", {"id": "id-9012"})
"""


async def run(folder: Path, redact: list[str], **test: Any) -> Result:
    (folder / f"{folder.name}_desk.py").write_text(SERVER)
    servers = {"desk": {"python": f"{folder.name}_desk.py:mcp"}}
    tests = [{"name": "one", "tool": "order", **test}]
    results: list[Result] = []

    def finished(result: Result) -> bool:
        results.append(result)
        return True

    suite = load(folder, json.dumps({"version": 1, "servers": servers, "redact": redact, "tests": tests}))
    await run_items(Runner(), items_of(suite), finished)
    return results[0]


async def test_a_value_that_is_redacted_is_compared_as_it_is(tmp_path: Path) -> None:
    redact = ["structuredContent.id", "structuredContent.items[*].id"]
    expect = {"structuredContent": {"id": "id-1234", "items": [{"id": {"matches": "^id-5"}, "cents": 5}]}}
    assert (await run(tmp_path, redact, expect=expect)).failures == []
    expect["structuredContent"]["id"] = "id-1235"
    (failure,) = (await run(tmp_path, redact, expect=expect)).failures
    assert failure.message == "structuredContent.id: is not as expected"
    assert (failure.expected, failure.actual, list(failure.diff)) == ("[redacted]", "[redacted]", [])


async def test_a_value_that_is_redacted_is_not_in_a_failure(tmp_path: Path) -> None:
    result = await run(tmp_path, ["structuredContent.id", "structuredContent.*[*].id"], expect={"structuredContent": 5})
    assert not result.passed
    assert "id-" not in json.dumps(result.as_json())


async def test_a_value_that_is_redacted_is_still_captured(tmp_path: Path) -> None:
    capture = {"id": "structuredContent.id"}
    result = await run(tmp_path, ["structuredContent.id"], capture=capture)
    assert result.passed


async def test_what_is_redacted_in_an_error_is_not_in_a_failure(tmp_path: Path) -> None:
    unexpected = await run(tmp_path, ["data.id"], tool="refuse")
    assert not unexpected.passed
    assert "id-9012" not in json.dumps(unexpected.as_json())
    expected = await run(tmp_path, ["data.id"], tool="refuse", expect={"error": {"data": {"id": "id-9012"}}})
    assert expected.failures == []
