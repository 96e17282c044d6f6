"""`MCPServer`: the server object on which an author registers tools."""

import logging
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from bespeak.protocol import wire_types
from bespeak.protocol.capabilities import AskingObstacle
from bespeak.protocol.errors import MCPError
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import LegacyRequest, Request
from bespeak.resolve.errors import ToolError
from bespeak.server.calls.call import Call, Calls
from bespeak.server.calls.concurrency import CallLimits
from bespeak.server.calls.replies import Consumer
from bespeak.server.calls.serving import CallServing
from bespeak.server.composition import Prefix, include
from bespeak.server.context import CallFacts, Context, LifespanT, headers_of
from bespeak.server.context_errors import NoClient
from bespeak.server.decisions import DecisionHook
from bespeak.server.dispatch import Dispatch, find_prompt, find_resource, find_tool
from bespeak.server.features.listing_entries import listing_entry
from bespeak.server.features.listings import CacheableMethod, CacheHint
from bespeak.server.features.registered import Registered
from bespeak.server.features.resource_results import ReadResourceContents, read_contents
from bespeak.server.features.resources import DEFAULT_RESOURCE_SECURITY, ResourceSecurity
from bespeak.server.features.subscriptions import ResourceUpdated
from bespeak.server.features.tools import Tool, own_copies
from bespeak.server.incoming import Incoming
from bespeak.server.legacy.waiting_calls import WaitingCalls, WaitingLimits
from bespeak.server.lifespan import Lifespan
from bespeak.server.middleware import CallHook, RequestHook
from bespeak.server.never_run import defined, used
from bespeak.server.registration import Registration
from bespeak.server.running import RunnableServer
from bespeak.server.server_extensions import declared_extensions
from bespeak.server.shared_store import SharedStore, choose_store
from bespeak.server.straight_calls import StraightCalls
from bespeak.state.ledger import Ledger
from bespeak.state.seal import RequestStateSecurity
from bespeak.state.stores.store import Store
from bespeak.transports.interfaces import (
    Notify,
    OpenQuestions,
    SessionPeer,
    SharedSessions,
    StraightCall,
    WrittenResponse,
)

if TYPE_CHECKING:
    from mcp_types import CallToolResult, GetPromptResult, Icon
    from mcp_types import Prompt as WirePrompt
    from mcp_types import Resource as WireResource
    from mcp_types import ResourceTemplate as WireTemplate
    from mcp_types import Tool as WireTool
    from pydantic import AnyUrl

    from bespeak.server.auth.access_tokens import TokenVerifier
    from bespeak.server.auth.auth_settings import AuthSettings
    from bespeak.transports.http.custom_routes import Route

