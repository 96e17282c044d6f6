"""Tools: registered once, listed in order, called by name."""

import inspect
import logging
import re
import types
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_types import Icon, ToolAnnotations
from mcp_types import Tool as WireTool
from typing_extensions import TypedDict, Unpack

from bespeak.protocol.errors import MCPError
from bespeak.protocol.parameter_headers import InvalidParameterHeader, read_parameter_headers
from bespeak.resolve.errors import Fault, InvalidSignature, ResolverFailed, ToolError
from bespeak.resolve.graph.checks import is_context
from bespeak.resolve.graph.compiler import compile_graph
from bespeak.resolve.graph.drawing import draw_path
from bespeak.resolve.graph.model import Graph
from bespeak.resolve.graph.replacements import Replacement
from bespeak.resolve.reading.callables import calling_frame, peel_partial
from bespeak.resolve.reading.signatures import EMPTY, Signature, read
from bespeak.resolve.reading.type_hints import arms, is_unknown, spell
from bespeak.server.calls.arguments import Arguments, UnreadablePattern, Unschemable, shows
from bespeak.server.context import Context
from bespeak.server.features.tool_results import NoOutputSchema, Output, error_result

logger = logging.getLogger("bespeak.server")
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,128}")


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The options of a tool, besides its function."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    annotations: ToolAnnotations | None = None
    icons: list[Icon] | None = None
    meta: dict[str, Any] | None = None
    structured_output: bool | None = None
    idempotent: bool = False
    input_schema: dict[str, Any] | None = None


class MoreOptions(TypedDict, total=False):
    """The options of a tool, except its name, as keywords."""

    title: str | None
    description: str | None
    annotations: ToolAnnotations | None
    icons: list[Icon] | None
    meta: dict[str, Any] | None
    structured_output: bool | None
    idempotent: bool
    input_schema: dict[str, Any] | None


class Tool:
    """One tool: a function, its graph of resolvers, and how its arguments and results are sent."""

    method = "tools/call"

    def __init__(self, fn: Callable[..., Any], options: ToolOptions, frame: types.FrameType | None) -> None:
        signature = read(fn, frame)
        self.fn = fn
        self.name = options.name or _name_of(fn, signature)
        self.idempotent = options.idempotent
        self.kind = signature.kind
        self.context_parameters = tuple(
            one.name for one in signature.parameters if not one.marker and is_context(one.hint, Context)
        )
        self._signature = signature
        self.graph, self.arguments, self._output = _compile(self, signature, options, frame)
        self._compiled = self.graph
        self.parameter_headers = read_parameter_headers(self.arguments.schema)
        """The arguments that HTTP requests repeat in headers."""
        returns = signature.returns
        self._asks_by_hand = returns is EMPTY or signature.returns_input_required or any(map(is_unknown, arms(returns)))
        self.plain = not (self.graph.nodes or self.context_parameters or self._asks_by_hand)
        """Whether a call only has to call the function."""
        if not _NAME.fullmatch(self.name):
            logger.warning("tool name %r: use 1 to 128 of A-Z a-z 0-9 _ . -, or clients may refuse it", self.name)
        described = options.description
        self.wire: dict[str, Any] = WireTool(
            name=self.name,
            title=options.title,
            description=described if described is not None else inspect.getdoc(peel_partial(fn)) or "",
            input_schema=self.arguments.schema,
            output_schema=self._output.schema,
            annotations=options.annotations,
            icons=options.icons,
        ).model_dump(mode="json", by_alias=True, exclude_none=True)
        # Author-given JSON must arrive as it is, and not lose members that happen to be null.
        self.wire["inputSchema"] = self.arguments.schema
        if options.meta:
            self.wire["_meta"] = options.meta

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: str | None = None, **options: Unpack[MoreOptions]) -> "Tool":
        """Return a tool to pass to `MCPServer(tools=[...])`. Takes the options of `MCPServer.tool`."""
        return cls(fn, ToolOptions(name, **options), calling_frame())

    @property
    def may_ask(self) -> bool:
        """Whether a call may ask something."""
        return self.graph.may_ask or self._asks_by_hand

    def result(self, value: Any) -> dict[str, Any]:
        """Return the function's return value as a wire result."""
        return self._output.result(value)

    def failure(self, error: Exception) -> dict[str, Any]:
        """Return a failed call as a result that the model can read. Raises `MCPError` for a protocol error."""
        if isinstance(error, MCPError):
            raise error
        return error_result(self.failure_text(error))

    def failure_text(self, error: Exception) -> str:
        """Return what the client may read about a failure: the author's own message, or only which tool failed."""
        prefix = f"Error executing tool {self.name}"
        if isinstance(error, ToolError):
            return f"{prefix}: {error}"
        logger.error("tool %r failed", self.name, exc_info=error)
        return f"{prefix}: {error}" if isinstance(error, ResolverFailed) else prefix

    def has_resolver(self, who: Hashable) -> bool:
        """Return whether a function is one of its resolvers, as registered or with the overrides that are open."""
        return who in self._compiled.identities or who in self.graph.identities

    def overridden(self, overrides: Mapping[Hashable, Replacement], frame: types.FrameType | None) -> Graph:
        """Return the graph with some resolvers replaced. Raises `InvalidSignature` if a replacement does not fit."""
        if not any(who in self._compiled.identities for who in overrides):
            return self._compiled
        return compile_graph(
            self._signature, context_type=Context, frame=frame, overrides=overrides, like=self._compiled
        )


