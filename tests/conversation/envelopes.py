"""Responses of servers that ask, in both dialects, and the questions in them."""

from typing import Any

from bespeak.conversation.responses import Question

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
TEXT: dict[str, Any] = {"type": "string"}
TOKEN = "opaque-token-abc-123"
COMPLETE: dict[str, Any] = {"resultType": "complete", "content": [{"type": "text", "text": "done"}], "isError": False}


def enveloped(result: Any, id_: int = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": result}


DONE = enveloped(COMPLETE)
FAILED: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "invalid requestState"}}


# The MCP shape


def form(message: str = "Which city?", required: Any = ("city",), **fields: Any) -> dict[str, Any]:
    """A form with these fields; with one for a city if none are given."""
    schema = {"type": "object", "properties": fields or {"city": TEXT}}
    schema |= {"required": list(required)} if required else {}
    return {"method": ELICIT, "params": {"mode": "form", "message": message, "requestedSchema": schema}}


PAGE: dict[str, Any] = {
    "method": ELICIT,
    "params": {"mode": "url", "message": "Log in", "url": "https://login.example/"},
}
MODEL: dict[str, Any] = {
    "method": SAMPLE,
    "params": {"messages": [{"role": "user", "content": {"type": "text", "text": "A city?"}}], "maxTokens": 20},
}
FOLDERS: dict[str, Any] = {"method": ROOTS}


def asking(requests: Any = None, **members: Any) -> dict[str, Any]:
    """A response in the MCP shape; without requests it has no such member."""
    asked = {} if requests is None else {"inputRequests": requests}
    return enveloped({"resultType": "input_required", **asked, **members})


def question(request: dict[str, Any], key: str = "city") -> Question:
    return Question(key, request["method"], request.get("params", {}))


# The compatibility dialect


def field(id_: str = "city", **members: Any) -> dict[str, Any]:
    return {"id": id_, "kind": "string", "description": "What city?", **members}


def listing(*fields: Any, state: Any = TOKEN, **members: Any) -> dict[str, Any]:
    """A response with an array of fields."""
    return enveloped({"inputRequests": list(fields), "requestState": state, **members})
