"""The checks of a graph that can be made before a client connects. Each notes its faults; none stops at the first."""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

from pydantic import TypeAdapter

from bespeak.resolve.asking.form_schemas import FormError, form_of, secret_names, yes_defaults
from bespeak.resolve.asking.once_values import lost_parts
from bespeak.resolve.graph.faults import Faults, warn_at
from bespeak.resolve.graph.model import Draft
from bespeak.resolve.graph.near_misses import Nearness, nearest
from bespeak.resolve.markers import Elicit, Resolve
from bespeak.resolve.reading.callables import Kind
from bespeak.resolve.reading.signatures import EMPTY, Parameter, Signature
from bespeak.resolve.reading.type_hints import (
    NO_SCHEMA,
    arms,
    can_agree,
    is_unknown,
    outcome_class,
    question_class,
    spell,
)

CONTEXT_NAMES = ("ctx", "context")
"""What authors call the context, also when they forget its annotation."""


def is_context(hint: Any, context_type: type) -> bool:
    """Return whether a parameter is the call's context: `Context`, `Context[...]`, or a union with one."""
    return any(
        isinstance(owner, type) and issubclass(owner, context_type)
        for owner in (get_origin(arm) or arm for arm in arms(hint))
    )


def check_exposed(signature: Signature, trail: tuple[str, ...], context_type: type, faults: Faults) -> None:
    """Refuse outcomes and questions as arguments: without `Resolve`, a model could consent in place of a person."""
    told = {defect.parameter for defect in signature.defects}
    for parameter in signature.parameters:
        if parameter.name in told or is_context(parameter.hint, context_type):
            continue
        if parameter.exposed:
            whole = all(outcome_class(arm) for arm in arms(parameter.hint))
            written = spell(parameter.hint) if whole else parameter.exposed[0]
            faults.add(
                signature.place,
                (*trail, parameter.name),
                f"{signature.name}: parameter {parameter.name!r} would let a client supply {written}",
                f"mark it, so that a resolver asks: {parameter.name}: Annotated[{written if whole else '...'}, Resolve(ask)]",
            )


def check_by_hand(signature: Signature, trail: tuple[str, ...], faults: Faults) -> None:
    """Refuse a consumer that has resolvers and also asks by hand."""
    if signature.returns_input_required and any(one.marker for one in signature.parameters):
        faults.add(
            signature.place,
            trail,
            f"{signature.name} has `Resolve` parameters and also returns `InputRequiredResult`; a call asks in one way or the "
            "other, not both",
            "ask everything in resolvers, or everything by hand",
        )


def check_marker(draft: Draft, faults: Faults) -> None:
    """Check the options of a marker."""
    signature, marker = draft.signature, draft.marker
    timeout: Any = marker.timeout
    problems = {
        "is marked guard=True and once=True; a guard runs in every round": (
            marker.guard and marker.once,
            "remove one of the two",
        ),
        "has a timeout that is not a positive number of seconds": (
            not (marker.timeout is None or (isinstance(timeout, (int, float)) and timeout > 0)),
            "write timeout=2.0, or leave it out",
        ),
    }
    for problem, (holds, fix) in problems.items():
        if holds:
            faults.add(signature.place, draft.trail, f"resolver {signature.name!r} {problem}", fix)


def check_near_miss(
    parameter: Parameter, draft: Draft, consumer: Signature, arguments: Mapping[str, Any], faults: Faults, *, warn: bool
) -> None:
    """Refuse a default that is used although there is an argument of almost the same name."""
    taken = {one.name for one in draft.signature.parameters}
    other, near = nearest(parameter.name, [name for name in arguments if name not in taken])
    what = f"parameter {parameter.name!r} of resolver {draft.signature.name!r} uses its default"
    resolved = [one.name for one in consumer.parameters if one.marker and one.name == parameter.name]
    if resolved:
        faults.add(
            draft.signature.place,
            (*draft.trail, f"{parameter.name} <- its default"),
            f"{what}, though {consumer.name} has a resolved parameter of that name",
            how_to_fill(parameter, consumer, arguments),
        )
    elif near is Nearness.NEAR:
        faults.add(
            draft.signature.place,
            (*draft.trail, f"{parameter.name} <- its default"),
            f"{what}, though there is an argument {other!r}",
            f"rename it to {other!r} to receive the argument, or choose a name that is less similar",
        )
    elif near is Nearness.PERHAPS and warn:
        warn_at(draft.signature, f"{what}; if you meant the argument {other!r}, rename one of them")


def how_to_fill(parameter: Parameter, consumer: Signature, arguments: Mapping[str, Any]) -> str:
    """Return how an author can fill a resolver's parameter that nothing fills."""
    resolved = {one.name: one.marker for one in consumer.parameters if one.marker}
    marker = resolved.get(parameter.name)
    if marker is not None:
        named = getattr(marker.fn, "__name__", "fn")
        return f"{parameter.name!r} is itself resolved: mark it here too, Annotated[..., Resolve({named})]"
    if parameter.name in CONTEXT_NAMES and parameter.hint is Any:
        return f"write {parameter.name}: Context"
    near = difflib.get_close_matches(parameter.name, arguments, n=1)
    if near:
        return f"did you mean the argument {near[0]!r}?"
    listed = ", ".join(arguments) or "none"
    return f"use Annotated[..., Resolve(fn)], the Context, a default, or an argument of that name (arguments: {listed})"


def check_guards(drafts: Sequence[Draft], faults: Faults) -> None:
    """Refuse a guard that may ask, or that depends on a resolver that may ask."""
    for draft in drafts:
        if not draft.marker.guard:
            continue
        asking = [draft, *(drafts[below] for below in sorted(draft.below))]
        for one in asking:
            if one.signature.may_ask:
                what = "may ask" if one is draft else f"depends on {one.signature.name!r}, which may ask"
                faults.add(
                    draft.signature.place,
                    draft.trail,
                    f"guard {draft.signature.name!r} {what}; guards run before any question is asked",
                    "change its return annotation so that it does not ask, or remove guard=True",
                )


