"""`bespeak keys`: make a state key, and replace the state keys of running servers.

Values go to stdout, and every other line there is a comment, so that the output can be kept in a file until the rotation is over.
Errors go to stderr, and do not contain keys.
"""

import secrets
import shlex
from collections.abc import Sequence

from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import complain
from bespeak.state.seal import KEYS_VARIABLE, AESGCMRequestStateCodec, environment_keys

NO_KEYS = f"{KEYS_VARIABLE} is not set, so there is no key to replace. `bespeak keys new` makes a first key"
ROTATION = """\
# These values are secret. Keep them until step 3 is done: running this command again makes another key.
#
# Step 1. Restart all servers with this value. They can then open what the new key seals, and do not
# seal with it yet.
{first}
# Step 2. When all servers run with the value of step 1, restart them with this one. The new key seals
# from then on.
{second}
# Step 3. When all servers have run with the value of step 2 for 1 hour, remove the old {old}.
# 1 hour is the time that a call may take, unless RequestStateSecurity(deadline=...) sets another.
# Results that were stored under the old {old} cannot be read after that, and older clients whose
# sessions began before step 2 must begin new ones."""


def print_new_key() -> int:
    """Print a new key, and nothing else. Return the exit code."""
    print(_new_key())
    return ExitCode.OK


def print_rotation() -> int:
    """Print the values of the environment variable for each step of a rotation. Return the exit code."""
    ring = environment_keys()
    if not ring:
        return complain(NO_KEYS, ExitCode.BAD_USAGE)
    try:
        AESGCMRequestStateCodec(ring)
    except ValueError as error:
        return complain(f"{KEYS_VARIABLE} cannot be used: {error}", ExitCode.BAD_USAGE)
    new = _new_key()
    first, second = _assignment([*ring, new]), _assignment([new, *ring])
    print(ROTATION.format(first=first, second=second, old="key" if len(ring) == 1 else "keys"))
    return ExitCode.OK


def _new_key() -> str:
    return secrets.token_urlsafe(32)


def _assignment(ring: Sequence[str]) -> str:
    return f"{KEYS_VARIABLE}={shlex.quote(','.join(ring))}"
