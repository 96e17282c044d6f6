"""The command line: `bespeak run`, `bespeak test`, `bespeak call`."""

import sys


def main() -> None:
    """What the `bespeak` command does."""
    try:
        from bespeak.cli.commands import app
    except ImportError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("the command line needs typer: pip install 'bespeak[cli]'")
    app()
