"""Tools: registered once, listed in order, called by name."""

import logging
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict, Unpack

from bespeak.protocol.errors import MCPError
from bespeak.protocol.parameter_headers import InvalidParameterHeader, read_parameter_headers
from bespeak.resolve.reading.callables import calling_frame
from bespeak.server.auth.scopes import scope_names
from bespeak.server.calls.arguments import Arguments, UnreadablePattern, shows
from bespeak.server.features.listing_entries import listing_entry, tool_annotations
from bespeak.server.features.registered import Registered, Registering, described, failure_text, name_of
from bespeak.server.features.tool_results import NoOutputSchema, Output, error_result

if TYPE_CHECKING:
    from mcp_types import Icon, ToolAnnotations

logger = logging.getLogger("bespeak.server")
_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,128}")


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The options of a tool, besides its function."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    annotations: "ToolAnnotations | None" = None
    icons: "list[Icon] | None" = None
    meta: dict[str, Any] | None = None
    structured_output: bool | None = None
    idempotent: bool = False
    input_schema: dict[str, Any] | None = None
    scopes: Sequence[str] = ()


class MoreOptions(TypedDict, total=False):
    """The options of a tool, except its name, as keywords."""

    title: str | None
    description: str | None
    annotations: "ToolAnnotations | None"
    icons: "list[Icon] | None"
    meta: dict[str, Any] | None
    structured_output: bool | None
    idempotent: bool
    input_schema: dict[str, Any] | None
    scopes: Sequence[str]


class Tool(Registered):
    """One tool: a function, its graph of resolvers, and how its arguments and results are sent."""

    method = "tools/call"
    what = "tool"

    def __init__(self, fn: Callable[..., Any], options: ToolOptions, frame: types.FrameType | None) -> None:
        read = Registering(fn, self.what, frame)
        name = options.name or name_of(fn, read.signature, "add_tool(fn, name=...)")
        arguments = read.arguments(options.input_schema)
        output = _output(read, options.structured_output)
        _check_headers(read, arguments)
        _check_schema(read, options.input_schema)
        super().__init__(fn, name, read, arguments)
        assert output is not None, "an output that cannot be described has a fault"
        self._output = output
        self.idempotent = options.idempotent
        self.scopes = scope_names(options.scopes)
        self.parameter_headers = read_parameter_headers(self.arguments.schema)
        """The arguments that HTTP requests repeat in headers."""
        if not _NAME.fullmatch(self.name):
            logger.warning("tool name %r: use 1 to 128 of A-Z a-z 0-9 _ . -, or clients may refuse it", self.name)
        self.wire = listing_entry(
            {"name": self.name, "title": options.title, "description": described(fn, options.description)},
            options.icons,
        )
        self.wire["inputSchema"] = self.arguments.schema
        if self._output.schema is not None:
            self.wire["outputSchema"] = self._output.schema
        if options.annotations is not None:
            self.wire["annotations"] = tool_annotations(options.annotations)
        if options.meta:
            self.wire["_meta"] = options.meta

    @classmethod
    def from_function(cls, fn: Callable[..., Any], name: str | None = None, **options: Unpack[MoreOptions]) -> "Tool":
        """Return a tool to pass to `MCPServer(tools=[...])`. Takes the options of `MCPServer.tool`."""
        return cls(fn, ToolOptions(name, **options), calling_frame())

    @property
    def straight(self) -> bool:
        """Whether a call needs nothing but its arguments."""
        if self.scopes or self.parameter_headers:
            return False
        graph = self.graph
        return self.plain or (graph.straight and not graph.uses_context and not self.context_parameters)

    @property
    def ends_at_once(self) -> bool:
        """Whether a call is straight and never waits."""
        graph = self.graph
        phases = (graph.guards, graph.rest) if graph.nodes else ()
        return self.at_once and self.straight and all(phase in graph.at_once for phase in phases if phase)

    @property
    def silent(self) -> bool:
        """Whether a call has resolvers, and needs nothing but its arguments, its state and its answers."""
        if self.scopes or self.parameter_headers:
            return False
        return bool(self.graph.nodes) and not self.graph.uses_context and not self.context_parameters

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
        return failure_text(f"Error executing tool {self.name}", error, f"tool {self.name!r}")


def _output(read: Registering, structured: bool | None) -> Output | None:
    try:
        return Output(read.short_name, read.signature.returns, structured)
    except NoOutputSchema as error:
        read.fault(str(error), "annotate what it returns, or drop structured_output=True")
        return None


def _check_headers(read: Registering, arguments: Arguments | None) -> None:
    if arguments is None:
        return
    try:
        for mirror in read_parameter_headers(arguments.schema):
            others = arguments.other_names(mirror.path[0])
            if others:
                said = ", ".join(sorted(others))
                read.fault(
                    f"argument {mirror.path[0]!r} is repeated in a header, but it can also be sent as {said}",
                    "give it only one name",
                    mirror.path[0],
                )
    except InvalidParameterHeader as error:
        read.fault(str(error), "see x-mcp-header in the protocol; clients ignore a tool whose x-mcp-header is invalid")


def _check_schema(read: Registering, schema: dict[str, Any] | None) -> None:
    """A schema that is given by hand does not show what is resolved."""
    for name in read.marked:
        try:
            if shows(schema, name):
                read.fault(
                    f"the input schema shows {name!r}, which is a resolved parameter",
                    f"remove {name!r} from the schema",
                    name,
                )
        except UnreadablePattern as unreadable:
            read.fault(
                f"the input schema has the pattern {unreadable.pattern!r}, which cannot be read, so it is not known whether "
                f"it shows {name!r}, which is a resolved parameter",
                "name the properties in `properties`, or write a simpler pattern",
                name,
            )


def own_copies(tools: Iterable[object]) -> Iterator[Tool]:
    """Yield copies of tools, for a server of their own. Raises `TypeError` if an author has passed something else."""
    for tool in tools:
        if not isinstance(tool, Tool):
            raise TypeError(
                f"tools= takes Tool objects, not {type(tool).__name__}; write Tool.from_function(fn), or register functions with "
                "@mcp.tool()"
            )
        yield tool.copied()
