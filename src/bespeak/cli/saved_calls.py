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

OLDER = "this call is over, because revision {revision} cannot continue one later; {again}"
KEYS_LOST = (
    "this call is over, because the server has made its state keys for this process only; {again}. To continue calls instead, set "
    "BESPEAK_STATE_KEYS (bespeak keys new)"
)
KEYS_UNKNOWN = (
    "the server has ended with this command. The command in 'resume' continues this call if a new process of the server accepts "
    "the requestState of the old one, as Bespeak servers do if BESPEAK_STATE_KEYS is set; otherwise {again}"
)
AGAIN = "the command in 'again' makes a new call, with the answers that you fill in"


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
    asked = {"waiting": {question.name: question.as_json() for question in waiting.questions}}
    told: dict[str, Any] = {"target": target, "revision": connection.version, "answers": answers}
    words = ["bespeak", "call", target, "--resume", "FILE", *secret_options(flags)]
    resume = {"resume": " ".join([shlex.join(words), *missing])}
    whole = {**asked, **resume, **told, "conversation": conversation.as_json()}
    again = {} if flags.resume else {"again": " ".join([shlex.join(["bespeak", "call", *as_words(flags)]), *missing])}
    known = {"revision": connection.version, "again": AGAIN if again else "make the call again"}
    if not is_modern(connection.version):
        return {**asked, **told, **again, "note": OLDER.format(**known)}
    if parse_target(target).url is not None or connection.keeps_state:
        return whole
    if connection.keeps_state is None:
        return {**whole, **again, "note": KEYS_UNKNOWN.format(**known)}
    return {**asked, **told, **again, "note": KEYS_LOST.format(**known)}
