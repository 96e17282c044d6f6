"""What a command says when it cannot do what it was told."""

import sys

from bespeak.testing.showing import marked


def complain(problem: str, code: int) -> int:
    """Say what is wrong, on stderr; the exit code. Some of it may be a server's words, so nothing in it steers a terminal."""
    told = "\n".join(map(marked, problem.split("\n")))
    print(f"bespeak: {told}", file=sys.stderr)
    return code