def check_quiet(drafts: Sequence[Draft], faults: Faults) -> None:
    """Nothing asks where nobody can be asked: while an argument is completed."""
    for draft in drafts:
        signature = draft.signature
        if signature.may_ask:
            why = "" if signature.question_arms else ", because its return annotation does not say what it returns"
            faults.add(
                signature.place,
                draft.trail,
                f"resolver {signature.name!r} may ask{why}, but a completion cannot ask",
                "use a resolver that does not ask" if signature.question_arms else "annotate what it returns",
            )


def check_completions(signature: Signature, trail: tuple[str, ...], faults: Faults) -> None:
    """A resolver's parameters are not typed by a person, so none of them is completed."""
    for parameter in signature.parameters:
        if parameter.completion and not parameter.marker:
            faults.add(
                signature.place,
                (*trail, parameter.name),
                f"parameter {parameter.name!r} of resolver {signature.name!r} is marked with `Complete`, which has an effect "
                "only on parameters of prompts and resource templates",
                "remove it",
            )


def check_once(draft: Draft, faults: Faults) -> TypeAdapter[Any] | None:
    """Return how a `once` value is serialised, if it can be."""
    signature = draft.signature
    if signature.kind is Kind.VALUE:
        return None
    if signature.may_ask:
        problem = "may ask a question, and answers are kept anyway"
    elif signature.kind.is_generator:
        problem = "is a generator, whose value cannot outlive the round"
    else:
        try:
            adapter = TypeAdapter[Any](signature.returns)
            adapter.json_schema(mode="serialization")
        except NO_SCHEMA:
            problem = f"returns {spell(signature.returns)}, which cannot be serialised"
        else:
            lost = lost_parts(signature.returns)
            if lost is None:
                return adapter
            problem = f"returns {spell(signature.returns)}, but {lost} would not survive until the next round"
    faults.add(
        signature.place,
        draft.trail,
        f"resolver {signature.name!r} is marked once=True but {problem}",
        "remove once=True, or return a plain value, a model or a dataclass",
    )
    return None


def check_form(draft: Draft, faults: Faults, *, warn: bool) -> None:
    """Check that the protocol allows the forms in a resolver's return annotation."""
    for arm in draft.signature.question_arms:
        asked = get_args(arm)
        if question_class(arm) is not Elicit or not asked or is_unknown(asked[0]):
            continue
        try:
            form = form_of(asked[0])
        except FormError as error:
            for problem, fix in error.faults:
                faults.add(draft.signature.place, draft.trail, f"the form is not allowed: {problem}", fix)
            continue
        if not warn:
            continue
        for name in secret_names(form):
            warn_at(
                draft.signature,
                f"form field {name!r} of resolver {draft.signature.name!r} is named like a secret; secrets must not "
                "be asked for in a form (the protocol forbids it): use a URL question",
            )
        for name in yes_defaults(form):
            warn_at(
                draft.signature,
                f"form field {name!r} of resolver {draft.signature.name!r} has a default that means yes; clients fill in "
                "defaults by themselves, so nobody may have agreed: remove the default, or let the person choose between "
                "what will happen, such as Literal['refund 40 EUR', 'no refund']",
            )


def check_readable(parameter: Parameter, draft: Draft, faults: Faults) -> None:
    """Check that an argument's whole type can be read, so that no marker in it is lost. For a tool, its schema does."""
    if parameter.unread:
        name, _, where = parameter.unread[0].partition(" ")
        faults.add(
            draft.signature.place,
            (*draft.trail, f"{parameter.name} <- the argument"),
            f"the type of parameter {parameter.name!r} of resolver {draft.signature.name!r} uses a name that cannot be "
            f"found: {name} {where}",
            "define the name in the module, or register the function where it is defined",
        )


def check_options(draft: Draft, marker: Resolve, trail: tuple[str, ...], faults: Faults) -> None:
    """Check that every marker of one resolver in a graph has the same options."""
    if _options(draft.marker) != _options(marker):
        faults.add(
            draft.signature.place,
            trail,
            f"resolver {draft.signature.name!r} is marked with different options in the same graph",
            "use the same key, once, guard and timeout in every Resolve of it",
        )


def check_result_type(draft: Draft, parameter: Parameter, trail: tuple[str, ...], faults: Faults) -> None:
    """Check that a resolver's return type fits the parameter it fills."""
    returns = draft.signature.returns
    if returns is not EMPTY and not can_agree(returns, parameter.hint):
        faults.add(
            draft.signature.place,
            trail,
            f"resolver {draft.signature.name!r} returns {spell(returns)}, but parameter {parameter.name!r} "
            f"takes {spell(parameter.hint)}",
            "make the two types agree",
        )


def check_argument_type(parameter: Parameter, argument: Any, draft: Draft, faults: Faults) -> None:
    """Check that the consumer's argument fits a resolver's parameter of that name. `argument` is its type hint."""
    if not can_agree(argument, parameter.hint):
        faults.add(
            draft.signature.place,
            (*draft.trail, f"{parameter.name} <- the argument"),
            f"parameter {parameter.name!r} of resolver {draft.signature.name!r} takes {spell(parameter.hint)}, "
            f"but the argument of that name is {spell(argument)}",
            "make the two types agree, or rename one of them",
        )


def _options(marker: Resolve) -> tuple[str | None, bool, bool, float | None]:
    return marker.key, marker.once, marker.guard, marker.timeout
