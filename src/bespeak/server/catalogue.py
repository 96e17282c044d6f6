"""Everything a server offers to its clients, and the capabilities that follow from it."""

from collections.abc import Sequence
from typing import Any

from bespeak.server.features.completions import CompletionHandler
from bespeak.server.features.prompts import Prompt
from bespeak.server.features.registered import Registry, Resolving
from bespeak.server.features.resources import ResourceRegistry
from bespeak.server.features.tools import Tool


class Catalogue:
    """The tools, prompts and resources of one server."""

    def __init__(self) -> None:
        self.tools = Registry[Tool]("tool")
        self.prompts = Registry[Prompt]("prompt")
        self.resources = ResourceRegistry()
        self.completion_handler: CompletionHandler | None = None

    def all(self) -> Sequence[Resolving]:
        """Everything that has resolvers, or may have."""
        registered = (self.tools, self.prompts, self.resources.fixed, self.resources.templates)
        parts = [part for registry in registered for one in registry.all() for part in one.parts]
        return parts if self.completion_handler is None else [*parts, self.completion_handler]

    @property
    def has_completions(self) -> bool:
        """Whether any argument is completed."""
        completed = (*self.prompts.all(), *self.resources.templates.all())
        return self.completion_handler is not None or any(one.completions for one in completed)

    def capabilities(self) -> dict[str, Any]:
        """What the server declares, in every era."""
        completions: dict[str, Any] = {"completions": {}} if self.has_completions else {}
        return {"tools": {}, "prompts": {}, "resources": {}, "logging": {}, **completions}
