"""Everything a server offers to its clients, and the capabilities that follow from it."""

from collections.abc import Mapping, Sequence
from typing import Any

from bespeak.protocol.methods import TARGET_PARAMETERS
from bespeak.server.features.prompts import Prompt
from bespeak.server.features.registered import Registered, Registry
from bespeak.server.features.resources import ResourceRegistry
from bespeak.server.features.subscriptions import Changes
from bespeak.server.features.tools import Tool


class Catalogue:
    """The tools, prompts and resources of one server."""

    def __init__(self) -> None:
        self.changes = changes = Changes()
        self.tools = Registry[Tool]("tool", lambda: changes.list_changed("tools"))
        self.prompts = Registry[Prompt]("prompt", lambda: changes.list_changed("prompts"))
        self.resources = ResourceRegistry(lambda: changes.list_changed("resources"))

    def all(self) -> Sequence[Registered]:
        """Everything that has resolvers, or may have."""
        return [
            *self.tools.all(),
            *self.prompts.all(),
            *self.resources.fixed.all(),
            *self.resources.templates.all(),
        ]

    def scopes_needed(self, method: str, params: Mapping[str, Any]) -> tuple[str, ...]:
        """The scopes that a request needs because of what it names; none if there is no such thing."""
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
        return {
            "tools": changing,
            "prompts": changing,
            "resources": {"subscribe": True, **changing},
            "logging": {},
        }
