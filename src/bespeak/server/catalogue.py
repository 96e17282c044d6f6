"""Everything a server offers to its clients, and the capabilities that follow from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_types import PromptReference

from bespeak.protocol.methods import TARGET_PARAMETERS
from bespeak.server.features.completions import CompletionHandler, Reference, read_reference
from bespeak.server.features.prompts import Prompt
from bespeak.server.features.registered import Registered, Registry, Resolving
from bespeak.server.features.resources import Resource, ResourceRegistry, ResourceTemplate
from bespeak.server.features.subscriptions import Changes
from bespeak.server.features.tools import Tool


class Catalogue:
    """The tools, prompts and resources of one server."""

    def __init__(self) -> None:
        self.changes = changes = Changes()
        self.tools = Registry[Tool]("tool", lambda: changes.list_changed("tools"))
        self.prompts = Registry[Prompt]("prompt", lambda: changes.list_changed("prompts"))
        self.resources = ResourceRegistry(lambda: changes.list_changed("resources"))
        self.completion_handler: CompletionHandler | None = None

    def all(self) -> Sequence[Registered]:
        """Everything that clients reach by a name."""
        return [
            *self.tools.all(),
            *self.prompts.all(),
            *self.resources.fixed.all(),
            *self.resources.templates.all(),
        ]

    def resolving(self) -> Sequence[Resolving]:
        """Everything that has resolvers, or may have."""
        parts = [part for one in self.all() for part in one.parts]
        return parts if self.completion_handler is None else [*parts, self.completion_handler]

    def completed(self, ref: Reference) -> Prompt | ResourceTemplate | Resource | None:
        """Return what a reference in a completion request names; `None` if there is no such thing."""
        if isinstance(ref, PromptReference):
            return self.prompts.get(ref.name)
        return self.resources.fixed.get(ref.uri) or self.resources.template_of(ref.uri)

    @property
    def has_completions(self) -> bool:
        """Whether any argument is completed."""
        completed = (*self.prompts.all(), *self.resources.templates.all())
        return self.completion_handler is not None or any(one.completions for one in completed)

    def scopes_needed(self, method: str, params: Mapping[str, Any]) -> tuple[str, ...]:
        """The scopes that a request needs because of what it names; none if there is no such thing."""
        if method == "completion/complete":
            completed = self.completed(ref) if (ref := read_reference(params.get("ref"))) is not None else None
            return completed.scopes if completed is not None else ()
        name = params.get(TARGET_PARAMETERS.get(method, ""))
        if not isinstance(name, str):
            return ()
        if method == "resources/read":
            found = self.resources.find(name)
            return found[0].scopes if found is not None else ()
        one = self.tools.get(name) if method == "tools/call" else self.prompts.get(name)
        return one.scopes if one is not None else ()

    def capabilities(self) -> dict[str, Any]:
        """What the server declares, in every era."""
        changing = {"listChanged": True}
        completions: dict[str, Any] = {"completions": {}} if self.has_completions else {}
        return {
            "tools": changing,
            "prompts": changing,
            "resources": {"subscribe": True, **changing},
            "logging": {},
            **completions,
        }
