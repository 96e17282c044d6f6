"""`--era`: the protocol revision that a name such as `modern` or `legacy` stands for."""

from bespeak.protocol.versions import LATEST_HANDSHAKE_VERSION, LATEST_MODERN_VERSION, SPOKEN

ERAS = {"modern": LATEST_MODERN_VERSION, "legacy": LATEST_HANDSHAKE_VERSION}


def revision(era: str) -> str:
    """Return the revision that `--era` names. Raises `ValueError`."""
    if era not in (*ERAS, *SPOKEN):
        raise ValueError(f"an era is modern, legacy or one of {', '.join(SPOKEN)}, not {era!r}")
    return ERAS.get(era, era)


def mode_of(era: str) -> str:
    """Return the connection mode for `--era` or `auto`. Raises `ValueError`."""
    return era if era in ("auto", "legacy") else revision(era)
