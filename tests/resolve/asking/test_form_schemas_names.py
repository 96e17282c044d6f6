"""A form reads only what it shows: names of fields it does not show, open models, and what cannot be a form."""

from typing import Any

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue
from pydantic.json_schema import SkipJsonSchema

from bespeak.resolve.asking.form_schemas import FormError, form_of


class Skipping(BaseModel):
    ok: bool
    approver: SkipJsonSchema[str] = "nobody"


class ByNameToo(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    ok: bool
    approver: str = Field("nobody", alias="by")


class SeveralNames(BaseModel):
    ok: bool
    approver: str = Field("nobody", validation_alias=AliasChoices("by", "approver"))


class Open(BaseModel):
    model_config = ConfigDict(extra="allow", populate_by_name=True)
    ok: bool
    approver: str = Field("nobody", alias="by")


@pytest.mark.parametrize("model", [Skipping, ByNameToo, SeveralNames, Open])
def test_a_name_the_form_does_not_show_fills_no_field(model: Any) -> None:
    assert form_of(model).value({"ok": True, "approver": "somebody"}).approver == "nobody"


def test_an_open_model_keeps_what_is_no_field_of_its_own() -> None:
    assert form_of(Open).value({"ok": True, "more": 1}).model_extra == {"more": 1}


@pytest.mark.parametrize("wanted", [float])
def test_a_number_no_float_can_hold_does_not_become_infinite(wanted: Any) -> None:
    assert form_of(wanted).faults({"value": 10**400}) == ["value: must be within the supported range"]


def test_a_recursive_field_is_no_form() -> None:
    class Anything(BaseModel):
        a: JsonValue

    with pytest.raises(FormError):
        form_of(Anything)
