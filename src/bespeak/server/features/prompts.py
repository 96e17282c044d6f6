"""Prompts: registered once, listed in order, rendered by name."""

import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, cast

from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.resolve.reading.callables import calling_frame
from bespeak.server.auth.scopes import scope_names
from bespeak.server.features.completions import Completed
from bespeak.server.features.listing_entries import listing_entry
from bespeak.server.features.registered import Registering, described, name_of, protocol_error

if TYPE_CHECKING:
    from mcp_types import Icon


@dataclass(frozen=True, slots=True)
class PromptOptions:
    """What an author may say of a prompt beside its function."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    icons: "list[Icon] | None" = None
    meta: dict[str, Any] | None = None
    scopes: Sequence[str] = ()


class Prompt(Completed):
    """One prompt: a function, its graph of resolvers, and its arguments, which are text on the wire."""

    method = "prompts/get"
    what = "prompt"

    def __init__(self, fn: Callable[..., Any], options: PromptOptions, frame: types.FrameType | None) -> None:
        read = Registering(fn, self.what, frame, completes=True)
        name = options.name or name_of(fn, read.signature, "prompt(name=...)")
        super().__init__(fn, name, read, read.arguments())
        self.scopes = scope_names(options.scopes)
        self.description = described(fn, options.description)
        self.wire = listing_entry(
            {"name": name, "title": options.title, "description": self.description or None}, options.icons
        )
        self.wire["arguments"] = self._listed()
        if options.meta:
            self.wire["_meta"] = options.meta

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: "list[Icon] | None" = None,
        *,
        scopes: Sequence[str] = (),
    ) -> "Prompt":
        """A prompt to hand to `MCPServer.add_prompt`."""
        return cls(fn, PromptOptions(name, title, description, icons, scopes=scopes), calling_frame())

    def _listed(self) -> list[dict[str, Any]]:
        schema: dict[str, Any] = self.arguments.schema
        required: set[str] = set(schema.get("required", ()))
        properties: dict[str, Any] = schema.get("properties", {})
        return [
            {**listing_entry({"name": name, "description": about.get("description")}), "required": name in required}
            for name, about in properties.items()
        ]

    def result(self, value: Any) -> dict[str, Any]:
        """Return the function's return value as a wire result."""
        # It needs the models of content blocks, which a server only needs once it renders a prompt.
        from bespeak.server.features.prompt_results import prompt_result

        return prompt_result(value, self.description)

    def failure(self, error: Exception) -> NoReturn:
        """Raise a failure as a JSON-RPC error."""
        raise protocol_error(f"Error rendering prompt {self.name}", error, f"prompt {self.name!r}")


def prompt_arguments(sent: Any) -> dict[str, Any]:
    """The arguments of a `prompts/get` request. Raises `MCPError` if they are not a map of texts."""
    if sent is None:
        return {}
    arguments = cast("dict[str, Any]", sent) if isinstance(sent, dict) else None
    if arguments is None or not all(isinstance(value, str) for value in arguments.values()):
        raise MCPError(INVALID_PARAMS, "params.arguments must be an object whose values are strings")
    return arguments
