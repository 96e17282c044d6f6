"""A server whose one tool asks by hand, and questions made by hand."""

from typing import Any

from mcp_types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    SamplingMessage,
    TextContent,
)

from bespeak import Client, Context, MCPServer

Sent = dict[str, Any]


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def form(message: str = "Who?") -> ElicitRequest:
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=SCHEMA))


def url() -> ElicitRequest:
    params = ElicitRequestURLParams(message="Sign in", url="https://example.com", elicitation_id="e-1")
    return ElicitRequest(params=params)


def sampling(**options: Any) -> CreateMessageRequest:
    hello = SamplingMessage(role="user", content=TextContent(text="Hello"))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[hello], max_tokens=5, **options))


def asks(state: str | None = None, **questions: InputRequest) -> InputRequiredResult:
    return InputRequiredResult(input_requests=questions or None, request_state=state)


def named(name: str) -> Sent:
    return {"who": {"action": "accept", "content": {"name": name}}}


async def request(client: Client, **retry: Any) -> Sent:
    return await client.session.request("tools/call", {"name": "greet", "arguments": {}, **retry})


def said(result: Sent) -> str:
    assert result["resultType"] == "complete", result
    (block,) = result["content"]
    return block["text"]


class Desk:
    """A server whose one tool asks by hand, and notes what it is given in every run."""

    def __init__(self, state: str | None = "my state", **options: Any) -> None:
        self.mcp = MCPServer[Any]("desk", **options)
        self.seen: list[tuple[str | None, Any]] = []
        self.ids: list[tuple[str, int]] = []

        @self.mcp.tool()
        async def greet(ctx: Context) -> str | InputRequiredResult:
            self.seen.append((ctx.request_state, ctx.input_responses))
            self.ids.append((ctx.call_id, ctx.round))
            answer = (ctx.input_responses or {}).get("who")
            if answer is None:
                return asks(state, who=form())
            assert isinstance(answer, ElicitResult)
            return f"Hello {(answer.content or {})['name']}" if answer.action == "accept" else "Hello anyway"
