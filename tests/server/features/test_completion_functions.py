"""What may complete an argument: every fault is found at registration, with its path, its place and what to do."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import pytest
from mcp_types import Completion, InputRequiredResult

from bespeak import Complete, Context, Elicit, InvalidSignature, MCPServer, Resolve
from tests.resolve.positions import line_of


async def stock() -> list[str]:
    return ["Dune"]


async def ask_shelf() -> Elicit[str]:
    return Elicit("Which shelf?", str)


def unannotated():  # pyright: ignore[reportUnknownParameterType] - the point
    return ["Dune"]


async def shelves(shelf: Annotated[str, Resolve(ask_shelf)]) -> list[str]:
    return [shelf]


def refusal(completion: Callable[..., Any]) -> InvalidSignature:
    """The error of a prompt whose argument is completed by a function."""

    def order(title: Annotated[Any, Complete(completion)], region: str, copies: int = 1) -> str: ...

    mcp = MCPServer("shop")
    with pytest.raises(InvalidSignature) as caught:
        mcp.prompt()(order)
    return caught.value


def takes_nothing() -> list[str]: ...
def takes_another_argument(region: str) -> list[str]: ...
def takes_a_number(value: int) -> list[str]: ...
def takes_an_unknown(value: str, author: str) -> list[str]: ...
def takes_itself(value: str, title: str) -> list[str]: ...
def nearly(value: str, regoin: str = "eu") -> list[str]: ...
def takes_other_type(value: str, copies: str) -> list[str]: ...
def completed(value: Annotated[str, Complete(takes_nothing)]) -> list[str]: ...
def asks(value: str) -> Elicit[str]: ...
def asks_by_hand(value: str) -> InputRequiredResult: ...
def returns_text(value: str) -> str: ...
async def later(value: str) -> AsyncIterator[str]:
    yield value


def positional(value: str, /) -> list[str]: ...
def resolves_wrongly(value: str, it: Annotated[str, Resolve]) -> list[str]: ...


@pytest.mark.parametrize(
    ("completion", "problem", "fix"),
    [
        (
            takes_nothing,
            "takes_nothing has no parameter for the text typed so far",
            "take it first: def takes_nothing(value: str) -> list[str]",
        ),
        (
            takes_another_argument,
            "parameter 'region' of takes_another_argument would get the text typed so far, but 'region' is another argument of "
            "the prompt",
            "take the text first: value: str",
        ),
        (
            takes_a_number,
            "parameter 'value' of takes_a_number gets the text typed so far, but takes int",
            "annotate it as text: value: str",
        ),
        (
            takes_an_unknown,
            "parameter 'author' of takes_an_unknown cannot be filled: nothing has that name",
            "use Annotated[..., Resolve(fn)], the Context, a default, or another argument (there are: region, copies)",
        ),
        (
            takes_itself,
            "parameter 'title' of takes_itself cannot be filled: nothing has that name",
            "use Annotated[..., Resolve(fn)], the Context, a default, or another argument (there are: region, copies)",
        ),
        (
            nearly,
            "parameter 'regoin' of nearly uses its default, though there is an argument 'region'",
            "rename it to 'region' to receive the argument, or choose a name that is less similar",
        ),
        (
            takes_other_type,
            "parameter 'copies' of takes_other_type takes str, but the argument of that name is int",
            "make the two types agree, or rename one of them",
        ),
        (
            completed,
            "parameter 'value' of completed is marked with `Complete`, which has an effect only on parameters of prompts and "
            "resource templates",
            "remove it",
        ),
        (asks, "asks returns Elicit[str], but a completion cannot ask", "return a list of texts"),
        (
            asks_by_hand,
            "asks_by_hand returns InputRequiredResult, but a completion cannot ask",
            "return a list of texts",
        ),
        (later, "later is an async generator", "return a list of texts"),
        (
            returns_text,
            "returns_text returns one text, but there may be several suggestions",
            "return a list of texts",
        ),
    ],
)
def test_a_function_that_cannot_complete_is_refused(completion: Any, problem: str, fix: str) -> None:
    (fault,) = refusal(completion).faults
    assert fault.problem == problem
    assert fault.fix == fix
    assert fault.place == line_of(completion)
    assert f"title <- {completion.__name__}   {line_of(completion)}" in fault.drawing


@pytest.mark.parametrize(
    ("completion", "problem"),
    [
        (positional, "positional: parameter 'value' is positional-only, so it cannot be filled by name"),
        (resolves_wrongly, "resolves_wrongly: parameter 'it' is marked with `Resolve` without a call"),
    ],
)
def test_a_defect_of_the_function_is_a_fault_of_the_prompt(completion: Any, problem: str) -> None:
    assert problem in [fault.problem for fault in refusal(completion).faults]


def test_a_text_parameter_named_like_another_argument_is_refused() -> None:
    def order(title: Annotated[str, Complete(takes_value)], value: str) -> str: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").prompt()(order)
    (fault,) = caught.value.faults
    assert fault.problem == (
        "parameter 'value' of takes_value would get the text typed so far, but 'value' is another argument of the prompt"
    )
    assert fault.fix == "give the parameter for the text another name, and put it first"


def takes_value(value: str) -> list[str]: ...


def test_a_resolver_that_may_ask_is_refused_with_the_path_to_it() -> None:
    def books(value: str, found: Annotated[list[str], Resolve(shelves)]) -> list[str]: ...

    (fault,) = refusal(books).faults
    assert fault.problem == "resolver 'ask_shelf' may ask, but a completion cannot ask"
    assert fault.fix == "use a resolver that does not ask"
    assert fault.place == line_of(ask_shelf)
    assert [line.strip("└─ ").split()[0] for line in fault.drawing.splitlines()] == ["order", "title", "found", "shelf"]


def test_a_resolver_that_does_not_say_what_it_returns_is_refused() -> None:
    def books(value: str, found: Annotated[list[str], Resolve(unannotated)]) -> list[str]: ...

    (fault,) = refusal(books).faults
    assert fault.problem == (
        "resolver 'unannotated' may ask, because its return annotation does not say what it returns, but a completion "
        "cannot ask"
    )
    assert fault.fix == "annotate what it returns"


def test_a_resolver_below_a_completion_takes_other_arguments_only() -> None:
    async def by_title(title: str) -> list[str]: ...

    def books(value: str, found: Annotated[list[str], Resolve(by_title)]) -> list[str]: ...

    (fault,) = refusal(books).faults
    assert fault.problem == "parameter 'title' of resolver 'by_title' cannot be resolved: nothing fills it"


def test_what_is_not_a_function_is_refused() -> None:
    (fault,) = refusal(["Dune"]).faults  # pyright: ignore[reportArgumentType] - the point
    assert fault.problem == "parameter 'title' has a Complete whose argument is not callable"
    assert fault.fix == "pass a function that takes the text typed so far and returns a list of texts"


def test_the_context_is_not_completed() -> None:
    def order(ctx: Annotated[Context, Complete(takes_value)]) -> str: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").prompt()(order)
    (fault,) = caught.value.faults
    assert fault.problem == "parameter 'ctx' is marked with `Complete`, but it takes the Context, which nobody types"


def test_all_faults_of_a_prompt_are_told_at_once() -> None:
    def books(value: int, author: str) -> str: ...

    def order(title: Annotated[str, Complete(books)], region: Annotated[str, Complete]) -> str: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").prompt()(order)
    assert len(caught.value.faults) == 4


# Where arguments are not completed


def marked(title: Annotated[str, Complete(takes_value)] = "Dune") -> str: ...


def test_a_tool_is_not_completed() -> None:
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").add_tool(marked)
    (fault,) = caught.value.faults
    assert fault.problem == "parameter 'title' is marked with `Complete`, but the arguments of a tool are not completed"
    assert fault.fix == "remove it; it has an effect only on parameters of prompts and resource templates"


def test_a_fixed_resource_is_not_completed() -> None:
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").resource("books://all")(marked)
    (fault,) = caught.value.faults
    assert (
        fault.problem
        == "parameter 'title' is marked with `Complete`, but the arguments of a resource are not completed"
    )


@pytest.mark.parametrize("register", ["add_tool", "prompt"])
def test_a_parameter_of_a_resolver_is_not_completed(register: str) -> None:
    def find(title: Annotated[str, Complete(takes_value)]) -> str: ...

    def order(title: str, found: Annotated[str, Resolve(find)]) -> str: ...

    with pytest.raises(InvalidSignature) as caught:
        getattr(MCPServer("shop"), register)(order)
    (fault,) = caught.value.faults
    assert fault.problem == (
        "parameter 'title' of resolver 'find' is marked with `Complete`, which has an effect only on parameters of prompts "
        "and resource templates"
    )
    assert fault.place == line_of(find)


def test_a_parameter_that_is_not_in_the_uri_is_not_completed() -> None:
    def book(number: int, title: Annotated[str, Complete(takes_value)] = "Dune") -> str: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").resource("books://{number}")(book)
    (fault,) = caught.value.faults
    assert fault.problem == (
        "parameter 'title' is marked with `Complete`, but the URI 'books://{number}' has no variable 'title'"
    )
    assert fault.fix == "write {title} into the URI, or remove the marker"


# The handler


def test_a_handler_takes_reference_argument_and_context() -> None:
    async def handler(ref: Any) -> Completion | None: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").completion()(handler)
    (fault,) = caught.value.faults
    assert fault.problem.endswith("handler does not take the reference, the argument and the context")
    assert fault.fix == "write async def handler(ref, argument, context) -> Completion | None"


def test_a_fourth_parameter_of_a_handler_must_be_filled() -> None:
    async def handler(ref: Any, argument: Any, context: Any, more: str, spare: int = 1) -> Completion | None: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").completion()(handler)
    (fault,) = caught.value.faults
    assert fault.problem.endswith("cannot be filled: nothing has that name")


def test_a_server_has_one_handler() -> None:
    async def handler(ref: Any, argument: Any, context: Any) -> Completion | None: ...

    mcp = MCPServer("shop")
    mcp.completion()(handler)
    with pytest.raises(ValueError, match=r"^a completion handler is already registered; a server has only one$"):
        mcp.completion()(handler)


def lazily(value: str) -> Iterator[str]:
    yield value


def among_others(ctx: str, value: str) -> list[str]: ...


@pytest.mark.parametrize("completion", [lazily, among_others, lambda text: [text]])  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType] - a lambda has no annotations
def test_generators_and_lambdas_may_complete(completion: Any) -> None:
    def order(title: Annotated[str, Complete(completion)], ctx: str = "") -> str: ...

    MCPServer("shop").prompt()(order)
