"""From the headers of a request to its caller, or to the challenge that the client gets instead."""

import logging
import time
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from bespeak.protocol.callers import AccessToken, Caller
from bespeak.protocol.headers import Headers
from bespeak.server.auth.access_tokens import TokensUnverifiable, TokenVerifier, current_access_token, principal_of
from bespeak.server.auth.auth_settings import AuthSettings, without_root_slash
from bespeak.server.auth.authorization_header import MalformedToken, RepeatedHeader, bearer_token
from bespeak.server.auth.challenges import Challenges
from bespeak.server.auth.resource_metadata import metadata_document, metadata_url
from bespeak.transports.interfaces import Challenge

logger = logging.getLogger("bespeak.auth")

ScopesNeeded = Callable[[str, Mapping[str, Any]], tuple[str, ...]]
"""The scopes that a request needs beside those that all need, by its method and parameters."""


class BearerAuthenticator:
    """Authenticates the requests to one server. Neither tokens nor claims are logged."""

    def __init__(
        self,
        settings: AuthSettings,
        verifier: TokenVerifier,
        server_name: str,
        scopes_needed: ScopesNeeded,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.metadata = metadata_document(settings, server_name)
        self._settings = settings
        self._verifier = verifier
        self._scopes_needed = scopes_needed
        self._clock = clock
        self._challenges = Challenges(metadata_url(settings), settings.required_scopes)

    async def authenticate(self, headers: Headers) -> Caller | Challenge:
        """The caller, or why there is none."""
        try:
            token = bearer_token(headers)
        except RepeatedHeader:
            return self._challenges.repeated_header
        except MalformedToken:
            return self._challenges.invalid_token
        if token is None:
            return self._challenges.no_token
        try:
            verified = await self._verifier.verify_token(token)
            if not isinstance(verified, (AccessToken, type(None))):  # pyright: ignore[reportUnnecessaryIsInstance] - an author's
                raise TypeError(f"verify_token() must return an AccessToken or None, not {type(verified).__name__}")
        except TokensUnverifiable:
            return self._challenges.unverifiable
        except Exception as error:  # noqa: BLE001 - the edge where an author's crash becomes a response
            # Its message may contain the token.
            where = "".join(traceback.format_tb(error.__traceback__))
            logger.error("the token verifier failed with %s\n%s", type(error).__name__, where)
            return self._challenges.crashed
        return self._challenges.invalid_token if verified is None else self._caller(verified)

    def _caller(self, token: AccessToken) -> Caller | Challenge:
        settings = self._settings
        principal = principal_of(token, settings.issuer_url)
        problem = None
        if token.expires_at is not None and token.expires_at + settings.leeway <= self._clock():
            problem = "it has expired"
        elif settings.validate_token_resource and token.resource is None:
            problem = (
                "the token verifier does not say which server it was issued for; set AccessToken.resource, or set "
                "AuthSettings(validate_token_resource=False) if the verifier checks the audience itself"
            )
        elif (
            settings.validate_token_resource
            and without_root_slash(token.resource or "") != settings.resource_server_url
        ):
            problem = "it was issued for another server"
        elif principal is None:
            problem = "it names no subject and no client"
        if problem is not None or principal is None:
            logger.warning("refused an access token: %s", problem)
            return self._challenges.invalid_token
        scopes = frozenset(token.scopes)
        if not scopes.issuperset(settings.required_scopes):
            return self._challenges.insufficient_scope()
        current_access_token.set(token)
        return Caller(principal, scopes, token)

    def step_up(self, caller: Caller | None, method: str, params: Mapping[str, Any]) -> Challenge | None:
        """The challenge for a request that needs more scopes than its token has; `None` if they suffice."""
        needed = self._scopes_needed(method, params)
        if not needed or (caller is not None and caller.scopes.issuperset(needed)):
            return None
        return self._challenges.insufficient_scope(needed)
