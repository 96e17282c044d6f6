"""A list of what a server has: as text for people, and as plain data for programs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from bespeak.cli.schema_types import entries, members, type_text
from bespeak.protocol.uri_templates import InvalidUriTemplate, UriTemplate
from bespeak.resolve.graph.model import FromArgument, FromNode, Graph
from bespeak.resolve.graph.overview import most_rounds, needed_capabilities, source_of, summary, traits
from bespeak.server.features.registered import Registered
from bespeak.terminal.safe_text import SHORT, clean, text_at

KINDS = {
    "tool": ("Tools", "tools", "tools/list", "name", "model"),
    "prompt": ("Prompts", "prompts", "prompts/list", "name", "client"),
    "resource": ("Resources", "resources", "resources/list", "uri", "uri"),
    "resource template": (
        "Resource templates",
        "resourceTemplates",
        "resources/templates/list",
        "uriTemplate",
        "uri",
    ),
}
"""By kind: its heading, its member in JSON, the method that lists it, the member that names it, and who sends its arguments."""
_SAID = {"model": "from the model", "client": "from the client", "uri": "from the URI"}


@dataclass(frozen=True, slots=True)
class ListedParameter:
    """A parameter, and who fills it."""

    name: str
    source: str
    """`model`, `client`, `uri`, `context`, `computed` or `asked`."""
    type: str | None = None
    required: bool = False
    description: str = ""
    resolver: str | None = None
    traits: Sequence[str] = ()

    def text(self) -> str:
        """Return who fills it, in a few words."""
        if self.resolver is not None:
            said = f" ({', '.join(self.traits)})" if self.traits else ""
            return f"{self.source} by {clean(self.resolver, SHORT)}{said}"
        return f"{_SAID[self.source]}: {self.type or 'any'}{', required' if self.required else ''}"

    def as_json(self) -> dict[str, Any]:
        sent = {"type": self.type, "required": self.required, "description": self.description or None}
        return {"name": self.name, "from": self.source} | (
            {"resolver": self.resolver} if self.resolver is not None else sent if self.source != "context" else {}
        )


@dataclass(frozen=True, slots=True)
class Listed:
    """A tool, prompt, resource or template."""

    kind: str
    name: str
    title: str = ""
    description: str = ""
    parameters: Sequence[ListedParameter] = ()
    graph: Graph | None = None
    """Known if the server was loaded."""

    def as_json(self) -> dict[str, Any]:
        known = (
            {}
            if self.graph is None
            else {
                "mostRounds": most_rounds(self.graph),
                "capabilities": needed_capabilities(self.graph),
            }
        )
        return {
            KINDS[self.kind][3]: self.name,
            "title": self.title or None,
            "description": self.description or None,
            "parameters": [one.as_json() for one in self.parameters],
            **known,
        }


# What is listed


def listed_from_code(one: Registered) -> Listed:
    """Return a registered function, with who fills each of its parameters."""
    schema = one.arguments.schema
    found: list[ListedParameter] = []
    for parameter in one.graph.inputs:
        source = source_of(one.graph, parameter)
        if isinstance(parameter, FromNode):
            node = one.graph.nodes[parameter.node]
            said = traits(one.graph, node)
            found.append(ListedParameter(parameter.parameter, source, resolver=node.name, traits=said))
        elif isinstance(parameter, FromArgument):
            names = one.arguments.sent_as.get(parameter.parameter, (parameter.parameter,))
            found.append(_argument(names[0], schema, KINDS[one.what][4]))
        else:
            found.append(ListedParameter(parameter.parameter, source))
    return _entry(one.what, one.wire, found, one.graph)


def listed_from_wire(kind: str, wire: Mapping[str, Any]) -> Listed | None:
    """Return an entry of a list that a server sent; `None` if it has no name."""
    if not text_at(wire.get(KINDS[kind][3])):
        return None
    source = KINDS[kind][4]
    if kind == "tool":
        schema = members(wire.get("inputSchema"))
        found = [_argument(name, schema, source) for name in members(schema.get("properties"))]
    elif kind == "prompt":
        found = [
            ListedParameter(name, source, "string", told.get("required") is True, text_at(told.get("description")))
            for told in map(members, entries(wire.get("arguments")))
            if (name := text_at(told.get("name")))
        ]
    else:
        found = [ListedParameter(name, source, "string", True) for name in _variables(kind, wire)]
    return _entry(kind, wire, found)


def _variables(kind: str, wire: Mapping[str, Any]) -> Sequence[str]:
    try:
        return UriTemplate.parse(wire["uriTemplate"]).variables if kind == "resource template" else ()
    except InvalidUriTemplate:
        return ()


def _argument(name: str, schema: Mapping[str, Any], source: str) -> ListedParameter:
    about = members(members(schema.get("properties")).get(name))
    required = name in entries(schema.get("required"))
    return ListedParameter(name, source, type_text(about, schema), required, text_at(about.get("description")))


def _entry(
    kind: str, wire: Mapping[str, Any], parameters: Sequence[ListedParameter], graph: Graph | None = None
) -> Listed:
    name, title, description = (text_at(wire.get(key)) for key in (KINDS[kind][3], "title", "description"))
    return Listed(kind, name, title, description, parameters, graph)


# How it is shown


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a list: how far it is indented, what is emphasised, and the rest."""

    indent: int
    strong: str
    rest: str = ""


def lines(listed: Sequence[Listed]) -> Iterator[Line]:
    """Return the lines of a list, without control characters."""
    for kind, (heading, *_) in KINDS.items():
        those = [one for one in listed if one.kind == kind]
        if those:
            yield Line(0, heading)
        for one in those:
            told = next(iter(one.description.strip().splitlines()), "") or one.title
            yield Line(2, clean(one.name, SHORT), f": {clean(told, SHORT)}" if told else "")
            shown = [each for each in one.parameters if each.source != "context"]
            width = max((len(clean(each.name, SHORT)) for each in shown), default=0)
            for each in shown:
                yield Line(4, "", f"{clean(each.name, SHORT):<{width}}  {each.text()}")
            if one.graph is not None and one.graph.may_ask:
                yield Line(4, "", summary(one.graph))
        if those:
            yield Line(0, "")


def show(listed: Sequence[Listed], out: TextIO) -> None:
    """Print a list: in colours and wrapped at a terminal, as plain lines elsewhere."""
    shown = list(lines(listed))[:-1]  # the last one is empty
    if not out.isatty():
        for line in shown:
            print(" " * line.indent + line.strong + line.rest, file=out)
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(file=out, markup=False, highlight=False, emoji=False)
    for line in shown:
        text = Text.assemble((line.strong, "bold"), line.rest, overflow="fold")
        console.print(Padding(text, (0, 0, 0, line.indent), expand=False))


def as_json(listed: Sequence[Listed]) -> dict[str, Any]:
    """Return a list as plain data, each kind under the name that the protocol has for it."""
    return {member: [one.as_json() for one in listed if one.kind == kind] for kind, (_, member, *_) in KINDS.items()}
