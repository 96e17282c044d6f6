"""Forms that the protocol does not allow, and what the author is told when such a form is registered (design 4)."""

import dataclasses
import typing
from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, Secret, SecretBytes, SecretStr

from bespeak import AcceptedElicitation, Elicit, MCPServer, Resolve
from bespeak.resolve.asking.form_schemas import FormError, form_of, secret_names
from tests.resolve.positions import Position, as_tool, below_a_tool, refusal


class Inner(BaseModel):
    x: int


class Nested(BaseModel):
    inner: Inner


class Recursive(BaseModel):
    again: "Recursive | None" = None


class Fields:
    """Somebody forgot the base class."""

    confirm: bool


class Tags(BaseModel):
    tags: list[str]


@pytest.mark.parametrize(
    ("wanted", "problem", "fix"),
    [
        (Nested, "field 'inner' of Nested is nested", "chain resolvers"),
        (Recursive, "field 'again' of Recursive is nested", "chain resolvers"),
        (dict[str, int], r"dict\[str, int\] is nested", "chain resolvers"),
        (list[Inner], "is a list without fixed choices", "use list"),
        (Tags, "field 'tags' of Tags is a list without fixed choices", "use list"),
        (list[str], r"list\[str\] is a list without fixed choices", "use list"),
        (list[int | str], "list", "use list"),
        (tuple[int, str], "is a list without fixed choices", "use list"),
        (int | str, "no single plain type", "ask for a flat model"),
        (object, "no single plain type", "ask for a flat model"),
        (Callable[[], int], "no JSON schema", "ask for a flat model"),
        ({"type": "object"}, "a dict is not the type of an answer", "ask for a flat model"),
        ([bool], "a list is not the type of an answer", "ask for a flat model"),
        (Fields, "Fields is neither a pydantic model nor a dataclass", r"write class Fields(BaseModel)"),
    ],
)
def test_a_form_the_protocol_does_not_allow_says_what_to_do(wanted: Any, problem: str, fix: str) -> None:
    with pytest.raises(FormError, match=problem) as caught:
        form_of(wanted)
    assert fix in caught.value.fix


class Opaque:
    pass


@dataclasses.dataclass
class Holding:
    thing: Opaque


class Unfinished(BaseModel):
    later: "DefinedNowhere"  # pyright: ignore[reportUndefinedVariable]  # noqa: F821 - the point of the test


@pytest.mark.parametrize("wanted", [Opaque, Holding, Unfinished], ids=lambda one: one.__name__)
def test_a_type_pydantic_cannot_read_is_a_form_error_that_names_it(wanted: Any) -> None:
    with pytest.raises(FormError, match=wanted.__name__):
        form_of(wanted)


def test_a_union_of_literals_in_a_list_is_a_list_of_choices_or_no_form() -> None:
    try:
        items = form_of(list[Literal["a"] | Literal["b"]]).schema["properties"]["value"]["items"]
    except FormError:
        return
    assert items == {"type": "string", "enum": ["a", "b"]}


def test_a_typed_dict_of_the_standard_library_is_a_form_or_a_form_error() -> None:
    class Order(typing.TypedDict):  # which of the two TypedDicts it is matters here
        title: str

    try:
        form = form_of(Order)
    except FormError:
        return
    assert form.schema["required"] == ["title"]


class Clash(Enum):
    FIRST = "SECOND"
    SECOND = 2


@pytest.mark.parametrize("wanted", [Clash, Literal[1, "1"]])
def test_two_choices_with_one_spelling_are_refused(wanted: Any) -> None:
    with pytest.raises(FormError):
        form_of(wanted)


class Password(BaseModel):
    word: SecretStr


class MaybePassword(BaseModel):
    word: SecretStr | None = None


class SecretNumber(BaseModel):
    word: Secret[int]


class HandMade(BaseModel):
    word: str = Field(json_schema_extra={"format": "password"})


class Passwords(BaseModel):
    word: list[SecretStr]


@pytest.mark.parametrize(
    "wanted", [Password, MaybePassword, SecretNumber, HandMade, Passwords, SecretStr, SecretBytes, Secret[date]]
)
def test_a_secret_is_refused_and_the_message_points_to_url_questions(wanted: Any) -> None:
    with pytest.raises(FormError, match="is a secret, and the protocol forbids secrets in forms") as caught:
        form_of(wanted)
    assert "URL question" in caught.value.fix


def test_a_field_merely_named_like_a_secret_is_found() -> None:
    class Login(BaseModel):
        user: str
        password: str
        API_KEY: str

    assert secret_names(form_of(Login)) == ["password", "API_KEY"]


def test_a_marker_in_a_form_is_refused() -> None:
    class Marked(BaseModel):
        x: Annotated[int, Resolve(int)]

    with pytest.raises(FormError, match="has a `Resolve` on field 'x' of Marked, but the client fills in a form"):
        form_of(Marked)


@pytest.mark.parametrize("choices", [{}, {1: "one"}, {"one": 1}, ["ord-1"]])
def test_choices_must_map_strings_to_titles(choices: Any) -> None:
    with pytest.raises(FormError, match="`choices` must map at least one string to its title") as caught:
        form_of(str, choices)
    assert "choices={" in caught.value.fix