FnT = TypeVar("FnT", bound=Callable[..., Any])
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class MCPServer(Registration, RunnableServer, Generic[LifespanT]):
    """An MCP server: register tools, prompts and resources on it, and run it or mount it."""

    def __init__(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: "list[Icon] | None" = None,
        version: str = "",
        *,
        tools: Sequence[Tool] | None = None,
        lifespan: "Callable[[MCPServer[LifespanT]], AbstractAsyncContextManager[LifespanT]] | None" = None,
        auth: "AuthSettings | None" = None,
        token_verifier: "TokenVerifier | None" = None,
        resource_security: ResourceSecurity = DEFAULT_RESOURCE_SECURITY,
        request_state_security: RequestStateSecurity | None = None,
        cache_hints: Mapping[CacheableMethod, CacheHint] | None = None,
        store: Store | str | None = None,
        log_level: LogLevel = "INFO",
        page_size: int | None = None,
        question_timeout: float = 600.0,
        question_heartbeat: float | None = 15.0,
        max_waiting_calls: int = 1024,
        max_waiting_calls_per_session: int = 32,
        max_waiting_bytes: int = 64 * 1024 * 1024,
        disconnect_grace: float = 30.0,
        max_concurrent_calls: int | None = None,
        max_concurrent_calls_per_caller: int | None = None,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """A server. `question_timeout` is how long, in seconds, a question pushed to a client of 2025-11-25 and earlier waits
        for its answer.

        `question_heartbeat` is how many seconds of silence such a client hears while its question is open: then a progress
        notification tells it that the call is alive, if it asked for progress. `None` sends none.

        `store` is where spent approvals are remembered, and what workers share: `"sqlite:/path/to/file"` for several processes on
        one machine, `"redis://host:port/0"` for several machines. Without it, the environment variable `BESPEAK_STORE` names the
        store; otherwise it is the memory of this process.

        `auth` and `token_verifier` come together: over HTTP, only requests with an access token that the verifier accepts are
        served. stdio has no authentication.

        `resource_security` says which values in the URIs of resource templates are refused, unless a template says so itself.

        A call of such a client stays in memory while it waits at a question. `max_waiting_calls` bounds how many do, and
        `max_waiting_bytes` what they keep of their requests; a question too many is a tool error. If the client's connection
        is gone for `disconnect_grace` seconds and nothing was approved, the call ends, unless there is an event store.

        `max_concurrent_calls` bounds the calls that run at the same time, and `max_concurrent_calls_per_caller` those of one
        principal, or of one address without authentication. Calls that wait for an answer do not count.

        `extensions` are the extensions of the protocol that the server declares, by identifier, with their settings.
        """
        super().__init__()
        if question_timeout <= 0:
            raise ValueError("question_timeout must be a positive number of seconds")
        if question_heartbeat is not None and not _is_seconds(question_heartbeat):
            raise ValueError("question_heartbeat must be a positive number of seconds, or None for no heartbeats")
        if min(max_waiting_calls, max_waiting_calls_per_session, max_waiting_bytes) < 1:
            raise ValueError(
                "max_waiting_calls, max_waiting_calls_per_session and max_waiting_bytes must be at least 1"
            )
        if not _is_seconds(disconnect_grace):
            raise ValueError("disconnect_grace must be a positive number of seconds")
        if any(one is not None and one < 1 for one in (max_concurrent_calls, max_concurrent_calls_per_caller)):
            raise ValueError(
                "max_concurrent_calls and max_concurrent_calls_per_caller must be at least 1, or None for no limit"
            )
        if page_size is not None and page_size < 1:
            raise ValueError("page_size must be at least 1")
        if (auth is None) != (token_verifier is None):
            raise ValueError(
                "auth and token_verifier must be passed together: MCPServer(auth=AuthSettings(...), token_verifier=...)"
            )
        self._resource_security = resource_security
        self.name = name or "bespeak"
        self.title = title
        self.description = description
        self.instructions = instructions
        self.website_url = website_url
        self.icons = icons
        self.version = version
        texts = {"name": self.name, "title": title, "version": version}
        info = listing_entry({**texts, "description": description, "websiteUrl": website_url}, icons)
        logging.getLogger("bespeak").setLevel(log_level)
        security = request_state_security or RequestStateSecurity()
        kept = choose_store(store, self.name, security)
        self._calls = Calls(security, Ledger(kept, security.clock, security.ttl), self.name)
        self.store_is_shared = kept.shared
        self.keeps_state_keys = security.shared
        """Whether another process can open the states that this one seals."""
        self.has_own_store = store is not None
        self._shared = SharedStore(kept, self._calls, self._catalogue.changes) if kept.shared else None
        self._lifespan = Lifespan(
            (lambda: lifespan(self)) if lifespan else None,
            self._calls.tasks.drain,
            self._shared.opened if self._shared is not None else None,
        )
        self._included: list[MCPServer[Any]] = []
        catalogue = self._catalogue
        catalogue.extensions = declared_extensions(extensions or {})
        if auth is not None and token_verifier is not None:
            from bespeak.server.auth.authenticator import BearerAuthenticator

            shown = title or self.name
            self._authenticator = BearerAuthenticator(auth, token_verifier, shown, catalogue.scopes_needed)
        for tool in own_copies(tools or ()):
            catalogue.tools.add(tool)
        limits = CallLimits(max_concurrent_calls, max_concurrent_calls_per_caller)
        self._serving = CallServing(self._calls, self._context, limits)
        self._dispatch = dispatch = Dispatch(
            info=info,
            instructions=instructions,
            catalogue=catalogue,
            serving=self._serving,
            cache_hints=cache_hints or {},
            page_size=page_size,
            question_seconds=question_timeout,
            question_heartbeat=question_heartbeat,
            waiting=WaitingCalls(
                WaitingLimits(
                    server=max_waiting_calls,
                    session=max_waiting_calls_per_session,
                    bytes=max_waiting_bytes,
                    gone_seconds=disconnect_grace,
                )
            ),
        )
        self._straight = StraightCalls(catalogue.tools, dispatch, self._serving)
        defined(self)

    @property
    def registered(self) -> Sequence[Registered]:
        """Everything that clients reach by a name: tools, prompts, resources and templates, each with its graph."""
        used(self)
        return self._catalogue.all()

    # Middleware

    def on_request(self, hook: RequestHook) -> RequestHook:
        """Register a hook around every request: `async def hook(request, proceed)`. It must return `await proceed()`.

        It may raise `MCPError` to refuse the request. The handshake, `ping` and subscriptions of older clients pass without it.
        """
        self._dispatch.hooks.append(hook)
        return hook

    def on_call(self, hook: CallHook) -> CallHook:
        """Register a hook around every round of a call: `async def hook(call, proceed)`. It must return `await proceed()`.

        It runs when the state of the request was found valid, and may raise `ToolError` or `MCPError` to refuse the call.
        """
        self._serving.hooks.append(hook)
        return hook

    def on_decision(self, hook: DecisionHook) -> DecisionHook:
        """Register a function that is told of every decision: a question asked, answered or declined, an approval spent or refused.

        It may be asynchronous; then it has finished before an approved body begins, and before the client gets its response. What
        it raises is logged and changes nothing. It never gets what was answered.
        """
        self._calls.decisions.hooks.append(hook)
        return hook

    # Several servers

    def include(self, other: "MCPServer[Any]", *, prefix: str | None = None) -> None:
        """Offer everything that another server offers, so that a server can be written in several files.

        This server's name, keys, store and authentication apply. The lifespan of the other one runs inside this server's, and
        its functions get its lifespan value. With a prefix, tools and prompts are called `prefix_name`, and a resource
        `stock://today` is `stock://prefix/today`. What is added to the other server later is offered too.

        Raises `ValueError` if both have something of the same name, or if they would include each other.
        """
        if self in other._everything_included():
            raise ValueError(f"{other.name!r} cannot be included: it is this server, or includes it")
        if other._authenticator is not None and self._authenticator is None:
            raise ValueError(
                f"{other.name!r} has authentication, and this server has none: included, everything of it would be open"
            )
        used(other)
        include(self._catalogue, other._catalogue, Prefix(prefix), other)
        self._included.append(other)
        self._overrides.follow(other._overrides)
        self._lifespan.include(other._lifespan)

    def _all_routes(self) -> "list[Route]":
        return [route for server in self._everything_included() for route in server._routes]

    def _everything_included(self) -> "list[MCPServer[Any]]":
        return [self, *(deeper for one in self._included for deeper in one._everything_included())]

    # Calling without a client

    async def list_tools(self) -> "list[WireTool]":
        """Return the tools as a client would see them."""
        used(self)
        return [wire_types.Tool.model_validate(tool.wire) for tool in self._catalogue.tools.all()]

    async def list_prompts(self) -> "list[WirePrompt]":
        """The prompts as a client would see them."""
        used(self)
        return [wire_types.Prompt.model_validate(prompt.wire) for prompt in self._catalogue.prompts.all()]

    async def list_resources(self) -> "list[WireResource]":
        """The resources as a client would see them."""
        used(self)
        return [wire_types.Resource.model_validate(resource.wire) for resource in self._catalogue.resources.fixed.all()]

    async def list_resource_templates(self) -> "list[WireTemplate]":
        """The resource templates as a client would see them."""
        used(self)
        return [
            wire_types.ResourceTemplate.model_validate(one.wire) for one in self._catalogue.resources.templates.all()
        ]

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[LifespanT, Any] | None = None,
    ) -> "CallToolResult":
        """Call a tool without a client, in a new context or in the given one, and return its result.

        Raises `ToolError` if the call fails. If the tool asks something, the error says how to test such a tool.
        """
        tool = find_tool(self._catalogue, name)
        try:
            result = await self._called(tool, arguments or {}, context)
        except (NoClient, MCPError):
            raise
        except Exception as error:
            raise ToolError(tool.failure_text(error)) from error
        return wire_types.CallToolResult.model_validate(result)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        context: Context[LifespanT, Any] | None = None,
    ) -> "GetPromptResult":
        """Render a prompt without a client.

        Raises `MCPError` if it fails, and an error that says how to test it if it asks.
        """
        prompt = find_prompt(self._catalogue, name)
        return wire_types.GetPromptResult.model_validate(await self._asked_for(prompt, arguments or {}, context))

    async def read_resource(
        self, uri: "str | AnyUrl", context: Context[LifespanT, Any] | None = None
    ) -> list[ReadResourceContents]:
        """Read a resource without a client.

        Raises `MCPError` if there is none or it fails, and an error that says how to test it if it asks.
        """
        resource, arguments = find_resource(self._catalogue, str(uri), headers=headers_of(context))
        return read_contents(await self._asked_for(resource, arguments, context))

    async def _asked_for(
        self, consumer: Consumer, arguments: dict[str, Any], context: Context[LifespanT, Any] | None
    ) -> dict[str, Any]:
        try:
            return await self._called(consumer, arguments, context)
        except (NoClient, MCPError):
            raise
        except Exception as error:  # noqa: BLE001 - the edge where an author's crash becomes an answer
            return consumer.failure(error)

    async def _called(
        self, consumer: Consumer, arguments: dict[str, Any], context: Context[LifespanT, Any] | None
    ) -> dict[str, Any]:
        async with self.running():
            within = context or self._context(CallFacts(consumer.name, consumer.home))
            call = Call(self._calls, consumer, arguments, within, declared=None)
            return await self._calls.shelter(call, call.outcome())

    # Telling clients what has changed

    def notify_tools_changed(self) -> None:
        """Tell clients that the list of tools has changed. Adding and removing tools does that already."""
        self._catalogue.changes.list_changed("tools")

    def notify_prompts_changed(self) -> None:
        """Tell clients that the list of prompts has changed. Adding and removing prompts does that already."""
        self._catalogue.changes.list_changed("prompts")

    def notify_resources_changed(self) -> None:
        """Tell clients that the list of resources has changed. Adding and removing resources does that already."""
        self._catalogue.changes.list_changed("resources")

    def notify_resource_updated(self, uri: "str | AnyUrl") -> None:
        """Tell the clients that subscribe to a resource that its contents have changed. May be called from any thread."""
        self._catalogue.changes.publish(ResourceUpdated(str(uri)))

    # Serving

    def running(self) -> AbstractAsyncContextManager[LifespanT]:
        """Return a context manager for the server's lifespan.

        When the last user leaves, it first waits for claimed calls.
        """
        used(self)
        return self._lifespan.running()

    def peer(
        self,
        unaskable: AskingObstacle | None = None,
        assumed: str | None = None,
        other_workers: OpenQuestions | None = None,
    ) -> SessionPeer:
        """Return the server's side of a new connection, for clients of older revisions. See `Answering.peer`."""
        return self._dispatch.peer(unaskable, assumed, other_workers)

    @property
    def shared_sessions(self) -> SharedSessions | None:
        """The sessions that the workers of the server share; `None` if this process is alone."""
        return self._shared.worker if self._shared is not None else None

    def answer(
        self, request: Request, notify: Notify, headers: Headers | None = None, *, raise_exceptions: bool = False
    ) -> Coroutine[Any, Any, WrittenResponse]:
        """Return the response to one request that a transport has read."""
        return self._dispatch.answer(request, notify, headers, raise_exceptions=raise_exceptions)

    def straight(self, message: Any, headers: Headers) -> StraightCall | None:
        """Return a call that needs nothing but its arguments, ready to be run; `None` for any other message."""
        return self._straight.begin(message, headers)

    def straight_older(
        self, request: LegacyRequest, version: str, headers: Headers
    ) -> Coroutine[Any, Any, WrittenResponse | LegacyRequest] | None:
        """Return a call of an older revision that never waits, ready to be run; `None` for any other request."""
        return self._straight.older(request, version, headers)

    def end_subscriptions(self) -> None:
        """End the streams of modern clients that listen, because the server stops."""
        self._dispatch.end_subscriptions()

    @property
    def attended(self) -> bool:
        """Whether its lifespan is running and will wait, at its end, for calls whose approval is spent."""
        return self._lifespan.attended

    @property
    def ready(self) -> bool:
        """Whether it can serve: it has no lifespan, or its lifespan is running."""
        return self._lifespan.ready

    def _check_scopes(self) -> None:
        scoped = [f"{one.what} {one.name!r}" for one in self._catalogue.all() if one.scopes]
        if scoped and self._authenticator is None:
            raise ValueError(
                f"{', '.join(scoped)} cannot be served over HTTP: scopes need authentication. Pass auth and token_verifier to "
                "MCPServer"
            )

    def _context(self, facts: CallFacts, incoming: Incoming | None = None) -> Context[LifespanT, Any]:
        return Context(
            server=self,
            lifespan_context=(facts.home or self)._lifespan.value,
            facts=facts,
            request=incoming.request if incoming else None,
            notify=incoming.notify if incoming else None,
            headers=incoming.headers if incoming else None,
            asker=incoming.asker if incoming else None,
        )


def _is_seconds(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0.001 <= value < math.inf
