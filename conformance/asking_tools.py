"""The tools of the suite that ask. Names, arguments, keys and texts are those that the suite expects.

Where the suite accepts any key, resolvers ask. Where it expects a key of its own, the question is made by hand.
"""

from typing import Annotated, Any, Literal

from mcp_types import (
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

from bespeak import AcceptedElicitation, Context, Elicit, ListRoots, NotAsked, Resolve, Sample
from bespeak.server import Tool

CHOICES = ["option1", "option2", "option3"]
TITLED = [{"const": f"value{number}", "title": f"Option {number}"} for number in (1, 2, 3)]


class Name(BaseModel):
    name: str


class Color(BaseModel):
    color: str


class Confirmation(BaseModel):
    ok: bool


class Contact(BaseModel):
    username: str
    email: str


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


def form(message: str, schema: dict[str, Any]) -> ElicitRequest:
    """Return a form to be sent by hand."""
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def text_form(message: str, name: str) -> ElicitRequest:
    """Return a form with one required text, to be sent by hand."""
    return form(message, {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]})


def accepted_text(ctx: Context, key: str, name: str) -> str | None:
    """Return the text that was given for a form made by `text_form`; `None` if there is none."""
    answer = (ctx.input_responses or {}).get(key)
    if not isinstance(answer, ElicitResult) or answer.action != "accept":
        return None
    text = (answer.content or {}).get(name)
    return text if isinstance(text, str) else None


def capital_question() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(text="What is the capital of France?"))
    return Sample([question], max_tokens=100)


def client_roots() -> ListRoots:
    return ListRoots()


def confirm() -> Elicit[Confirmation]:
    return Elicit("Please confirm", Confirmation)


def step1() -> Elicit[Name]:
    return Elicit("Step 1: What is your name?", Name)


def step2(name: Annotated[Name, Resolve(step1)]) -> Elicit[Color]:
    return Elicit(f"Step 2: What is your favorite color, {name.name}?", Color)


# Questions pushed to clients of 2025-11-25


async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    reply = await ctx.session.create_message([message], max_tokens=100)
    text = reply.content.text if isinstance(reply.content, TextContent) else reply.content
    return f"LLM response: {text}"


async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask for the contact data of a person."""
    outcome = await ctx.elicit(message, Contact)
    content = outcome.data.model_dump_json() if isinstance(outcome, AcceptedElicitation) else "{}"
    return f"User response: action={outcome.action}, content={content}"


async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a form whose fields have defaults."""
    outcome = await ctx.elicit("Please review and update the form fields with defaults", Defaults)
    content = outcome.data.model_dump_json() if isinstance(outcome, AcceptedElicitation) else "{}"
    return f"Elicitation completed: action={outcome.action}, content={content}"


def test_elicitation_sep1330_enums(ctx: Context) -> str | InputRequiredResult:
    """Ask with a form that has every kind of choice, the deprecated one with `enumNames` among them."""
    answer = (ctx.input_responses or {}).get("choices")
    if isinstance(answer, ElicitResult):
        return f"Elicitation completed: action={answer.action}, content={answer.content}"
    names = [option["title"] for option in TITLED]
    fields: dict[str, Any] = {
        "untitledSingle": {"type": "string", "enum": CHOICES},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": CHOICES, "enumNames": names},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": CHOICES}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    }
    question = form("Please choose", {"type": "object", "properties": fields})
    return InputRequiredResult(input_requests={"choices": question})


# Questions that end a round, at 2026-07-28


def test_missing_capability(reply: Annotated[CreateMessageResult, Resolve(capital_question)]) -> str:
    """Need a client that has a model."""
    return f"The model said: {reply.content}"


def test_streaming_elicitation(answer: Annotated[Confirmation, Resolve(confirm)]) -> str:
    """Ask for a confirmation."""
    return f"Confirmed: {answer.ok}"


def test_input_required_result_elicitation(ctx: Context) -> str | InputRequiredResult:
    """Ask for a name, under the key that the suite expects."""
    name = accepted_text(ctx, "user_name", "name")
    if name is None:
        return InputRequiredResult(input_requests={"user_name": text_form("What is your name?", "name")})
    return f"Hello, {name}!"


def test_input_required_result_sampling(reply: Annotated[CreateMessageResult, Resolve(capital_question)]) -> str:
    """Ask the client's model."""
    return f"The model said: {reply.content}"


def test_input_required_result_list_roots(roots: Annotated[ListRootsResult, Resolve(client_roots)]) -> str:
    """Ask for the client's roots."""
    return f"Roots: {', '.join(str(root.uri) for root in roots.roots)}"


def test_input_required_result_request_state(answer: Annotated[Confirmation, Resolve(confirm)]) -> str:
    """Ask for a confirmation; the answer counts only with the state of the question."""
    return f"state-ok: {answer.ok}"


def test_input_required_result_multiple_inputs(
    name: Annotated[Name, Resolve(step1)],
    reply: Annotated[CreateMessageResult, Resolve(capital_question)],
    roots: Annotated[ListRootsResult, Resolve(client_roots)],
) -> str:
    """Ask three questions in one round."""
    return f"{name.name}: {reply.content}, {len(roots.roots)} roots"


def test_input_required_result_multi_round(
    name: Annotated[Name, Resolve(step1)], color: Annotated[Color, Resolve(step2)]
) -> str:
    """Ask a second question that depends on the first answer."""
    return f"{name.name} likes {color.color}"


def test_input_required_result_tampered_state(answer: Annotated[Confirmation, Resolve(confirm)]) -> str:
    """Ask for a confirmation; a state that was changed is refused."""
    return f"Confirmed: {answer.ok}"


def test_input_required_result_capabilities(
    name: Annotated[Name | NotAsked, Resolve(step1)],
    reply: Annotated[CreateMessageResult | NotAsked, Resolve(capital_question)],
) -> str:
    """Ask only what the client can answer."""
    return f"Answers: {name}, {reply}"


ASKING_TOOLS = [
    Tool.from_function(fn)
    for fn in (
        test_sampling,
        test_elicitation,
        test_elicitation_sep1034_defaults,
        test_elicitation_sep1330_enums,
        test_missing_capability,
        test_streaming_elicitation,
        test_input_required_result_elicitation,
        test_input_required_result_sampling,
        test_input_required_result_list_roots,
        test_input_required_result_request_state,
        test_input_required_result_multiple_inputs,
        test_input_required_result_multi_round,
        test_input_required_result_tampered_state,
        test_input_required_result_capabilities,
    )
]
