"""Roots as people write them, paths or `file://` URIs, as the URIs that are sent."""

import os
import re
from pathlib import Path

from bespeak.terminal.web_addresses import as_ascii


def root_uri(written: str, folder: Path) -> str:
    """Return the URI of a root. A relative path starts at the folder. Raises `ValueError`, which says what it must be."""
    scheme = re.match(r"([A-Za-z][A-Za-z0-9+.-]+):", written)  # of one letter, it is a drive
    if scheme is None:
        try:
            return Path(os.path.normpath((folder / Path(written).expanduser()).absolute())).as_uri()
        except (OSError, RuntimeError, ValueError):
            raise ValueError("must be a path that can be found") from None
    if not re.match(r"file://[^/\\]*/", written, re.IGNORECASE):
        raise ValueError("must be a path, or a URI such as file:///srv/project")
    return as_ascii(written)
