"""Raw `tools/call` requests of a modern client, and what they give back."""

from typing import Any

from bespeak import Client, MCPServer
from bespeak.protocol.question_keys import bare_name
from tests.conftest import Connect

ABSENT: Any = object()


async def nobody(context: Any, params: Any) -> Any:
    raise AssertionError("nobody is asked by callback here")


def opened(connect: Connect, mcp: MCPServer) -> Client:
    return connect(mcp, elicitation_callback=nobody, sampling_callback=nobody)


async def send(client: Client, name: str, answers: Any = ABSENT, state: str | None = None) -> dict[str, Any]:
    """One raw `tools/call`."""
    params: dict[str, Any] = {"name": name, "arguments": {}}
    if answers is not ABSENT:
        params["inputResponses"] = answers
    if state is not None:
        params["requestState"] = state
    return await client.session.request("tools/call", params)


async def answer(client: Client, name: str, answers: Any) -> dict[str, Any]:
    """Start a call and send raw answers to its first questions."""
    asked = await send(client, name)
    assert asked["resultType"] == "input_required"
    return await send(client, name, answers, asked["requestState"])


def accept(**content: Any) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def said(result: dict[str, Any]) -> str:
    assert result["resultType"] == "complete", result
    return result["content"][0]["text"]


def failed(result: dict[str, Any]) -> str:
    assert result.get("isError"), result
    return said(result)


def asked(result: dict[str, Any]) -> list[str]:
    assert result["resultType"] == "input_required", result
    return [bare_name(key) for key in result["inputRequests"]]


def message(result: dict[str, Any], key: str) -> str:
    (question,) = [one for full, one in result["inputRequests"].items() if bare_name(full) == key]
    return question["params"]["message"]
