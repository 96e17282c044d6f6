"""The command line: `bespeak run`, `bespeak test`, `bespeak call`, `bespeak keys`."""

import sys

from bespeak.terminal.closed_pipes import flush


def main() -> None:
    """Run the `bespeak` command."""
    try:
        from bespeak.cli.commands import app
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("the bespeak command needs typer: pip install 'bespeak[cli]'")
    try:
        app()
    finally:
        flush(sys.stdout)
