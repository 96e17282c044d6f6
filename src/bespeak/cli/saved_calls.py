"""A call that waits for answers, as it is printed: the open questions, and how to continue it or to make it again.

A state can be opened only with the keys that sealed it. A server behind a URL keeps running, and keeps its keys. A server that
this command has started ends with it, and often makes new keys when it is started again.
"""

import shlex
from typing import Any

from bespeak.cli.call_flags import Flags, as_words, secret_options
from bespeak.cli.prepared_answers import Waiting
from bespeak.conversation.call_rounds import Conversation
from bespeak.conversation.connection import Connection
from bespeak.conversation.server_targets import parse_target
from bespeak.protocol.versions import is_modern

OLDER = "the server has ended the call, because revision {revision} cannot continue one later"
KEYS_LOST = (
    "the server has made its state keys for this process only, so nobody can continue the call; to make that possible, set "
    "BESPEAK_STATE_KEYS (bespeak keys new)"
)
KEYS_UNKNOWN = (
    "the server has ended with this command; resume works only if it keeps its state keys, for example in "
    "BESPEAK_STATE_KEYS; otherwise make the call again"
)


def put_down(
    target: str,
    answers: dict[str, Any],
    conversation: Conversation,
    connection: Connection,
    waiting: Waiting,
    flags: Flags,
) -> dict[str, Any]:
    """Return a call that is waiting, and how to continue it."""
    missing = [f"--answer {shlex.quote(question.name)}=..." for question in waiting.questions]
    told: dict[str, Any] = {
        "waiting": {question.name: question.as_json() for question in waiting.questions},
        "target": target,
        "revision": connection.version,
        "answers": answers,
    }
    words = ["bespeak", "call", target, "--resume", "FILE", *secret_options(flags)]
    resume = {"conversation": conversation.as_json(), "resume": " ".join([shlex.join(words), *missing])}
    again = {} if flags.resume else {"again": " ".join([shlex.join(["bespeak", "call", *as_words(flags)]), *missing])}
    if not is_modern(connection.version):
        return {**told, **again, "note": OLDER.format(revision=connection.version)}
    if parse_target(target).url is not None or connection.keeps_state:
        return {**told, **resume}
    if connection.keeps_state is None:
        return {**told, **resume, **again, "note": KEYS_UNKNOWN}
    return {**told, **again, "note": KEYS_LOST}