def test_choices_need_str() -> None:
    with pytest.raises(FormError, match="`choices` needs str, not int") as caught:
        form_of(int, {"1": "one"})
    assert caught.value.fix == "ask for str and convert it yourself"


# At registration


def asking(form: Any) -> Callable[..., Any]:
    async def ask(title: str) -> Any: ...

    ask.__annotations__["return"] = Elicit[form]
    return ask


class Bad(BaseModel):
    inner: Inner
    size: Literal["s", "m"]
    tags: list[str]
    word: SecretStr
    again: SecretStr | None = None


@dataclasses.dataclass
class BadDataclass:
    inner: Inner
    size: Literal["s", "m"]
    tags: list[str]
    word: SecretStr
    again: SecretStr | None = None


@below_a_tool
@pytest.mark.parametrize("form", [Bad, BadDataclass], ids=lambda form: form.__name__)
async def test_every_fault_of_a_form_is_reported_when_it_is_registered(position: Position, form: Any) -> None:
    error = await refusal(position, asking(form))

    told = {fault.problem.removeprefix("the form is not allowed: "): fault.fix for fault in error.faults}
    assert {problem.partition(",")[0] for problem in told} == {
        f"field 'inner' of {form.__name__} is nested",
        f"field 'tags' of {form.__name__} is a list without fixed choices",
        f"field 'word' of {form.__name__} is a secret",
        f"field 'again' of {form.__name__} is a secret",
    }
    assert all(told.values())
    assert all(fault.place.startswith(f"{__file__}:") for fault in error.faults)


async def test_the_faults_of_a_form_come_in_the_order_of_its_fields() -> None:
    class Two(BaseModel):
        tags: list[str]
        inner: Inner
        notes: list[str]

    error = await refusal(as_tool, taking(asking(Two)))
    said = [fault.problem.partition("field ")[2].split()[0] for fault in error.faults]
    assert said == ["'tags'", "'inner'", "'notes'"]


def taking(*resolvers: Callable[..., Any]) -> Callable[..., Any]:
    """A tool that takes what resolvers return."""

    async def tool(title: str, first: Any, second: Any = None) -> None: ...

    for name, resolver in zip(("first", "second"), resolvers, strict=False):
        tool.__annotations__[name] = Annotated[object, Resolve(resolver)]
    return tool


async def test_a_marker_in_a_form_does_not_hide_its_other_faults() -> None:
    class Marked(BaseModel):
        size: Annotated[int, Resolve(int)]
        tags: list[str]

    error = await refusal(as_tool, taking(asking(Marked)))
    assert "on field 'size' of Marked" in str(error)
    assert "field 'tags' of Marked is a list without fixed choices" in str(error)


async def test_an_outcome_in_a_form_is_refused() -> None:
    class Outcome(BaseModel):
        answer: AcceptedElicitation[Inner]

    assert "field 'answer' of Outcome" in str(await refusal(as_tool, taking(asking(Outcome))))


async def test_the_faults_of_several_forms_and_of_the_signature_are_reported_together() -> None:
    fn = taking(asking(Nested), asking(Tags))
    fn.__annotations__["title"] = AcceptedElicitation[Inner]
    error = await refusal(as_tool, fn)

    assert str(error).startswith("cannot register 'tool': ")
    for part in ("'title'", "field 'inner' of Nested", "field 'tags' of Tags"):
        assert part in str(error)


class NamedLikeOne(BaseModel):
    api_key: str


@below_a_tool
async def test_a_field_merely_named_like_a_secret_is_a_warning(position: Position) -> None:
    mcp = MCPServer("shop")

    with pytest.warns(UserWarning, match=r"field 'api_key' of resolver 'ask' is named like a secret.* URL question"):
        position(mcp, asking(NamedLikeOne))

    assert len(await mcp.list_tools()) == 1


class SaysYes(Enum):
    NO = "no"
    APPROVE_ALL = 1


class Consent(BaseModel):
    confirm: bool = True
    maybe: bool | None = True
    choice: Literal["no", "Yes, refund"] = "Yes, refund"
    all: SaysYes = SaysYes.APPROVE_ALL


class Harmless(BaseModel):
    confirm: bool
    express: bool = False
    maybe: bool | None = None
    choice: Literal["no", "yes"] = "no"
    size: Literal["S", "yesterday's"] = "yesterday's"
    note: str = "yes"


@below_a_tool
@pytest.mark.parametrize("field", Consent.model_fields)
async def test_a_default_that_means_yes_is_a_warning_that_says_why_and_what_to_do(
    position: Position, field: str
) -> None:
    mcp = MCPServer("shop")

    with pytest.warns(UserWarning, match="has a default that means yes") as warned:
        position(mcp, asking(Consent))

    assert [str(one.message) for one in warned if f"{field!r}" in str(one.message)] == [
        f"form field {field!r} of resolver 'ask' has a default that means yes; clients fill in defaults by themselves, so "
        "nobody may have agreed: remove the default, or let the person choose between what will happen, such as "
        "Literal['refund 40 EUR', 'no refund']"
    ]
    assert len(await mcp.list_tools()) == 1


@below_a_tool
async def test_other_defaults_are_no_warning(position: Position) -> None:
    mcp = MCPServer("shop")
    position(mcp, asking(Harmless))
    assert len(await mcp.list_tools()) == 1
