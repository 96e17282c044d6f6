"""Responses as they came, read strictly: members that are there twice, ids, versions, and what is not JSON."""

import json
import time
from typing import Any

import pytest

from bespeak.conversation.protocol_rules import Finding
from bespeak.conversation.strict_reading import read_strictly


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ('"result": {}, "result": {}', "'result'"),
        ('"result": {"more": {"city": 1, "city": 2}}', "'city'"),
        ('"result": {"content": [[{"a": {"b": 1, "b": 1}}]]}', "'b'"),
        ('"error": {"code": 1, "code": 2}', "'code'"),
    ],
)
def test_a_member_that_is_there_twice_is_found_wherever_it_is(members: str, shown: str) -> None:
    _, findings = read_strictly(f'{{"jsonrpc": "2.0", "id": 1, {members}}}'.encode(), 1)
    text = f"the response has the member {shown} twice in one object"
    assert findings == [Finding("duplicate-member", text)]


def test_a_question_that_has_the_key_of_another_is_found() -> None:
    asked = b'{"jsonrpc": "2.0", "id": 1, "result": {"inputRequests": {"city": 1, "city": 2}}}'
    _, findings = read_strictly(asked, 1)
    assert findings == [Finding("duplicate-key", "the result has two questions with the key 'city'")]


@pytest.mark.timing
def test_a_duplicate_among_many_members_is_found_at_once() -> None:
    many = ",".join(f'"k{number}":1' for number in range(15_000))
    began = time.process_time()
    _, findings = read_strictly(f'{{"jsonrpc":"2.0","id":1,"result":{{{many},"k14999":2}}}}'.encode(), 1)
    assert [finding.rule for finding in findings] == ["duplicate-member"]
    assert time.process_time() - began < 5


@pytest.mark.parametrize("id_", [2, "1", 0, True, None, [1]])
def test_a_response_with_another_id_is_found(id_: Any) -> None:
    envelope, findings = read_strictly(json.dumps({"jsonrpc": "2.0", "id": id_, "result": {}}).encode(), 1)
    assert envelope["id"] == id_
    assert [str(finding).partition(" (")[0] for finding in findings] == [
        f"the response has the id {json.dumps(id_)}, which is not the id of its request"
    ]
    assert findings[0].rule == "envelope"


def test_an_error_about_a_request_that_could_not_be_read_needs_no_id() -> None:
    assert read_strictly(b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "x"}}', 1)[1] == []


@pytest.mark.parametrize("version", ['"jsonrpc": "1.0", ', '"jsonrpc": 2.0, ', ""])
def test_a_response_that_is_not_of_json_rpc_two_is_found(version: str) -> None:
    _, findings = read_strictly(f'{{{version}"id": 1, "result": {{}}}}'.encode(), 1)
    assert findings == [Finding("envelope", "the response does not contain jsonrpc: 2.0")]


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"{",
        b"\xff\xfe\xfd",
        b"[" * 100_000,
        b'{"jsonrpc": "2.0", "id": 1, "result": {"x": NaN}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {"x": -Infinity}}',
    ],
    ids=["empty", "cut", "no text", "too deep", "NaN", "Infinity"],
)
def test_a_response_that_is_not_json_is_found(response: bytes) -> None:
    _, findings = read_strictly(response, 1)
    assert findings == [Finding("envelope", "the response is not valid JSON")]
