"""Reading responses: results, errors, what counts as asking, and what the protocol does not allow."""

from typing import Any

import pytest

from bespeak import Client, MCPError
from bespeak.client import InvalidServerResponse
from tests.answering import text
from tests.client.sample_questions import FORM, say_yes
from tests.client.scripted_transport import COMPLETE, Fake, Wire, asking, listing


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "is not JSON"),
        (b"\xff", "is not JSON"),
        (b"[]", "is not an object"),
        (b"{}", "instead of 2"),
        (b'{"jsonrpc": "2.0", "id": 99, "result": {}}', "responded to request 99 instead of 2"),
        (b'{"jsonrpc": "2.0", "id": "2", "result": {}}', "responded to request '2' instead of 2"),
        (b'{"jsonrpc": "2.0", "id": null, "result": {}}', "instead of 2"),
        (b'{"jsonrpc": "2.0", "id": 2}', "has no result"),
        (b'{"jsonrpc": "2.0", "id": 99, "error": {"code": 1, "message": "x"}}', "responded to request 99 instead of 2"),
        (b'{"jsonrpc": "2.0", "id": 2, "result": []}', "has no result"),
        (b'{"jsonrpc": "2.0", "id": 2, "error": "no"}', "has no result"),
    ],
)
async def test_a_response_the_protocol_does_not_allow_is_an_error_of_its_own(raw: bytes, told: str) -> None:
    async with Client(Fake(raw)) as client:
        with pytest.raises(InvalidServerResponse, match=told):
            await client.call_tool("tool")


@pytest.mark.parametrize("id_", ["", ', "id": null', ', "id": 2'])
async def test_the_server_s_error_is_raised_as_it_is(id_: str) -> None:
    # an error may omit the id if the server could not read it; some peers send null
    raw = f'{{"jsonrpc": "2.0"{id_}, "error": {{"code": -32602, "message": "no", "data": {{"a": 1}}}}}}'.encode()
    async with Client(Fake(raw)) as client:
        with pytest.raises(MCPError, match=r"^no$") as caught:
            await client.call_tool("tool")
    assert (caught.value.code, caught.value.data) == (-32602, {"a": 1})


@pytest.mark.parametrize(
    "result",
    [
        {"resultType": "complete"},
        {"resultType": "complete", "content": [{"type": "nonsense"}]},
        {"content": [], "isError": "perhaps"},
    ],
)
async def test_a_malformed_tool_result_is_an_error_that_says_where(result: dict[str, Any]) -> None:
    async with Client(Fake(result)) as client:
        with pytest.raises(InvalidServerResponse, match=r"the server's CallToolResult is malformed: see \w+"):
            await client.call_tool("tool")


@pytest.mark.parametrize("tools", [5, [5], [{"name": 1}], [{"name": "x", "inputSchema": 5}]])
@pytest.mark.parametrize("transport", [Fake, Wire])
async def test_a_malformed_list_of_tools_is_an_error_that_says_where(transport: type[Fake], tools: Any) -> None:
    async with Client(transport({**listing(), "tools": tools})) as client:
        with pytest.raises(InvalidServerResponse, match=r"the server's ListToolsResult is malformed: see tools"):
            await client.list_tools()


# Results that require input


@pytest.mark.parametrize("result", [COMPLETE, {"content": COMPLETE["content"]}])
async def test_a_result_without_a_type_or_a_complete_one_is_complete_even_with_questions(
    result: dict[str, Any],
) -> None:
    fake = Fake({**result, "inputRequests": {"q": FORM}, "requestState": "s"})
    async with Client(fake, elicitation_callback=say_yes) as client:
        assert text(await client.call_tool("tool")) == "done"
    assert len(fake.requests) == 1


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ({**COMPLETE, "resultType": "task"}, "unknown resultType 'task'"),
        ({**COMPLETE, "resultType": None}, "unknown resultType None"),
        ({**asking(), "content": []}, "has neither inputRequests nor requestState"),
        ({**asking(), "inputRequests": [FORM]}, "inputRequests is not an object"),
        ({**asking({"q": FORM}), "requestState": None}, "requestState is not a string"),
        (asking({"q": "Sure?"}), "the question 'q' is not an object"),
        (asking({"q": {}}), "the question 'q' has the method None, which is not a method for questions"),
        (asking({"q": {**FORM, "method": "tools/call"}}), "has the method 'tools/call'"),
        (asking({"q": {**FORM, "method": ["elicitation/create"]}}), "which is not a method for questions"),
        (asking({"q": {**FORM, "params": []}}), "the params of the question 'q' are not an object"),
        (asking({"a": FORM, "q": {"method": "elicitation/create"}}), "the params of the question 'q' are not valid"),
        (asking({"q": {**FORM, "params": {"message": "Sure?"}}}), "are not valid ElicitRequestFormParams"),
        (asking({"q": {**FORM, "params": {**FORM["params"], "mode": "odd"}}}), "are not valid ElicitRequestFormParams"),
    ],
)
async def test_a_malformed_round_is_an_error_and_nothing_is_sent_again(result: dict[str, Any], told: str) -> None:
    fake = Fake(result)
    async with Client(fake, elicitation_callback=say_yes) as client:
        with pytest.raises(InvalidServerResponse, match=told):
            await client.call_tool("tool")
    assert len(fake.requests) == 1
