"""Who sends a request: the access token that was verified, and the principal it stands for."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class AccessToken(BaseModel):
    """A verified access token: what a `TokenVerifier` returns. `repr` and errors do not show what is secret in it."""

    model_config = ConfigDict(hide_input_in_errors=True)

    token: str = Field(repr=False)
    client_id: str
    scopes: list[str]
    expires_at: int | None = None
    """In seconds since 1970; `None` if the token does not expire."""
    resource: str | None = Field(default=None, repr=False)
    """The server that the token was issued for (RFC 8707)."""
    subject: str | None = Field(default=None, repr=False)
    claims: dict[str, Any] | None = Field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sends a request, according to its access token."""

    principal: str
    """The issuer and the subject, or the issuer and the client if the token names no subject."""
    scopes: frozenset[str]
    access_token: AccessToken
