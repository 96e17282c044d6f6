"""Who sends a request: the access token that was verified, and the principal it stands for."""

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

SHORTEST_STREAM = 1.0
"""Seconds. A token that is accepted because clocks differ must not open streams that end at once, again and again."""


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

    def seconds_left(self, now: float) -> float | None:
        """How long a stream may stay open that the token has opened: until it expires. `None` if it does not expire."""
        expires_at = self.access_token.expires_at
        return max(expires_at - now, SHORTEST_STREAM) if expires_at is not None else None
