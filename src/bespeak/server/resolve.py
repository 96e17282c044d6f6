"""The engine's four functions under the official SDK's names. They run the same code as a served call."""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

from mcp_types import InputRequiredResult

from bespeak.protocol.errors import INVALID_PARAMS, MCPError
from bespeak.resolve.asking.digests import digest
from bespeak.resolve.asking.progress import Progress
from bespeak.resolve.errors import InvalidSignature
from bespeak.resolve.graph.compiler import compile_graph
from bespeak.resolve.graph.model import Graph, Node
from bespeak.resolve.markers import Elicit, ListRoots, Resolve, Sample
from bespeak.resolve.outcomes import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclinedElicitation,
    ElicitationResult,
)
from bespeak.resolve.reading.callables import Kind, calling_frame
from bespeak.resolve.reading.signatures import EMPTY, Parameter, Signature, read
from bespeak.resolve.reading.type_hints import OUTCOMES
from bespeak.resolve.running.rounds import Round
from bespeak.server.calls.call import EVERYTHING
from bespeak.server.context import Context, asker_of, facts_of, request_of

__all__ = [
    "AcceptedElicitation",
    "CancelledElicitation",
    "DeclinedElicitation",
    "Elicit",
    "ElicitationResult",
    "InvalidSignature",
    "ListRoots",
    "Resolve",
    "ResolvedParameters",
    "ResolverPlans",
    "Sample",
    "build_resolver_plans",
    "find_resolved_parameters",
    "resolve_arguments",
    "returns_input_required",
]


class ResolvedParameters(dict[str, tuple[Resolve, bool]]):
    """Marked parameters as plain data. `parameters` has the rest of what was read: their outcome types and defaults."""

    def __init__(self, parameters: Iterable[Parameter]) -> None:
        self.parameters = {one.name: one for one in parameters if one.marker}
        super().__init__({one.name: (one.marker, bool(one.takes)) for one in self.parameters.values() if one.marker})


class ResolverPlans(dict[Hashable, Node]):
    """The resolvers of a consumer by identity, and their graph."""

    def __init__(self, graph: Graph) -> None:
        super().__init__({who: graph.nodes[index] for who, index in graph.identities.items()})
        self.graph = graph


def find_resolved_parameters(fn: Callable[..., Any]) -> ResolvedParameters:
    """Return the marked parameters of a function, and for each whether it takes outcomes instead of the plain value.

    Raises `InvalidSignature` if a marker would be lost.
    """
    signature = read(fn, calling_frame())
    if signature.defects:
        compile_graph(signature, context_type=Context)
    return ResolvedParameters(signature.parameters)


def returns_input_required(fn: Callable[..., Any]) -> bool:
    """Return whether a function's return annotation has an `InputRequiredResult` arm."""
    return read(fn, calling_frame()).returns_input_required


def build_resolver_plans(
    resolved_params: Mapping[str, tuple[Resolve, bool]], tool_arg_names: set[str]
) -> ResolverPlans:
    """Return the compiled graph of some marked parameters. Raises `InvalidSignature` with all faults at once."""
    known = resolved_params.parameters if isinstance(resolved_params, ResolvedParameters) else {}
    marked = [
        known.get(name, Parameter(name, Any, EMPTY, marker, frozenset(OUTCOMES) if wants_union else frozenset()))
        for name, (marker, wants_union) in resolved_params.items()
    ]
    plain = [Parameter(name, Any, EMPTY) for name in sorted(tool_arg_names)]
    consumer = Signature("tool", "<arguments>", Kind.ASYNC, (*marked, *plain), EMPTY, ())
    return ResolverPlans(compile_graph(consumer, context_type=Context, frame=calling_frame()))


async def resolve_arguments(
    resolved_params: Mapping[str, tuple[Resolve, bool]],
    plans: Mapping[Hashable, Node],
    tool_args: Mapping[str, Any],
    context: Context[Any, Any],
) -> dict[str, Any] | InputRequiredResult:
    """Return the values of the marked parameters, or the open questions. Older clients are asked during this call.

    The tool must return the questions. The server seals the state in them, and passes it back in `context` when the
    client retries. Raises `ToolError` if a person declined something that a consumer needs, and `MissingCapability`,
    which the server answers with -32021, if the client cannot be asked.
    """
    if not isinstance(plans, ResolverPlans):  # a copy of them, say
        plans = build_resolver_plans(resolved_params, set(tool_args))
    if plans.graph.has_generators:
        raise TypeError(
            "a generator resolver must be closed at the end of the call: register the tool instead of calling resolve_arguments"
        )
    facts, request = facts_of(context), request_of(context)
    try:
        progress = Progress.decode(facts.request_state.encode()) if facts.request_state is not None else Progress()
    except ValueError:
        raise MCPError(
            INVALID_PARAMS,
            "invalid or expired requestState; if the call may have taken effect, check before you start it again",
        ) from None
    round_ = Round(
        plans.graph,
        arguments=tool_args,
        context=context,
        progress=progress,
        answers=facts.answers or {},
        declared=request.meta.capabilities if request else EVERYTHING,
        call=digest([request.params.get("name"), request.params.get("arguments")]) if request else "",
        push=asker_of(context),
        hold=facts.hold,
    )
    questions = await round_.ask()
    if questions:
        asked = {"inputRequests": questions, "requestState": progress.encode().decode()}
        return InputRequiredResult.model_validate({"resultType": "input_required", **asked})
    values = await round_.finish()
    return {name: values[name] for name in resolved_params}
