"""Answers to questions that belong to no call, such as the roots that a server asks for right after the handshake.

Servers of revision 2025-11-25 and earlier may send such questions at any time. They are answered for the whole connection: with
what its settings say, or else with nothing, a decline or an error. No person is asked, and no test is held responsible.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bespeak.conversation.answers import CannotAnswer, Way
from bespeak.conversation.fixtures import InputResponseFixture, responses_to
from bespeak.conversation.json_values import as_object
from bespeak.conversation.responses import Question, Verdict, read_question
from bespeak.protocol.capabilities import lacking, requirements
from bespeak.protocol.errors import INVALID_PARAMS, METHOD_NOT_FOUND
from bespeak.protocol.methods import ELICIT, ROOTS, SAMPLE
from bespeak.protocol.question_keys import KEY_META
from bespeak.terminal.root_uris import root_path, root_uri
from bespeak.terminal.safe_text import quoted

REFUSED = -1
"""The error code for a question that a person does not want to have answered."""


@dataclass(frozen=True, slots=True)
class Outside:
    """A question outside a call, and what became of it."""

    question: Question
    prepared: bool
    """Whether the settings of the connection had an answer to it."""
    reply: Mapping[str, Any]
    """The members of the response: a result or an error."""
    problem: str = ""
    """Why the prepared answer could not be sent."""


@dataclass(frozen=True, slots=True)
class ConnectionAnswers:
    """The answers that the settings of a connection give."""

    roots: Sequence[Mapping[str, Any]] | None = None
    """The client's roots; `None` if there are none, and nobody has said so."""
    fixture: InputResponseFixture = field(default_factory=InputResponseFixture)

    def covers(self, question: Question) -> bool:
        """Return whether the settings have an answer to a question."""
        try:
            rule = self.fixture.rule_for(question)
        except CannotAnswer:
            return True
        return rule is not None or (question.method == ROOTS and self.roots is not None)

    def answered(self, question: Question, capabilities: Mapping[str, Any]) -> Outside:
        """Return the answer to a question of a client that has declared these capabilities."""
        undeclared = lacking(requirements(question.method or "", question.params), capabilities)
        if undeclared:
            code = INVALID_PARAMS if question.method == ELICIT else METHOD_NOT_FOUND
            return Outside(question, False, _error(code, "the client did not declare this capability"))
        if read_question(question).verdict is Verdict.MALFORMED:
            return Outside(question, False, _error(INVALID_PARAMS, "the question is not valid"))
        try:
            prepared = self._prepared(question)
        except CannotAnswer as error:
            return Outside(question, True, _default(question), str(error))
        return Outside(question, prepared is not None, prepared or _default(question))

    def _prepared(self, question: Question) -> dict[str, Any] | None:
        answer = self.fixture.answer_for(question)
        if answer is None:
            if question.method == ROOTS and self.roots is not None:
                return {"result": {"roots": [dict(root) for root in self.roots]}}
            return None
        if answer.way is Way.OMIT:
            raise CannotAnswer(f"{quoted(question.name)} was asked outside a call and cannot be omitted")
        if answer.declines and question.method != ELICIT:
            return _default(question) if question.method == SAMPLE else _error(REFUSED, "the roots are not shared")
        return {"result": responses_to([question], lambda _: answer)[question.key]}


def _default(question: Question) -> dict[str, Any]:
    """The response to a question without an answer: nothing is shared, and nothing is agreed to."""
    if question.method == ROOTS:
        return {"result": {"roots": []}}
    if question.method == ELICIT:
        return {"result": {"action": "decline"}}
    return _error(REFUSED, "sampling was declined")


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def read_roots(written: Any, folder: Path) -> list[dict[str, Any]]:
    """Return roots as they are sent: from paths, URIs, or `{uri, name}`. Raises `ValueError`."""
    if not isinstance(written, list):
        raise ValueError("roots must be a list of paths, of file:// URIs, or of {uri, name}")
    return [_root(entry, folder) for entry in cast("list[Any]", written)]


def missing_roots(written: Sequence[Any], folder: Path) -> Iterator[tuple[int, str]]:
    """Yield the paths among valid roots that do not exist, each with its number. URIs are sent as they are."""
    for number, entry in enumerate(written):
        uri: Any = cast("dict[str, Any]", entry)["uri"] if isinstance(entry, dict) else entry
        path = root_path(uri, folder)
        if path is not None and not os.path.exists(path):  # noqa: PTH110 - false for a path that cannot exist, too
            yield number, f"the root {quoted(uri)} does not exist ({quoted(str(path))})"


def _root(entry: Any, folder: Path) -> dict[str, Any]:
    members = cast("dict[Any, Any]", entry) if isinstance(entry, dict) else {"uri": entry}
    uri: Any = members.get("uri")
    if not isinstance(uri, str) or not uri or not members.keys() <= {"uri", "name"}:
        raise ValueError("a root is a path, a file:// URI, or {uri, name}")
    name: Any = members.get("name", "")
    if not isinstance(name, str):
        raise ValueError("the name of a root must be a string")
    try:
        return {"uri": root_uri(uri, folder), **({"name": name} if name else {})}
    except ValueError as error:
        raise ValueError(f"the root {quoted(uri)} {error}") from None


def question_of(request: Mapping[str, Any], number: Callable[[str], str] = str) -> Question:
    """Return the question in a request of a server.

    Without a key of its own it is called after its content. `number` makes a key of such a name.
    """
    method: str = request["method"]
    params: dict[str, Any] = request.get("params", {})
    meta: Any = params.get("_meta")
    key: Any = cast("dict[str, Any]", meta).get(KEY_META) if isinstance(meta, dict) else None
    content = {name: value for name, value in params.items() if name != "_meta"}
    return Question(key if isinstance(key, str) else number(_plain_name(method, content)), method, content)


def _plain_name(method: str, params: Mapping[str, Any]) -> str:
    """The name of a question that was pushed without a key: the form's only field, or the kind of question."""
    schema: Any = params.get("requestedSchema")
    fields: Any = as_object(schema).get("properties")
    kinds = {ELICIT: "url" if params.get("mode") == "url" else "form", SAMPLE: "sampling", ROOTS: "roots"}
    only = as_object(fields)
    return next(iter(only)) if len(only) == 1 else kinds[method]
