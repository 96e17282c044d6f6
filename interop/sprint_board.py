"""The sprint board as a client must find it: its tools, prompts, resources and completions, and what it tells of changes.

Knows no SDK, like `checks`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mcp_types import (
    BlobResourceContents,
    EmbeddedResource,
    GetPromptResult,
    ImageContent,
    PromptReference,
    ResourceTemplateReference,
    TextContent,
    TextResourceContents,
    Tool,
)

from interop.checks import MODERN, NO_ANSWER, Connect, Desk, Expected, at_revision, equal, error_of, text

BOARD = "board://sprint"
PIXEL = "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
NOT_FOUND = (-32602, -32002)
"""The code of 2026-07-28, and the one before."""
METHOD_NOT_FOUND = -32601
HEAR_SECONDS = 10.0

TOOLS = ["add", "progress", "complete_tasks", "describe_teams", "badge", "enable_report"]
PROMPTS = {
    "review": [("code", True)],
    "stand_up": [("board", True), ("task", False)],
    "with_etiquette": [],
}
RESOURCES = ["teams://all", "stats://tasks", "pixels://one"]
TEMPLATES = ["board://{name}", "task://{board}/{number}{?style}", "manual://{+path}"]
TEXTS = {
    "teams://all": ("text/plain", "sprint, backlog"),
    "stats://tasks": ("application/json", '{\n  "sprint": 3,\n  "backlog": 1\n}'),
    "board://backlog": ("text/plain", "[ ] tidy docs"),
    "task://sprint/1?style=bold": ("text/markdown", "**build**"),
    "manual://setup/first.md": ("text/plain", "The page setup/first.md."),
}
WITHOUT_QUERY = {"task://sprint/1": ("text/markdown", "build")}
"""`{?style}` may be left out. The templates of the TypeScript SDKs do not match then."""


class Ears:
    """What a client hears beside its results."""

    def __init__(self) -> None:
        self.logged: list[tuple[str, Any]] = []
        self.progress: list[tuple[float, float | None, str | None]] = []
        self.updated: asyncio.Queue[str] = asyncio.Queue()

    async def logging(self, params: Any) -> None:
        self.logged.append((params.level, params.data))

    async def on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.progress.append((progress, total, message))

    async def on_message(self, message: Any) -> None:
        """Take a notification: one SDK passes the JSON, the other an object."""
        known: Any = message.model_dump(mode="json") if hasattr(message, "model_dump") else message
        if known["method"] == "notifications/resources/updated":
            self.updated.put_nowait(known["params"]["uri"])


async def check(connect: Connect, refusal: type[Exception], expected: Expected) -> None:
    """Go through all of it, saying what held. Raises `AssertionError` at the first thing that does not."""
    ears = Ears()
    options = {"logging_callback": ears.logging, "log_level": "info", "message_handler": ears.on_message}
    async with at_revision(connect, expected.revision)(None, **options) as board:
        checks: dict[str, Callable[[], Awaitable[None]]] = {
            "lists": lambda: lists(board, expected),
            "results of tools": lambda: results_of_tools(board, expected),
            "contents of resources": lambda: contents_of_resources(board, refusal, expected),
            "messages of prompts": lambda: messages_of_prompts(board, refusal),
            "completions": lambda: completions(board),
            "changes": lambda: changes(board, ears, refusal, expected),
        }
        for what, checking in checks.items():
            await checking()
            print(what, flush=True)


async def lists(board: Desk, expected: Expected) -> None:
    tools = (await board.list_tools()).tools
    equal([one.name for one in tools], TOOLS)
    prompts = (await board.list_prompts()).prompts
    found = {one.name: [(two.name, bool(two.required)) for two in one.arguments or []] for one in prompts}
    equal(found, PROMPTS)
    equal([one.title for one in prompts], [None, "Stand-up", None])
    resources = (await board.list_resources()).resources
    equal([str(one.uri) for one in resources], RESOURCES)
    equal([one.name for one in resources], ["teams", "stats", "pixel"])
    equal([one.mime_type for one in resources][1:], ["application/json", "image/gif"])
    templates = (await board.list_resource_templates()).resource_templates
    equal([one.uri_template for one in templates], TEMPLATES)
    if expected.same_program:
        described(tools)
        equal(
            [one.description for one in prompts],
            ["Review a piece of code.", "Begin a stand-up.", "Talk about the etiquette."],
        )
        equal(
            [one.description for one in prompts[1].arguments or []],
            ["The board to talk about.", "The task to begin with."],
        )
        equal(resources[0].description, "The teams that have a board.")
        equal(templates[0].description, "The tasks of a board.")


def described(tools: list[Tool]) -> None:
    """Check the schemas that are made from a function."""
    add, progress = tools[:2]
    equal(
        add.input_schema,
        {
            "type": "object",
            "properties": {
                "a": {"title": "A", "type": "integer"},
                "b": {"title": "B", "type": "integer", "default": 1},
            },
            "required": ["a"],
            "title": "addArguments",
        },
    )
    equal((progress.title, progress.description), ("Progress of a board", "How many tasks of a board are done."))
    equal(
        progress.input_schema["properties"],
        {"board": {"title": "Board", "type": "string", "description": "Which board."}},
    )
    assert progress.output_schema is not None, "a model is structured output"
    equal(set(progress.output_schema["properties"]), {"board", "done", "tasks"})


async def results_of_tools(board: Desk, expected: Expected) -> None:
    added = await board.call_tool("add", {"a": 2})
    equal((text(added), added.structured_content), ("3", {"result": 3}))
    progress = await board.call_tool("progress", {"board": "sprint"})
    equal(progress.structured_content, {"board": "sprint", "done": 0, "tasks": 3})
    equal(text(await board.call_tool("describe_teams", {})), "There are these teams: sprint, backlog")
    (picture,) = (await board.call_tool("badge", {})).content
    assert isinstance(picture, ImageContent), f"not a picture: {picture!r}"
    equal((picture.mime_type, picture.data), ("image/gif", PIXEL))
    failed = await board.call_tool("complete_tasks", {"board": "sprint", "tasks": ["sing"]})
    assert failed.is_error, f"expected an error, found {failed!r}"
    invalid = await board.call_tool("add", {"a": "two"})
    assert invalid.is_error, f"expected an error, found {invalid!r}"
    if expected.same_program:
        equal(text(failed), "Error executing tool complete_tasks: sprint has no task 'sing'")


async def contents_of_resources(board: Desk, refusal: type[Exception], expected: Expected) -> None:
    texts = {**TEXTS, **(WITHOUT_QUERY if expected.same_program else {})}
    for uri, (mime_type, content) in texts.items():
        (one,) = (await board.read_resource(uri)).contents
        assert isinstance(one, TextResourceContents), f"not a text: {one!r}"
        equal((str(one.uri), one.mime_type, one.text), (uri, mime_type, content))
    (pixel,) = (await board.read_resource("pixels://one")).contents
    assert isinstance(pixel, BlobResourceContents), f"not binary: {pixel!r}"
    equal((pixel.mime_type, pixel.blob), ("image/gif", PIXEL))
    for uri in ("board://kitchen", "nowhere://all", "manual://../secret"):
        error = await error_of(board.read_resource(uri), refusal)
        assert error is not None, f"{uri} was read"
        assert error.code in NOT_FOUND, f"expected one of {NOT_FOUND}, found {error!r}"


async def messages_of_prompts(board: Desk, refusal: type[Exception]) -> None:
    equal(messages(await board.get_prompt("review", {"code": "1"})), [("user", "Please review this code:\n\n1")])
    stand_up = [("user", "Let us talk about sprint."), ("assistant", "What is the first task?")]
    equal(messages(await board.get_prompt("stand_up", {"board": "sprint"})), [*stand_up, ("user", "design")])
    told = {"board": "sprint", "task": "ship"}
    equal(messages(await board.get_prompt("stand_up", told)), [*stand_up, ("user", "ship")])
    etiquette = await board.get_prompt("with_etiquette")
    embedded = etiquette.messages[0].content
    assert isinstance(embedded, EmbeddedResource), f"not an embedded resource: {embedded!r}"
    assert isinstance(embedded.resource, TextResourceContents), f"not a text: {embedded!r}"
    equal(embedded.resource.text, "# Etiquette\n\nOne task at a time.")
    equal(messages(etiquette)[1:], [("user", "What does it mean for sprint, backlog?")])
    for name in ("review", "nothing"):  # an argument is missing, and a prompt that does not exist
        error = await error_of(board.get_prompt(name), refusal)
        assert error is not None, f"the prompt {name} was rendered"
        assert error.code not in NO_ANSWER, f"not refused, but {error!r}"


def messages(result: GetPromptResult) -> list[tuple[str, str | None]]:
    """The role and the text of each message."""
    return [(one.role, one.content.text if isinstance(one.content, TextContent) else None) for one in result.messages]


async def completions(board: Desk) -> None:
    template = ResourceTemplateReference(uri="board://{name}")
    completed = await board.complete(template, {"name": "name", "value": "s"})
    equal(completed.completion.values, ["sprint"])
    prompt = PromptReference(name="stand_up")
    task = {"name": "task", "value": "b"}
    equal((await board.complete(prompt, task, {"board": "sprint"})).completion.values, ["build"])
    equal((await board.complete(prompt, task)).completion.values, [])
    equal((await board.complete(prompt, {"name": "board", "value": "s"})).completion.values, [])


async def changes(board: Desk, ears: Ears, refusal: type[Exception], expected: Expected) -> None:
    """Complete two tasks, and hear of it; then have one more tool."""
    if not expected.subscriptions:
        error = await error_of(board.subscribe_resource(BOARD), refusal)
        assert error is not None, "a server that was said not to have subscriptions has them"
        equal(error.code, METHOD_NOT_FOUND)
        await complete_tasks(board, ears)
    elif expected.revision == MODERN:
        async with board.listen(tools_list_changed=True, resource_subscriptions=[BOARD]) as heard:
            await complete_tasks(board, ears)
            equal(type(await soon(anext(heard))).__name__, "ResourceUpdated")  # each SDK has classes of its own
            await board.call_tool("enable_report", {})
            equal(type(await soon(anext(heard))).__name__, "ToolsListChanged")
    else:
        await board.subscribe_resource(BOARD)
        await complete_tasks(board, ears)
        equal(await soon(ears.updated.get()), BOARD)
        await board.unsubscribe_resource(BOARD)
    if expected.revision != MODERN or not expected.subscriptions:
        await board.call_tool("enable_report", {})
    (contents,) = (await board.read_resource(BOARD)).contents
    assert isinstance(contents, TextResourceContents), f"not a text: {contents!r}"
    equal(contents.text, "[x] design\n[x] build\n[ ] ship")
    equal([one.name for one in (await board.list_tools()).tools], [*TOOLS, "report"])
    equal(text(await board.call_tool("report", {})), "2 done")


async def complete_tasks(board: Desk, ears: Ears) -> None:
    given = {"board": "sprint", "tasks": ["design", "build"]}
    result = await board.call_tool("complete_tasks", given, progress_callback=ears.on_progress)
    equal(text(result), "2 done")
    equal(ears.progress, [(1, 2, "Marked design"), (2, 2, "Marked build")])
    equal(ears.logged, [("info", "design is done"), ("info", "build is done")])


async def soon(awaitable: Awaitable[Any]) -> Any:
    async with asyncio.timeout(HEAR_SECONDS):
        return await awaitable
