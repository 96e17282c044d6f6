"""`JWTVerifier`: access tokens that are signed JSON Web Tokens. Signatures are `joserfc`'s business, and so are times."""

import importlib.util
import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from bespeak.protocol.callers import AccessToken
from bespeak.server.auth.auth_settings import AuthSettings, without_root_slash
from bespeak.server.auth.jwks import KEY_TYPES, KeySource, key_source
from bespeak.transports.interfaces import MissingExtra

if TYPE_CHECKING:
    from joserfc.jwk import Key

logger = logging.getLogger("bespeak.auth")

ALGORITHMS = tuple(name for name in KEY_TYPES if name != "EdDSA")
"""What is accepted by default. `EdDSA` is deprecated by RFC 9864, and accepted if it is named."""
SECRET_ALGORITHMS = ("HS256", "HS384", "HS512")
SHORTEST_SECRET = 32
MOST_CHARACTERS = 16 * 1024
"""Of a token."""


class InvalidToken(Exception):
    """Why a token is refused: for the log, so without anything that the token says."""


class JWTVerifier:
    """Verifies access tokens that are signed JSON Web Tokens.

    A token must be signed with a key of the issuer, by an accepted algorithm; its `iss` must be the issuer of `settings`, its
    `aud` must contain the URL of this server, and its `exp` must not have passed.
    """

    def __init__(
        self,
        settings: AuthSettings,
        keys: Mapping[str, Any] | Path | str | None = None,
        *,
        secret: str | bytes | None = None,
        algorithms: Sequence[str] | None = None,
        audience: str | Sequence[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """A verifier for `MCPServer(token_verifier=...)`. Raises `MissingExtra` if `joserfc` is not installed.

        `keys` is the issuer's JSON Web Key Set: as a dict, as the `pathlib.Path` of a file, or as its URL. `secret` is for
        issuers that sign with a shared secret; then `algorithms` must name the algorithm. `audience` is for issuers that do
        not put the server's URL into `aud`, but a name of their own.
        """
        if importlib.util.find_spec("joserfc") is None:
            raise MissingExtra("JWTVerifier needs joserfc: pip install 'bespeak[auth]'")
        from joserfc.jws import JWSRegistry
        from joserfc.jwt import ClaimsOption, JWTClaimsRegistry

        self._algorithms = _checked_algorithms(algorithms, with_secret=secret is not None)
        if (keys is None) == (secret is None):
            raise ValueError("pass the issuer's keys or its secret, not both")
        self._keys: KeySource = SecretKey(secret) if secret is not None else key_source(keys or {})
        self._resource = settings.resource_server_url if settings.validate_token_resource else None
        self._registry = JWSRegistry(algorithms=self._algorithms, strict_check_header=False)
        issuer = settings.issuer_url
        options: dict[str, ClaimsOption] = {
            "exp": {"essential": True},
            "iss": {"essential": True, "values": _spellings([issuer])},
        }
        if settings.validate_token_resource:
            accepted = [settings.resource_server_url] if audience is None else audience
            accepted = [accepted] if isinstance(accepted, str) else list(accepted)
            if not accepted:
                raise ValueError(
                    "audience must not be empty; to accept any, set AuthSettings(validate_token_resource=False)"
                )
            options["aud"] = {"essential": True, "values": _spellings(accepted)}
        self._claims = JWTClaimsRegistry(lambda: int(clock()), int(settings.leeway), **options)

    async def verify_token(self, token: str) -> AccessToken | None:
        """The verified token; `None` if it is not valid. Raises `TokensUnverifiable` if the keys cannot be loaded."""
        try:
            return self._access_token(token, await self._verified(token))
        except InvalidToken as reason:
            logger.warning("refused an access token: %s", reason)
            return None

    async def _verified(self, token: str) -> dict[str, Any]:
        """The claims of a token whose signature and claims are right. Raises `InvalidToken`."""
        from joserfc.errors import ExpiredTokenError, InvalidClaimError, JoseError, MissingClaimError
        from joserfc.jws import extract_compact, validate_compact

        if len(token) > MOST_CHARACTERS or not token.isascii():
            raise InvalidToken(f"it is not ASCII, or has more than {MOST_CHARACTERS} characters")
        try:
            signed = extract_compact(token.encode(), registry=self._registry)
            algorithm, kid = _named_key(signed.headers())
        except (JoseError, ValueError, TypeError, AttributeError, RecursionError):
            raise InvalidToken("it is not a signed JSON Web Token") from None
        if algorithm not in self._algorithms:
            raise InvalidToken(f"it is not signed with one of the algorithms {', '.join(self._algorithms)}")
        key = await self._keys.find(kid, algorithm)
        if key is None:
            raise InvalidToken("the issuer has no such key, or the key does not fit the algorithm")
        try:
            valid = validate_compact(signed, key, registry=self._registry)
        except (JoseError, ValueError, TypeError):
            valid = False
        if not valid:
            raise InvalidToken("the signature is wrong")
        try:
            claims: Any = json.loads(signed.payload)
            if not isinstance(claims, dict):
                raise InvalidToken("its claims are not an object")
            self._claims.validate(cast("dict[str, Any]", claims))
        except ExpiredTokenError:
            raise InvalidToken("it has expired") from None
        except (MissingClaimError, InvalidClaimError) as error:
            # Only registered claims are looked at, so their names are not the token's own words.
            raise InvalidToken(f"the claim {error.claim!r} is missing, or is not what it must be") from None
        except (ValueError, RecursionError):
            raise InvalidToken("its claims are not valid JSON") from None
        return cast("dict[str, Any]", claims)

    def _access_token(self, token: str, claims: dict[str, Any]) -> AccessToken:
        client = next((claims[name] for name in ("client_id", "azp") if isinstance(claims.get(name), str)), "")
        return AccessToken(
            token=token,
            client_id=client,
            scopes=_scopes(claims.get("scope", claims.get("scp"))),
            expires_at=int(claims["exp"]),
            resource=self._resource,
            subject=claims.get("sub"),
            claims=claims,
        )


class SecretKey:
    """A secret that is shared with the issuer."""

    def __init__(self, secret: str | bytes) -> None:
        from joserfc.jwk import OctKey

        raw = secret.encode() if isinstance(secret, str) else secret
        if len(raw) < SHORTEST_SECRET:
            raise ValueError(f"the secret needs at least {SHORTEST_SECRET} bytes")
        self._key = OctKey.import_key(raw)

    async def find(self, kid: str | None, algorithm: str) -> "Key | None":
        return self._key


def _checked_algorithms(algorithms: Sequence[str] | None, *, with_secret: bool) -> tuple[str, ...]:
    """The accepted algorithms. Secrets and public keys are never mixed: a public key is not a secret."""
    if algorithms is None and not with_secret:
        return ALGORITHMS
    known = SECRET_ALGORITHMS if with_secret else tuple(KEY_TYPES)
    if not algorithms or isinstance(algorithms, str) or not set(algorithms) <= set(known):
        what = "a secret" if with_secret else "public keys"
        raise ValueError(f"with {what}, algorithms must be a list of some of these: {', '.join(known)}")
    return tuple(algorithms)


def _named_key(header: dict[str, Any]) -> tuple[str, str | None]:
    """The algorithm and the key that a token names. Raises `TypeError` if they are not texts."""
    algorithm, kid = header["alg"], header.get("kid")
    if not isinstance(algorithm, str) or not isinstance(kid, (str, type(None))):
        raise TypeError
    return algorithm, kid


def _spellings(names: Sequence[str]) -> list[str]:
    """Names with the spellings that mean the same: a URL without a path may end with a slash."""
    return [spelling for name in names for spelling in (name, f"{name}/") if without_root_slash(spelling) == name]


def _scopes(said: Any) -> list[str]:
    """Scopes as issuers write them: names in one text, or a list."""
    if isinstance(said, str):
        return said.split(" ")
    return [name for name in cast("list[Any]", said) if isinstance(name, str)] if isinstance(said, list) else []
