"""Protected-resource metadata (RFC 9728): the document that tells clients where to get a token, and where it is served."""

from urllib.parse import urlsplit

from pydantic_core import to_json

from bespeak.server.auth.auth_settings import AuthSettings
from bespeak.transports.interfaces import PublicDocument

WELL_KNOWN = "/.well-known/oauth-protected-resource"


def metadata_url(settings: AuthSettings) -> str:
    """The URL of the document: the well-known path stands between the host and the path of the server."""
    parts = urlsplit(settings.resource_server_url)
    return f"{parts.scheme}://{parts.netloc}{_path(settings)}"


def metadata_document(settings: AuthSettings, name: str) -> PublicDocument:
    """The document, and the paths at which it is served: with the path of the server behind the well-known path, and without."""
    content: dict[str, object] = {
        "resource": settings.resource_server_url,
        "authorization_servers": [settings.issuer_url],
        "bearer_methods_supported": ["header"],
        "resource_name": name,
    }
    if settings.required_scopes:
        # Scopes of single tools are left out: clients that have no challenge yet request everything that is listed here.
        content["scopes_supported"] = list(settings.required_scopes)
    if settings.service_documentation_url is not None:
        content["resource_documentation"] = settings.service_documentation_url
    return PublicDocument(frozenset({WELL_KNOWN, _path(settings)}), to_json(content))


def _path(settings: AuthSettings) -> str:
    return WELL_KNOWN + urlsplit(settings.resource_server_url).path
