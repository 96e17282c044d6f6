"""Authorization of HTTP requests: settings, access tokens and their verification. The names are imported when they are used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bespeak.protocol.callers import AccessToken as AccessToken
    from bespeak.server.auth.access_tokens import TokensUnverifiable as TokensUnverifiable
    from bespeak.server.auth.access_tokens import TokenVerifier as TokenVerifier
    from bespeak.server.auth.access_tokens import get_access_token as get_access_token
    from bespeak.server.auth.auth_settings import AuthSettings as AuthSettings
    from bespeak.server.auth.jwt_verifier import JWTVerifier as JWTVerifier

_HOMES = {
    "AccessToken": "bespeak.protocol.callers",
    "AuthSettings": "bespeak.server.auth.auth_settings",
    "JWTVerifier": "bespeak.server.auth.jwt_verifier",
    "TokenVerifier": "bespeak.server.auth.access_tokens",
    "TokensUnverifiable": "bespeak.server.auth.access_tokens",
    "get_access_token": "bespeak.server.auth.access_tokens",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'bespeak.server.auth' has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
