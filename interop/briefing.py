"""A prompt and a resource template that ask by hand, for clients of 2026-07-28: two questions, the second about the first answer.

It runs on the official SDK when only its imports are changed. There, resolvers are for tools only, and prompts and templates
can ask in no other way.
"""

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult

from bespeak import Context, MCPServer

mcp = MCPServer("Briefing", version="1.0.0")


@mcp.prompt()
async def briefing(topic: str, ctx: Context) -> str | InputRequiredResult:
    """Write a briefing."""
    return _ask(ctx) or f"Write a {_answer(ctx, 'tone')} briefing on {topic} for {ctx.request_state}."


@mcp.resource("briefing://{topic}")
async def written(topic: str, ctx: Context) -> str | InputRequiredResult:
    """A briefing that was written before."""
    return _ask(ctx) or f"The {_answer(ctx, 'tone')} briefing on {topic} for {ctx.request_state}."


def _ask(ctx: Context) -> InputRequiredResult | None:
    """The next question; `None` when both are answered. The first answer travels in the state."""
    if ctx.request_state is not None:
        return None
    audience = _answer(ctx, "audience")
    if audience is None:
        return _question("audience", "Who is the briefing for?")
    return _question("tone", f"Which tone do {audience} like?", audience)


def _question(field: str, message: str, state: str | None = None) -> InputRequiredResult:
    schema = {"type": "object", "properties": {field: {"type": "string"}}, "required": [field]}
    form = ElicitRequestFormParams(message=message, requested_schema=schema)
    return InputRequiredResult(input_requests={field: ElicitRequest(params=form)}, request_state=state)


def _answer(ctx: Context, field: str) -> str | None:
    answer = (ctx.input_responses or {}).get(field)
    return str(answer.content[field]) if isinstance(answer, ElicitResult) and answer.content else None
