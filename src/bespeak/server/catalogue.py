"""Everything a server offers to its clients, and the capabilities that follow from it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from bespeak.protocol import wire_types
from bespeak.protocol.methods import LISTEN
from bespeak.server.auth.scopes import Scoped
from bespeak.server.features.completions import CompletionHandler, read_reference
from bespeak.server.features.prompts import Prompt
from bespeak.server.features.registered import Registered, Registry, Resolving
from bespeak.server.features.resources import Resource, ResourceRegistry, ResourceTemplate
from bespeak.server.features.subscriptions import MOST_URIS, Changes, ListName
from bespeak.server.features.tools import Tool

if TYPE_CHECKING:
    from bespeak.server.features.completions import Reference


class Catalogue:
    """The tools, prompts and resources of one server."""

    def __init__(self) -> None:
        self.changes = Changes()
        self.edition = object()
        """Another one whenever the lists or the capabilities may have changed."""
        self.tools = Registry[Tool]("tool", lambda: self._list_changed("tools"))
        self.prompts = Registry[Prompt]("prompt", lambda: self._list_changed("prompts"))
        self.resources = ResourceRegistry(lambda: self._list_changed("resources"))
        self.extensions: dict[str, dict[str, Any]] = {}
        """Extensions of the protocol that the server declares, with their settings."""
        self._completion_handler: CompletionHandler | None = None
        self._completions: tuple[object, bool] = (None, False)
        """An edition, and whether any argument is completed in it."""
        self._included: list[tuple[Catalogue, object]] = []
        """The catalogues of included servers, each with its server."""
        self._includers: list[Catalogue] = []

    def _list_changed(self, name: ListName) -> None:
        self._renew()
        self.changes.list_changed(name)

    def _renew(self) -> None:
        """Begin another edition, here and where this is included."""
        self.edition = object()
        for one in self._includers:
            one._renew()

    @property
    def completion_handler(self) -> CompletionHandler | None:
        return self._completion_handler

    @completion_handler.setter
    def completion_handler(self, handler: CompletionHandler) -> None:
        self._completion_handler = handler
        self._renew()

    def include(self, other: "Catalogue", server: object) -> None:
        """Have the completions of another catalogue, that of an included server."""
        self._included.append((other, server))
        other._includers.append(self)
        self._renew()

    def registries(self) -> Sequence[Registry[Any]]:
        return (self.tools, self.prompts, self.resources.fixed, self.resources.templates)

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

    def completed(self, ref: "Reference") -> Prompt | ResourceTemplate | Resource | None:
        """Return what a reference in a completion request names; `None` if there is no such thing."""
        if isinstance(ref, wire_types.PromptReference):
            return self.prompts.get(ref.name)
        return self.resources.fixed.get(ref.uri) or self.resources.template_of(ref.uri)

    @property
    def has_completions(self) -> bool:
        """Whether any argument is completed."""
        known_in, known = self._completions
        edition = self.edition
        if known_in is not edition:
            completed = (*self.prompts.all(), *self.resources.templates.all())
            known = (
                self.completion_handler is not None
                or any(one.completions for one in completed)
                or any(other.has_completions for other, _ in self._included)
            )
            self._completions = edition, known
        return known

    def completion_handler_of(self, home: object) -> CompletionHandler | None:
        """Return the handler for what was registered on a server: this one (`None`), or an included one."""
        if home is None:
            return self.completion_handler
        for other, server in self._included:
            found = other.completion_handler_of(None if server is home else home)
            if found is not None:
                return found
        return None

    def scopes_needed(self, method: str, params: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the scopes that a request needs because of what it names; none if there is no such thing."""
        return tuple(dict.fromkeys(scope for one in self._named(method, params) for scope in one.scopes))

    def _named(self, method: str, params: Mapping[str, Any]) -> Iterator[Scoped]:
        """Find what a request names: by its name, its URI, the URIs it subscribes to, or what it completes."""
        found: list[Scoped | None] = []
        if method == "tools/call":
            found.append(self._text(params, "name", self.tools.get))
        elif method == "prompts/get":
            found.append(self._text(params, "name", self.prompts.get))
        elif method in ("resources/read", "resources/subscribe"):
            found.append(self._text(params, "uri", self._resource))
        elif method == LISTEN:
            wanted = _members(params.get("notifications")).get("resourceSubscriptions")
            uris = cast("list[Any]", wanted) if isinstance(wanted, list) else []
            # Each counts once, however often it is named; a request with more of them is refused.
            different = dict.fromkeys(uri for uri in uris if isinstance(uri, str))
            found += [self._resource(uri) for uri in islice(different, MOST_URIS)]
        elif method == "completion/complete":
            ref = read_reference(params.get("ref"))
            found.append(self.completed(ref) if ref is not None else None)
        return (one for one in found if one is not None)

    @staticmethod
    def _text(params: Mapping[str, Any], member: str, find: Callable[[str], Scoped | None]) -> Scoped | None:
        name = params.get(member)
        return find(name) if isinstance(name, str) else None

    def _resource(self, uri: str) -> Scoped | None:
        found = self.resources.find(uri)
        return found[0] if found is not None else None

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
            **({"extensions": self.extensions} if self.extensions else {}),
        }


def _members(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
