"""The names every generated module starts with (programs.py), and a record of what its functions did."""

from pydantic import BaseModel

from bespeak import Resolve


class C(BaseModel):
    """A person's consent. Only clients say yes here, so `ok=True` in a function came from a client."""

    ok: bool


RAN: list[str] = []
"""The resolvers that ran."""
GOT: list[object] = []
"""What the functions under test were given as `answer`."""


async def ask_c(title: str) -> C:
    RAN.append(title)
    return C(ok=False)


async def ask_bool(title: str) -> bool:
    RAN.append(title)
    return False


async def ask_any(title: str) -> object:
    RAN.append(title)
    return C(ok=False)


async def ask_more() -> C:
    RAN.append("more")
    return C(ok=False)


def make_marker() -> Resolve:
    return Resolve(ask_c)


def note(answer: object) -> str:
    """Record what a function under test was given."""
    GOT.append(answer)
    return "done"
