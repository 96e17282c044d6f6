"""All faults of one form are told at once, each with what would fix it (design 4)."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, SecretStr
from typing_extensions import TypedDict

from bespeak import AcceptedElicitation, Elicit, InvalidSignature, MCPServer, Resolve
from bespeak.resolve.errors import Fault


class Address(BaseModel):
    street: str


class Model(BaseModel):
    name: str
    address: Address
    tags: list[str]
    password: SecretStr
    size: Literal["s", "m"]


@dataclass
class Data:
    name: str
    address: Address
    tags: list[str]
    password: SecretStr
    size: Literal["s", "m"]


class Row(TypedDict):
    name: str
    address: Address
    tags: list[str]
    password: SecretStr
    size: Literal["s", "m"]


def asking(form: Any, name: str = "ask") -> Any:
    async def ask(title: str) -> Any: ...

    ask.__annotations__["return"] = Elicit[form]
    ask.__qualname__ = name
    return ask


def faults(*resolvers: Any) -> tuple[Fault, ...]:
    async def tool(title: str, first: Any, second: Any = None) -> None: ...

    for name, resolver in zip(("first", "second"), resolvers, strict=False):
        tool.__annotations__[name] = Annotated[object, Resolve(resolver)]
    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").add_tool(tool)
    return caught.value.faults


@pytest.mark.parametrize("form", [Model, Data, Row], ids=lambda form: form.__name__)
def test_every_fault_of_a_form_is_told_at_once(form: Any) -> None:
    nested, secret, free = sorted(faults(asking(form)), key=lambda fault: fault.problem)

    assert f"field 'address' of {form.__name__} is nested, and a form must be flat" in nested.problem
    assert nested.fix == "ask for its fields one by one, or chain resolvers"
    assert f"field 'password' of {form.__name__} is a secret" in secret.problem
    assert "URL question" in secret.fix
    assert f"field 'tags' of {form.__name__} is a list without fixed choices" in free.problem
    assert free.fix == "use list[Literal[...]] or a list of an Enum"


def test_the_faults_of_a_form_come_in_the_order_of_its_fields() -> None:
    class Two(BaseModel):
        tags: list[str]
        address: Address
        notes: list[str]

    said = [fault.problem.partition("field ")[2].split()[0] for fault in faults(asking(Two))]
    assert said == ["'tags'", "'address'", "'notes'"]


def test_every_secret_of_a_form_is_told() -> None:
    class Login(BaseModel):
        user: str
        word: SecretStr
        again: SecretStr | None = None

    said = [fault.problem for fault in faults(asking(Login))]
    assert len(said) == 2
    assert "field 'word' of Login is a secret" in said[0]
    assert "field 'again' of Login is a secret" in said[1]


def test_one_fault_is_told_once() -> None:
    class One(BaseModel):
        name: str
        address: Address

    (fault,) = faults(asking(One))
    assert "field 'address' of One is nested" in fault.problem


def test_a_marker_in_a_form_does_not_hide_its_other_faults() -> None:
    async def measure() -> int: ...

    class Marked(BaseModel):
        size: Annotated[int, Resolve(measure)]
        tags: list[str]

    said = "\n".join(fault.problem for fault in faults(asking(Marked)))
    assert "on field 'size' of Marked" in said
    assert "field 'tags' of Marked is a list without fixed choices" in said


def test_an_outcome_in_a_form_is_refused() -> None:
    class Sure(BaseModel):
        ok: bool

    class Nested(BaseModel):
        answer: AcceptedElicitation[Sure]

    (fault,) = faults(asking(Nested))
    assert "'answer'" in fault.problem
    assert fault.fix


def test_the_faults_of_two_forms_are_all_told() -> None:
    class Other(BaseModel):
        tags: list[str]

    said = [fault.problem for fault in faults(asking(Model), asking(Other, "other"))]
    assert len(said) == 4
    assert any("of Other" in problem for problem in said)


def test_the_faults_of_a_form_are_told_beside_those_of_the_signature() -> None:
    async def tool(
        title: str, answer: AcceptedElicitation[Address], got: Annotated[object, Resolve(asking(Model))]
    ) -> None: ...

    with pytest.raises(InvalidSignature) as caught:
        MCPServer("shop").add_tool(tool)

    assert len(caught.value.faults) == 4
    assert str(caught.value).startswith("cannot register 'tool': 4 faults")
    for number, fault in enumerate(caught.value.faults, 1):
        assert f"{number}. {fault.problem}" in str(caught.value)
        assert f"fix: {fault.fix}" in str(caught.value)
        assert fault.place
        assert fault.drawing
