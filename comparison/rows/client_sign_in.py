# pyright: basic, reportMissingImports=false
"""Signing a client in with OAuth."""

from importlib import import_module

from comparison import frameworks as f

HOMES = {"bespeak": "bespeak.client.auth", "mcp": "mcp.client.auth", "fastmcp": "fastmcp.client.auth"}
try:
    module = import_module(HOMES[f.FRAMEWORK])
except ModuleNotFoundError:
    f.report(False, "not available")
else:
    names = [name for name in ("OAuth", "OAuthClientProvider") if hasattr(module, name)]
    f.report(bool(names), f"`{names[0]}`" if names else "not available")
