"""A sprint board: tools, prompts, resources and completion, with a lifespan and a context.

It is written like the examples in the documentation of the official SDK, and runs there when only its imports are changed.
"""

import base64
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated

from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    EmbeddedResource,
    PromptReference,
    ResourceTemplateReference,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from bespeak import (
    AssistantMessage,
    Context,
    Image,
    MCPServer,
    Message,
    ResourceNotFoundError,
    ToolError,
    UserMessage,
)

PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")
ETIQUETTE = "# Etiquette\n\nOne task at a time."


def new_boards() -> dict[str, dict[str, bool]]:
    return {
        "sprint": {"design": False, "build": False, "ship": False},
        "backlog": {"tidy docs": False},
    }


@dataclass
class Office:
    """What all calls share."""

    boards: dict[str, dict[str, bool]] = field(default_factory=new_boards)
    open: bool = True


class Progress(BaseModel):
    """How far a board is."""

    board: str
    done: int
    tasks: int


office = Office()


@asynccontextmanager
async def lifespan(server: MCPServer) -> AsyncGenerator[Office]:
    try:
        yield office
    finally:
        office.open = False


mcp = MCPServer("Sprint Board", version="1.0.0", instructions="Read a board before you change it.", lifespan=lifespan)


# Tools


@mcp.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@mcp.tool(title="Progress of a board")
def progress(board: Annotated[str, Field(description="Which board.")], ctx: Context[Office]) -> Progress:
    """How many tasks of a board are done."""
    tasks = ctx.request_context.lifespan_context.boards[board]
    return Progress(board=board, done=sum(tasks.values()), tasks=len(tasks))


@mcp.tool()
async def complete_tasks(board: str, tasks: list[str], ctx: Context[Office]) -> str:
    """Mark tasks as done."""
    boards = ctx.request_context.lifespan_context.boards
    for count, task in enumerate(tasks, start=1):
        if task not in boards[board]:
            raise ToolError(f"{board} has no task {task!r}")
        boards[board][task] = True
        await ctx.info(f"{task} is done")
        await ctx.report_progress(count, total=len(tasks), message=f"Marked {task}")
    await ctx.notify_resource_updated(f"board://{board}")
    return f"{len(tasks)} done"


@mcp.tool()
async def describe_teams(ctx: Context) -> str:
    """Describe how the boards are organised."""
    [contents] = await ctx.read_resource("teams://all")
    return f"There are these teams: {contents.content}"


@mcp.tool()
def badge() -> Image:
    """A picture of one pixel."""
    return Image(data=PIXEL, format="gif")


def report() -> str:
    """Count the tasks that are done on all boards."""
    return f"{sum(sum(tasks.values()) for tasks in office.boards.values())} done"


@mcp.tool()
async def enable_report(ctx: Context) -> str:
    """Offer one more tool."""
    mcp.add_tool(report)
    await ctx.notify_tools_changed()
    return "reports are available"


# Resources


@mcp.resource("teams://all")
def teams() -> str:
    """The teams that have a board."""
    return "sprint, backlog"


@mcp.resource("stats://tasks", title="Task counts", mime_type="application/json")
def stats() -> dict[str, int]:
    """The number of tasks of each board."""
    return {name: len(tasks) for name, tasks in office.boards.items()}


@mcp.resource("pixels://one", mime_type="image/gif")
def pixel() -> bytes:
    """One transparent pixel."""
    return PIXEL


@mcp.resource("board://{name}")
def board(name: str) -> str:
    """The tasks of a board."""
    if name not in office.boards:
        raise ResourceNotFoundError(f"There is no board {name!r}.")
    return "\n".join(f"[{'x' if done else ' '}] {task}" for task, done in office.boards[name].items())


@mcp.resource("task://{board}/{number}{?style}", mime_type="text/markdown")
async def task_of(board: str, number: int, ctx: Context[Office], style: str = "plain") -> str:
    """One task of a board, by its number."""
    task = list(ctx.request_context.lifespan_context.boards[board])[number]
    return f"**{task}**" if style == "bold" else task


@mcp.resource("manual://{+path}")
def manual(path: str) -> str:
    """A page of the manual. The path keeps its slashes."""
    return f"The page {path}."


# Prompts


@mcp.prompt()
def review(code: str) -> str:
    """Review a piece of code."""
    return f"Please review this code:\n\n{code}"


@mcp.prompt(title="Stand-up")
def stand_up(
    board: Annotated[str, Field(description="The board to talk about.")],
    task: Annotated[str, Field(description="The task to begin with.")] = "design",
) -> list[Message]:
    """Begin a stand-up."""
    return [
        UserMessage(f"Let us talk about {board}."),
        AssistantMessage("What is the first task?"),
        UserMessage(task),
    ]


@mcp.prompt()
async def with_etiquette(ctx: Context) -> list[Message]:
    """Talk about the etiquette."""
    page = TextResourceContents(uri="manual://etiquette", mime_type="text/markdown", text=ETIQUETTE)
    [contents] = await ctx.read_resource("teams://all")
    return [
        UserMessage(EmbeddedResource(resource=page)),
        UserMessage(f"What does it mean for {contents.content}?"),
    ]


# Completion


@mcp.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> Completion | None:
    if isinstance(ref, ResourceTemplateReference) and argument.name == "name":
        return Completion(values=[name for name in office.boards if name.startswith(argument.value)])
    if isinstance(ref, PromptReference) and argument.name == "task":
        if context is None or context.arguments is None:
            return None
        tasks = office.boards.get(context.arguments.get("board", ""), {})
        return Completion(values=[task for task in tasks if task.startswith(argument.value)], has_more=False)
    return None


if __name__ == "__main__":
    mcp.run()
