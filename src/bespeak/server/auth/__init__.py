"""Authorization of HTTP requests: settings, access tokens and their verification."""

from bespeak.protocol.callers import AccessToken
from bespeak.server.auth.access_tokens import TokensUnverifiable, TokenVerifier, get_access_token
from bespeak.server.auth.auth_settings import AuthSettings
from bespeak.server.auth.jwt_verifier import JWTVerifier

__all__ = ["AccessToken", "AuthSettings", "JWTVerifier", "TokenVerifier", "TokensUnverifiable", "get_access_token"]
