"""Roots as people write them, paths or `file://` URIs, as the URIs that are sent."""

import os
import re
from pathlib import Path

from bespeak.terminal.web_addresses import as_ascii

NO_PATH = "must be a path that can be found"


def root_path(written: str, folder: Path) -> Path | None:
    """Return the path of a root; `None` if it is written as a URI. Raises `ValueError`, which says what it must be."""
    if re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", written):  # of one letter, it is a drive
        return None
    try:
        return Path(os.path.normpath((folder / Path(written).expanduser()).absolute()))
    except (OSError, RuntimeError, ValueError):
        raise ValueError(NO_PATH) from None


def root_uri(written: str, folder: Path) -> str:
    """Return the URI of a root. A relative path starts at the folder. Raises `ValueError`, which says what it must be."""
    path = root_path(written, folder)
    if path is not None:
        try:
            return path.as_uri()
        except (OSError, ValueError):
            raise ValueError(NO_PATH) from None
    if not re.match(r"file://[^/\\]*/", written, re.IGNORECASE):
        raise ValueError("must be a path, or a URI such as file:///srv/project")
    return as_ascii(written)
