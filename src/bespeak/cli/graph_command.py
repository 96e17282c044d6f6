"""`bespeak graph`: draw which parameters come from the model, which are computed, which are asked, and in which round."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic_core import to_json

from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import complain
from bespeak.cli.suggestions import suggestion
from bespeak.cli.target_server import server_of
from bespeak.resolve.graph.drawing import draw_graph
from bespeak.resolve.graph.mermaid import as_mermaid
from bespeak.resolve.graph.model import Graph
from bespeak.resolve.graph.overview import as_json, summary
from bespeak.resolve.graph.svg import as_svg
from bespeak.server.features.registered import Registered
from bespeak.server.targets import NoServer

FORMS = ("tree", "mermaid", "svg", "json")
PICTURES: dict[str, Callable[[Graph, str], str]] = {"mermaid": as_mermaid, "svg": as_svg}
"""The forms that show one graph."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line of `bespeak graph`."""

    target: str
    name: str | None
    form: str | None
    output: Path | None
    whole: bool
    """Whether JSON is asked for, in place of a form."""


class BadFlags(Exception):
    """A name or a form that there is not."""


def draw_graphs(flags: Flags) -> int:
    """Print the graphs of a server, or write them to a file. Return the exit code."""
    try:
        form = _form(flags)
        text = _drawn(form, _chosen(server_of(flags.target).registered, flags))
        if flags.output is not None:
            flags.output.write_text(f"{text}\n", "utf-8")
        else:
            sys.stdout.write(f"{text}\n")
    except (BadFlags, NoServer) as error:
        return complain(str(error), ExitCode.BAD_USAGE, error)
    except OSError as error:
        return complain(f"{flags.output} cannot be written: {error.strerror}", ExitCode.BAD_USAGE)
    return ExitCode.OK


def _form(flags: Flags) -> str:
    form = flags.form or ("json" if flags.whole else FORMS[0])
    if form not in FORMS:
        raise BadFlags(f"there is no form {form!r}; use {', '.join(FORMS[:-1])} or {FORMS[-1]}")
    if flags.whole and form != "json":
        raise BadFlags(f"--json is the form json, so it cannot be combined with --form {form}")
    return form


def _chosen(registered: Sequence[Registered], flags: Flags) -> Sequence[Registered]:
    names = [one.name for one in registered]
    if not names:
        raise BadFlags(f"{flags.target} has no tools, prompts or resources")
    if flags.name is None:
        return registered
    chosen = [one for one in registered if one.name == flags.name]
    if not chosen:
        hint = suggestion(flags.name, names, "there are")
        raise BadFlags(f"{flags.target} has nothing called {flags.name!r}; {hint}")
    return chosen


def _drawn(form: str, chosen: Sequence[Registered]) -> str:
    if form == "json":
        graphs = [{"kind": one.what, "name": one.name, **as_json(one.graph)} for one in chosen]
        return to_json(graphs, indent=2).decode()
    if form == "tree":
        return "\n\n".join(f"{draw_graph(one.graph, one.name)}\n{summary(one.graph)}" for one in chosen)
    if len(chosen) > 1:
        names = ", ".join(one.name for one in chosen)
        raise BadFlags(f"--form {form} draws one graph; name one of {names}")
    return PICTURES[form](chosen[0].graph, chosen[0].name)
