"""What the parts of a suite file share: maps without unknown keys, and the kinds of values in them."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Place = tuple[str | int, ...]
"""A place in a suite: keys, and indexes of list entries."""


class Part(BaseModel):
    """A map in a suite file. Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, validate_by_name=False)


def given(written: Any) -> Any:
    """Reject a key without a value: it is not the same as leaving the key out."""
    if written is None:
        raise ValueError("is empty; give it a value, or leave it out")
    return written


def whole(written: Any) -> Any:
    """Read 2.0 as 2."""
    return int(written) if isinstance(written, float) and written.is_integer() else written


def _true(written: Any) -> Any:
    if written is not True:
        raise ValueError("must be true; leave it out otherwise")
    return written


T = TypeVar("T")
Maybe = Annotated[T | None, BeforeValidator(given)]
Flag = Annotated[Literal[True], BeforeValidator(_true)]
Text = Annotated[str, Field(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
