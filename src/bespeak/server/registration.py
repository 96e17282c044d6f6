"""Registering tools, prompts and resources on a server, and replacing their resolvers for a while."""

import types
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, overload

from bespeak.resolve.reading.callables import calling_frame
from bespeak.server.catalogue import Catalogue
from bespeak.server.features.completion_functions import read_handler
from bespeak.server.features.completions import CompletionHandler
from bespeak.server.features.listings import CacheHint
from bespeak.server.features.prompts import Prompt, PromptOptions
from bespeak.server.features.resources import (
    DEFAULT_RESOURCE_SECURITY,
    Resource,
    ResourceOptions,
    ResourceSecurity,
    ResourceTemplate,
    has_variables,
)
from bespeak.server.features.tools import Tool, ToolOptions
from bespeak.server.loading import register as registered
from bespeak.server.overrides import UNSET, Overrides

if TYPE_CHECKING:
    from mcp_types import Annotations, Icon, ToolAnnotations

FnT = TypeVar("FnT", bound=Callable[..., Any])


class Registration:
    """The half of `MCPServer` that authors register things with."""

    def __init__(self) -> None:
        super().__init__()
        self._catalogue = Catalogue()
        self._resource_security = DEFAULT_RESOURCE_SECURITY
        self._overrides = Overrides(self._catalogue)
        for registry in self._catalogue.registries():
            registry.adopt = self._overrides.adopt

    # Tools

    @overload
    def tool(self, name: FnT, /) -> FnT: ...
    @overload
    def tool(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: "ToolAnnotations | None" = None,
        icons: "list[Icon] | None" = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        idempotent: bool = False,
        input_schema: dict[str, Any] | None = None,
        scopes: Sequence[str] = (),
    ) -> Callable[[FnT], FnT]: ...
    def tool(
        self,
        name: Any = None,
        title: str | None = None,
        description: str | None = None,
        annotations: "ToolAnnotations | None" = None,
        icons: "list[Icon] | None" = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        idempotent: bool = False,
        input_schema: dict[str, Any] | None = None,
        scopes: Sequence[str] = (),
    ) -> Any:
        """Register a function as a tool, with or without parentheses.

        Raises `InvalidSignature` with all faults at once.

        `idempotent` says that running the body twice does no harm, so a call whose worker died may be run again.
        `input_schema` replaces the derived schema. The arguments are still validated by the function's own parameters.
        `scopes` are what an access token must allow, where the server has authentication.
        """
        if callable(title):
            raise TypeError("tool() is a decorator; to register a function directly, use add_tool(fn, name)")
        if callable(name):
            frame = calling_frame()
            registered(lambda: self._catalogue.tools.add(Tool(name, ToolOptions(), frame)), name)
            return name
        options = ToolOptions(
            name,
            title,
            description,
            annotations,
            icons,
            meta,
            structured_output,
            idempotent,
            input_schema,
            scopes,
        )

        def register(fn: FnT) -> FnT:
            frame = calling_frame()
            registered(lambda: self._catalogue.tools.add(Tool(fn, options, frame)), fn)
            return fn

        return register

    def add_tool(
        self,
        fn: Callable[..., Any],
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        annotations: "ToolAnnotations | None" = None,
        icons: "list[Icon] | None" = None,
        meta: dict[str, Any] | None = None,
        structured_output: bool | None = None,
        *,
        idempotent: bool = False,
        input_schema: dict[str, Any] | None = None,
        scopes: Sequence[str] = (),
    ) -> None:
        """Register a function as a tool. See `tool`."""
        options = ToolOptions(
            name,
            title,
            description,
            annotations,
            icons,
            meta,
            structured_output,
            idempotent,
            input_schema,
            scopes,
        )
        if not callable(fn):
            raise TypeError(
                f"add_tool() needs a function, not {type(fn).__name__}; pass the function itself, without calling it"
            )
        frame = calling_frame()
        registered(lambda: self._catalogue.tools.add(Tool(fn, options, frame)), fn)

    def remove_tool(self, name: str) -> None:
        """Remove a tool. Raises `ToolError` if there is no tool with that name."""
        self._catalogue.tools.remove(name)

    # Prompts

    @overload
    def prompt(self, name: FnT, /) -> FnT: ...
    @overload
    def prompt(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: "list[Icon] | None" = None,
        *,
        meta: dict[str, Any] | None = None,
        scopes: Sequence[str] = (),
    ) -> Callable[[FnT], FnT]: ...
    def prompt(
        self,
        name: Any = None,
        title: str | None = None,
        description: str | None = None,
        icons: "list[Icon] | None" = None,
        *,
        meta: dict[str, Any] | None = None,
        scopes: Sequence[str] = (),
    ) -> Any:
        """Register a function as a prompt, with or without parentheses. Raises `InvalidSignature`, all faults at once.

        Its parameters are the prompt's arguments, which travel as text. It returns text, messages, content blocks, or a list
        of these. `scopes` are what an access token must allow, where the server has authentication.
        """
        if callable(name):
            frame = calling_frame()
            registered(lambda: self._catalogue.prompts.add(Prompt(name, PromptOptions(), frame)), name)
            return name
        options = PromptOptions(name, title, description, icons, meta, scopes)

        def register(fn: FnT) -> FnT:
            frame = calling_frame()
            registered(lambda: self._catalogue.prompts.add(Prompt(fn, options, frame)), fn)
            return fn

        return register

    def add_prompt(self, prompt: Prompt) -> None:
        """Register a prompt made by `Prompt.from_function`."""
        self._catalogue.prompts.add(prompt.copied())

    def remove_prompt(self, name: str) -> None:
        """Take a prompt away. Raises `ToolError` if there is none of that name."""
        self._catalogue.prompts.remove(name)

    # Resources

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: "list[Icon] | None" = None,
        annotations: "Annotations | None" = None,
        meta: dict[str, Any] | None = None,
        security: ResourceSecurity | None = None,
        cache: CacheHint | None = None,
        scopes: Sequence[str] = (),
    ) -> Callable[[FnT], FnT]:
        """Register a function as a resource or, if the URI has variables, as a resource template.

        Raises `InvalidSignature`, all faults at once. The variables of the URI are parameters of the function. `security` says
        which of their values are refused; without it, the server's `resource_security` does. `cache` says how long clients may
        keep what was read. `scopes` are what an access token must allow, where the server has authentication.
        """
        if callable(uri):
            raise TypeError("resource() needs a URI: @mcp.resource('orders://today')")
        options = ResourceOptions(
            name,
            title,
            description,
            mime_type,
            icons,
            annotations,
            meta,
            self._resource_security if security is None else security,
            cache,
            scopes,
        )

        def register(fn: FnT) -> FnT:
            resources, frame = self._catalogue.resources, calling_frame()
            if has_variables(uri):
                registered(lambda: resources.templates.add(ResourceTemplate(fn, uri, options, frame)), fn)
            else:
                registered(lambda: resources.fixed.add(Resource(fn, uri, options, frame)), fn)
            return fn

        return register

    def add_resource(self, resource: Resource) -> None:
        """Register a ready-made resource: a `TextResource`, `BinaryResource`, `FileResource`, `DirectoryResource` or
        `FunctionResource`.
        """
        self._catalogue.resources.fixed.add(resource.copied())

    def remove_resource(self, uri: str) -> None:
        """Take a resource or a template away. Raises `ToolError` if there is none at that URI."""
        resources = self._catalogue.resources
        (resources.templates if has_variables(uri) else resources.fixed).remove(uri)

    # Completions

    def completion(self) -> Callable[[FnT], FnT]:
        """Register a function that completes all arguments without a `Complete(fn)` of their own. Raises `InvalidSignature`.

        It takes the reference, the argument and the context, in that order, and returns a `Completion` or `None`.
        """

        def register(fn: FnT) -> FnT:
            frame = calling_frame()
            registered(lambda: self._complete_with(fn, frame), fn)
            return fn

        return register

    def _complete_with(self, fn: Callable[..., Any], frame: types.FrameType | None) -> None:
        if self._catalogue.completion_handler is not None:
            raise ValueError("a completion handler is already registered; a server has only one")
        handler = CompletionHandler(read_handler(fn, frame))
        self._overrides.adopt(handler)
        self._catalogue.completion_handler = handler

    # Overrides

    def override(
        self, fn: Callable[..., Any], replacement: Callable[..., Any] | None = None, *, value: Any = UNSET
    ) -> AbstractContextManager[None]:
        """Replace a resolver on this server with another function or a value, while the block is open."""
        return self._overridden(fn, replacement, value, calling_frame())

    @contextmanager
    def _overridden(
        self, fn: Callable[..., Any], replacement: Callable[..., Any] | None, value: Any, frame: types.FrameType | None
    ) -> Generator[None]:
        ticket = self._overrides.open(fn, replacement, value, frame)
        try:
            yield
        finally:
            self._overrides.close(ticket)
