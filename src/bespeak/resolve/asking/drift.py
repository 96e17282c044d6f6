"""Finds questions that change from round to round for no reason, so that nobody is asked endlessly."""

import logging

from bespeak.resolve.asking.progress import Shown
from bespeak.resolve.asking.questions import Rendered
from bespeak.resolve.errors import ResolverFailed
from bespeak.resolve.graph.model import Node

logger = logging.getLogger("bespeak.resolve")

DRIFT_LIMIT = 3
"""How often in a row a question may be shown in another form."""


def shown_again(node: Node, question: Rendered, pin: str, rests: str, attempts: int, before: Shown | None) -> Shown:
    """Return the record of a question that is shown. Raises `ResolverFailed` if it keeps changing."""
    takes_tries = question.form is not None and question.form.takes_tries
    if before is None or before.rests != rests or before.pin == pin:
        return Shown(pin, rests, 0, attempts, (question.text,), takes_tries)
    renderings = (*before.renderings, question.text)
    if before.drift + 1 >= DRIFT_LIMIT:
        listed = "\n".join(f"  {number}. {text}" for number, text in enumerate(renderings, 1))
        logger.error("the question of resolver %r keeps changing:\n%s", node.name, listed)
        reason = "asks a question that changes from round to round; derive it from arguments and earlier answers only"
        raise ResolverFailed(node.name, node.path, reason)
    return Shown(pin, rests, before.drift + 1, attempts, renderings, takes_tries)
