"""Which part of the package may import which: `tests/test_imports.py` enforces it, and docs/architecture.md shows it."""

_EVERYTHING_A_CONVERSATION_NEEDS = {"protocol", "aio", "terminal", "transports", "client"}

MAY_IMPORT: dict[str, set[str]] = {
    "protocol": set(),
    "aio": set(),
    "terminal": {"protocol"},
    "resolve": {"protocol", "aio"},
    "state": {"protocol", "aio", "resolve"},
    "transports": {"protocol", "aio"},
    "server": {"protocol", "aio", "resolve", "state", "transports"},
    "client": {"protocol", "aio", "transports"},
    "conversation": {*_EVERYTHING_A_CONVERSATION_NEEDS, "server.targets"},
    "testing": {*_EVERYTHING_A_CONVERSATION_NEEDS, "conversation", "server"},
    "dev": {*_EVERYTHING_A_CONVERSATION_NEEDS, "conversation", "server"},
}
"""`server.targets` is one module of a part."""
MAY_IMPORT["cli"] = {*MAY_IMPORT}
