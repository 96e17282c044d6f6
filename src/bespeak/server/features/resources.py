"""Resources and resource templates: registered once, listed in order, read by URI."""

import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Self
from urllib.parse import unquote

from bespeak.protocol.uri_templates import InvalidUriTemplate, UriTemplate
from bespeak.resolve.graph.model import Graph
from bespeak.server.auth.scopes import scope_names
from bespeak.server.calls.arguments import Arguments
from bespeak.server.features.completions import Completed
from bespeak.server.features.listing_entries import listing_entry, resource_annotations
from bespeak.server.features.listings import CacheHint
from bespeak.server.features.registered import Registered, Registering, Registry, described, name_of, protocol_error
from bespeak.server.features.resource_errors import ResourceError
from bespeak.server.features.resource_results import resource_result

if TYPE_CHECKING:
    from mcp_types import Annotations, Icon

_ABSOLUTE = re.compile(r"[/~]|[A-Za-z]:")
"""How an absolute path begins, a home folder and a drive included."""


@dataclass(frozen=True, slots=True)
class ResourceSecurity:
    """Which values of a template's variables are refused. A URI with such a value is not found.

    Values are checked after they are decoded, so that `%2e%2e%2f` is found too. `exempt_params` are not checked.
    """

    reject_path_traversal: bool = True
    reject_absolute_paths: bool = True
    reject_null_bytes: bool = True
    exempt_params: frozenset[str] | set[str] = field(default_factory=frozenset[str])

    def refuses(self, variables: Mapping[str, str]) -> str | None:
        """The name of a variable whose value is refused; `None` if there is none."""
        return next(
            (name for name, value in variables.items() if name not in self.exempt_params and self._is_refused(value)),
            None,
        )

    def _is_refused(self, value: str) -> bool:
        path = value.replace("\\", "/")
        return (
            (self.reject_null_bytes and "\0" in value)
            or (self.reject_path_traversal and ".." in path.split("/"))
            or (self.reject_absolute_paths and _ABSOLUTE.match(path) is not None)
        )


DEFAULT_RESOURCE_SECURITY = ResourceSecurity()


class RefusedValue(Exception):
    """A URI fits a template, but the value of a variable is refused. Another template must not serve it instead."""


