"""What a connection is opened with: the era to speak, the capabilities to declare and the time limit."""

from typing import Any

from bespeak.protocol.versions import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION, SPOKEN

ERAS = {"modern": LATEST_MODERN_VERSION, "legacy": LATEST_HANDSHAKE_VERSION}
EVERYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
"""The client capabilities that are declared by default."""
TIMEOUT_SECONDS = 30.0


def revision(era: str) -> str:
    """Return the revision that `--era` names: one by its date, or the newest of an era. Raises `ValueError`."""
    if era not in (*ERAS, *SPOKEN):
        raise ValueError(f"an era is modern, legacy or one of {', '.join(SPOKEN)}, not {era!r}")
    return ERAS.get(era, era)


def mode_of(era: str) -> str:
    """Return the `Client` mode for an era: `auto`, `legacy` or a revision. Raises `ValueError`."""
    return era if era in ("auto", "legacy") else revision(era)