def _name_of(fn: Callable[..., Any], signature: Signature) -> str:
    name: str = getattr(peel_partial(fn), "__name__", signature.name)
    if name == "<lambda>":
        raise ValueError("a lambda has no name; pass one: add_tool(fn, name=...)")
    return name


def _compile(
    tool: Tool,
    signature: Signature,
    options: ToolOptions,
    frame: types.FrameType | None,
) -> tuple[Graph, Arguments, Output]:
    """Return everything that is decided at registration. Raises one error with all faults of the tool."""
    faults: list[Fault] = []
    graph: Graph | None = None
    arguments: Arguments | None = None
    output: Output | None = None

    def fault(problem: str, fix: str, *below: str) -> None:
        drawing = draw_path((f"{signature.name}   {signature.place}", *below))
        faults.append(Fault(problem, fix, signature.place, drawing))

    if signature.kind.is_generator:
        fault(f"{signature.name} is a generator, but a tool must return its result", "return instead of yielding")
    if signature.question_arms:
        fault(
            f"{signature.name} returns {spell(signature.question_arms[0])}, which only a resolver may return",
            "ask in a resolver, and take the answer as a parameter: Annotated[..., Resolve(ask)]",
        )
    if signature.parameters and signature.parameters[0].name in ("self", "cls") and signature.parameters[0].hint is Any:
        name = signature.parameters[0].name
        fault(
            f"parameter {name!r} would become an argument of the tool",
            "register the bound method of an object: mcp.add_tool(thing.method)",
            name,
        )
    try:
        graph = compile_graph(signature, context_type=Context, frame=frame)
    except InvalidSignature as invalid:
        faults.extend(invalid.faults)
    told = {defect.parameter for defect in signature.defects}
    plain = [
        one
        for one in signature.parameters
        if not (one.marker or one.by_position or one.exposed or one.name in told or one.name in tool.context_parameters)
    ]
    try:
        arguments = Arguments(signature.name.rpartition(".")[2], plain, options.input_schema)
    except Unschemable as error:
        for name, problem in error.problems.items():
            fault(problem, "use a type that JSON can represent, or fill it with Resolve(fn)", name)
    try:
        output = Output(signature.name.rpartition(".")[2], signature.returns, options.structured_output)
    except NoOutputSchema as error:
        fault(str(error), "annotate what it returns, or drop structured_output=True")
    try:
        for mirror in read_parameter_headers(arguments.schema if arguments else {}):
            others = arguments.other_names(mirror.path[0]) if arguments else set[str]()
            if others:
                said = ", ".join(sorted(others))
                fault(
                    f"argument {mirror.path[0]!r} is repeated in a header, but it can also be sent as {said}",
                    "give it only one name",
                    mirror.path[0],
                )
    except InvalidParameterHeader as error:
        fault(str(error), "see x-mcp-header in the protocol; clients ignore a tool whose x-mcp-header is invalid")
    marked = {one.name for one in signature.parameters if one.marker}
    for name in sorted(marked):
        try:
            if shows(options.input_schema, name):
                problem = f"the input schema shows {name!r}, which is a resolved parameter"
                fault(problem, f"remove {name!r} from the schema", name)
        except UnreadablePattern as unreadable:
            fault(
                f"the input schema has the pattern {unreadable.pattern!r}, which cannot be read, so it is not known whether "
                f"it shows {name!r}, which is a resolved parameter",
                "name the properties in `properties`, or write a simpler pattern",
                name,
            )
    for name in sorted(marked & (arguments.wire_names if arguments else set())):
        problem = f"an argument can be sent as {name!r}, which is a resolved parameter"
        fault(problem, f"give it an alias other than {name!r}", name)
    if faults or graph is None or arguments is None or output is None:
        raise InvalidSignature(tool.name, tuple(faults))
    return graph, arguments, output


class ToolRegistry:
    """The tools of a server, in the order they were registered."""

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}

    def add(self, tool: Tool) -> None:
        if tool.name in self._tools:
            raise ValueError(
                f"tool {tool.name!r} is already registered; call remove_tool({tool.name!r}) first, or rename one"
            )
        self._tools[tool.name] = tool

    def remove(self, name: str) -> None:
        if name not in self._tools:
            raise ToolError(f"there is no tool {name!r} to remove")
        del self._tools[name]

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def all(self) -> list[Tool]:
        return list(self._tools.values())


def wire_tool(tool: Tool) -> WireTool:
    """Return a tool as `tools/list` shows it."""
    return WireTool.model_validate(tool.wire)
