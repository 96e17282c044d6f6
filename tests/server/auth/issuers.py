"""An issuer of really signed access tokens, and servers that accept them."""

import time
from base64 import urlsafe_b64encode
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, Key, OctKey
from joserfc.jws import JWSRegistry
from pydantic_core import to_json

from bespeak import MCPServer
from bespeak.server.auth import AuthSettings, JWTVerifier

ISSUER = "https://login.example.com"
RESOURCE = "https://mcp.example.com/mcp"
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


class _Omitted:
    def __repr__(self) -> str:
        return "OMIT"


OMIT: Any = _Omitted()
"""The value of a claim that is left out."""


def settings(**changed: Any) -> AuthSettings:
    changed = {"issuer_url": ISSUER, "resource_server_url": RESOURCE, **changed}
    return AuthSettings(**changed)


class Issuer:
    """Signs tokens with a key of its own."""

    def __init__(self, kid: str | None = "k1", key: Key | None = None, algorithm: str = "ES256") -> None:
        self.key = key or ECKey.generate_key("P-256", {"kid": kid} if kid else None)
        self.kid = kid
        self.algorithm = algorithm

    @property
    def jwk(self) -> dict[str, Any]:
        data: dict[str, Any] = dict(self.key.as_dict(private=False))
        return {**data, "kid": self.kid} if self.kid else {name: data[name] for name in data if name != "kid"}

    @property
    def jwks(self) -> dict[str, Any]:
        return {"keys": [self.jwk]}

    def token(
        self, subject: Any = "alice", scope: Any = "", *, header: dict[str, Any] | None = None, **claims: Any
    ) -> str:
        """A token of a person; claims that are `OMIT` are left out."""
        all_ = {"iss": ISSUER, "aud": RESOURCE, "exp": int(time.time()) + 600, "sub": subject, "client_id": "agent"}
        all_ |= {"scope": scope, **claims}
        head = {"alg": self.algorithm, **({"kid": self.kid} if self.kid else {}), **(header or {})}
        registry = JWSRegistry(algorithms=[head["alg"]], strict_check_header=False)
        return jwt.encode(
            head, {name: value for name, value in all_.items() if value is not OMIT}, self.key, registry=registry
        )


def forged(header: dict[str, Any], claims: dict[str, Any], signature: bytes = b"") -> str:
    """A token with any header and signature."""
    return ".".join(
        urlsafe_b64encode(part).rstrip(b"=").decode() for part in (to_json(header), to_json(claims), signature)
    )


def signed_with_secret(secret: bytes, header: dict[str, Any], **claims: Any) -> str:
    """A token of the person `alice` that is signed with a secret."""
    issuer = Issuer(None, OctKey.import_key(secret), "HS256")
    return issuer.token(header=header, **claims)


def protected_server(issuer: Issuer, name: str = "Shop", **options: Any) -> MCPServer[Any]:
    """A server that accepts the tokens of an issuer."""
    auth = options.pop("auth", None) or settings()
    return MCPServer(name, auth=auth, token_verifier=JWTVerifier(auth, issuer.jwks), **options)