@dataclass(frozen=True, slots=True)
class ResourceOptions:
    """What an author may say of a resource beside its function."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    icons: "list[Icon] | None" = None
    annotations: "Annotations | None" = None
    meta: dict[str, Any] | None = None
    security: ResourceSecurity = DEFAULT_RESOURCE_SECURITY
    cache: CacheHint | None = None
    scopes: Sequence[str] = ()
    size: int | None = None
    """In bytes, if it is known."""


class _Readable(Registered):
    """What resources and templates have in common."""

    method = "resources/read"
    what = "resource"
    mime_type: str | None
    cache: CacheHint | None
    scopes: tuple[str, ...]

    def _take(self, options: ResourceOptions) -> None:
        self.mime_type = options.mime_type
        self.cache = options.cache
        self.scopes = scope_names(options.scopes)

    def result_at(self, value: Any, uri: str) -> dict[str, Any]:
        """What the function returned for a URI, as a wire result."""
        result = resource_result(value, uri, self.mime_type)
        if self.cache is not None:
            result |= self.cache.fields()
        return result

    def failure_at(self, error: Exception, uri: str) -> NoReturn:
        """Raise a failure for a URI as a JSON-RPC error."""
        if isinstance(error, ResourceError):
            raise error.at(uri)
        raise protocol_error(f"Error reading resource {uri}", error, f"resource {uri!r}")


class Resource(_Readable):
    """One resource: a URI, and the function that reads it."""

    listed_by = "uri"

    def __init__(
        self, fn: Callable[..., Any], uri: str, options: ResourceOptions, frame: types.FrameType | None
    ) -> None:
        read = Registering(fn, self.what, frame)
        _check_uri(read, uri)
        for one in read.plain:
            if one.required:
                read.fault(
                    f"parameter {one.name!r} is not filled: the URI {uri!r} has no variable",
                    f"write {{{one.name}}} into the URI, or fill the parameter with Resolve(fn)",
                    one.name,
                )
        super().__init__(fn, uri, read, read.arguments())
        self._take(options)
        self.wire = _listed(fn, read, options, {"uri": uri})
        if options.size is not None:
            self.wire["size"] = options.size

    def result(self, value: Any) -> dict[str, Any]:
        return self.result_at(value, self.name)

    def failure(self, error: Exception) -> NoReturn:
        self.failure_at(error, self.name)


class ResourceTemplate(Completed, _Readable):
    """One resource template: a URI with variables, and the function that takes them."""

    listed_by = "uriTemplate"
    what = "resource template"

    def __init__(
        self, fn: Callable[..., Any], uri: str, options: ResourceOptions, frame: types.FrameType | None
    ) -> None:
        read = Registering(fn, self.what, frame, completes=True)
        arguments = read.arguments()
        template = _template(read, uri, arguments)
        super().__init__(fn, uri, read, arguments)
        assert template is not None, "a template that cannot be read has a fault"
        self.template = template
        self._take(options)
        self._security = options.security
        self.wire = _listed(fn, read, options, {"uriTemplate": uri})

    def renamed(self, name: str, home: Any) -> Self:
        other = super().renamed(name, home)
        other.template = UriTemplate.parse(name)
        return other

    @property
    def argument_names(self) -> Sequence[str]:
        return self.template.variables

    def match(self, uri: str) -> "tuple[TemplateRead, dict[str, Any]] | None":
        """The resource at a URI, with the values of its variables; `None` if the URI is not one of this template.

        Raises `RefusedValue` if the value of a variable is refused.
        """
        variables = self.template.match(uri)
        if variables is None:
            return None
        refused = self._security.refuses(variables)
        if refused is not None:
            raise RefusedValue(refused)
        return TemplateRead(self, uri), dict(variables)


class TemplateRead:
    """One URI of a template: what a call needs to know of it."""

    method = _Readable.method
    idempotent = False

    def __init__(self, template: ResourceTemplate, uri: str) -> None:
        self._template = template
        self.name = uri
        self.pattern = template.name
        self.fn = template.fn
        self.kind = template.kind
        self.may_wait = template.may_wait
        self.at_once = template.at_once
        self.arguments = template.arguments
        self.context_parameters = template.context_parameters
        self.plain = template.plain
        self.scopes = template.scopes
        self.home = template.home
        self.cache = template.cache

    @property
    def graph(self) -> Graph:
        return self._template.graph

    @property
    def may_ask(self) -> bool:
        return self._template.may_ask

    def result(self, value: Any) -> dict[str, Any]:
        return self._template.result_at(value, self.name)

    def failure(self, error: Exception) -> NoReturn:
        self._template.failure_at(error, self.name)


class ResourceRegistry:
    """The resources and templates of a server."""

    def __init__(self, changed: Callable[[], object] = lambda: None) -> None:
        self.fixed = Registry[Resource]("resource", changed)
        self.templates = Registry[ResourceTemplate]("resource", changed)

    def find(self, uri: str) -> tuple[Resource | TemplateRead, dict[str, Any]] | None:
        """What is at a URI, with its arguments: a resource, or else the first template that fits."""
        found = self._first(uri)
        if found is not None and isinstance(found[0], TemplateRead):
            # Variables are decoded, so a template may get the same values for a URI that is spelled in another way.
            decoded = unquote(uri)
            other = self._first(decoded) if decoded != uri else None
            if other is not None:
                found[0].scopes = tuple(dict.fromkeys((*found[0].scopes, *other[0].scopes)))
        return found

    def _first(self, uri: str) -> tuple[Resource | TemplateRead, dict[str, Any]] | None:
        fixed = self.fixed.get(uri)
        if fixed is not None:
            return fixed, {}
        try:
            return next((found for one in self.templates.all() if (found := one.match(uri)) is not None), None)
        except RefusedValue:
            return None

    def template_of(self, uri: str) -> ResourceTemplate | None:
        """The template that a URI names: itself, or as one of its URIs."""
        try:
            return self.templates.get(uri) or next((one for one in self.templates.all() if one.match(uri)), None)
        except RefusedValue:
            return None


def has_variables(uri: str) -> bool:
    """Whether a URI is a template."""
    return "{" in uri or "}" in uri


def _check_uri(read: Registering, uri: str) -> None:
    try:
        UriTemplate.parse(uri)
    except InvalidUriTemplate as error:
        read.fault(str(error), "write a URI such as orders://today")


def _listed(
    fn: Callable[..., Any], read: Registering, options: ResourceOptions, address: Mapping[str, str]
) -> dict[str, Any]:
    """Return how a resource or a template is listed; `address` is its URI, under the name that it has there."""
    texts = {
        **address,
        "name": options.name or name_of(fn, read.signature, "resource(uri, name=...)"),
        "title": options.title,
        "description": described(fn, options.description) or None,
        "mimeType": options.mime_type,
    }
    wire = listing_entry(texts, options.icons)
    if options.annotations is not None:
        wire["annotations"] = resource_annotations(options.annotations)
    if options.meta:
        wire["_meta"] = options.meta
    return wire


def _template(read: Registering, uri: str, arguments: Arguments | None) -> UriTemplate | None:
    try:
        template = UriTemplate.parse(uri)
    except InvalidUriTemplate as error:
        read.fault(str(error), "see RFC 6570, or use plain variables: orders://{number}")
        return None
    if arguments is not None:  # otherwise their faults are noted
        _check_variables(read, uri, template, arguments)
    return template


def _check_variables(read: Registering, uri: str, template: UriTemplate, arguments: Arguments) -> None:
    """Every variable is the name under which an argument is sent, and every argument that is required is a variable."""
    plain = {one.name: one for one in read.plain}
    sent = {wire: plain[name] for name, names in arguments.sent_as.items() for wire in names}
    for name in template.variables:
        if name in read.marked:
            read.fault(
                f"the URI has the variable {name!r}, which is resolved",
                f"rename the variable, or take {name!r} from the URI",
                name,
            )
        elif name not in sent and name in plain:
            alias = arguments.sent_as[name][0]
            read.fault(
                f"the URI has the variable {name!r}, but the parameter of that name takes the argument {alias!r}",
                f"write {{{alias}}} into the URI, or remove the alias",
                name,
            )
        elif name not in sent:
            read.fault(
                f"the URI has the variable {name!r}, which is not a parameter",
                f"add a parameter {name!r}, or take the variable out of the URI",
            )
        elif name in template.optional and sent[name].required:
            read.fault(
                f"the variable {name!r} may be left out of the URI, but the parameter has no default",
                f"give {name!r} a default",
                name,
            )
    for name, one in plain.items():
        names = arguments.sent_as[name]
        if name in template.variables or any(wire in template.variables for wire in names):
            continue
        if one.required:
            read.fault(
                f"parameter {name!r} is not filled: the URI {uri!r} has no variable {names[0]!r}",
                f"write {{{names[0]}}} into the URI, or fill the parameter with Resolve(fn)",
                name,
            )
        elif one.completion is not None:
            read.fault(
                f"parameter {name!r} is marked with `Complete`, but the URI {uri!r} has no variable {names[0]!r}",
                f"write {{{names[0]}}} into the URI, or remove the marker",
                name,
            )
