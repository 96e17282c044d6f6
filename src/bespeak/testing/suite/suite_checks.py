"""Mistakes in a suite that its schema cannot find: unknown names, invalid answers, keys without effect."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.matchers import Operator, parse_matcher
from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS, SPOKEN
from bespeak.testing.suite.suite_file import MODES, Expect, RoundExpect, Server, SuiteModel, Test
from bespeak.testing.suite.variables import NAME, has_holes, names_in
from bespeak.testing.value_paths import EVERY, parse_path

TEXT_FOR_PEOPLE = ("message", "description")
Place = tuple[str | int, ...]
"""A place in a suite: keys, and indexes of list entries."""


def mistakes_in(model: SuiteModel, value: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from _revisions(("eras",), model.eras)
    if model.server is not None and model.server not in model.servers:
        yield ("server",), f"there is no server {model.server!r}; servers: {', '.join(model.servers)}"
    for name, server in model.servers.items():
        place: Place = ("servers", name)
        if server.protocol not in MODES:
            yield (*place, "protocol"), f"protocol is one of {', '.join(MODES)}, not {server.protocol!r}"
        known = {"port"} if server.command is not None and server.url is not None else set[str]()
        yield from _holes(place, value["servers"][name], known)
    for number, written in enumerate(model.redact):
        yield from _checked(("redact", number), _redactable, written)
        if has_holes(written):
            yield ("redact", number), "a path cannot contain ${...}; write it out"
    yield from _holes(("cassettes",), value.get("cassettes"), set())
    seen: dict[str, int] = {}
    captured: dict[str, set[str | None]] = {}
    for number, test in enumerate(model.tests):
        place = ("tests", number)
        if test.name in seen:
            yield (*place, "name"), f"there is another test called {test.name!r}"
        eras = [era for era in _eras(test, model) if era is not None]
        rows = [case.name for case in test.cases or ()]
        titles = {f"{test.name} [{', '.join(more)}]" for more in _products(rows, eras)}
        if test.name not in seen and (titles | {test.name}) & seen.keys():
            yield (*place, "name"), "with its case or era, the test has the same title as another test"
        seen |= dict.fromkeys(titles | {test.name}, number)
        yield from _test(place, test, value["tests"][number], model)
        yield from _holes(place, value["tests"][number], set(captured))
        yield from _elsewhere(place, test, value["tests"][number], captured, model)
        for name in test.capture:
            if not NAME.fullmatch(name) or name == "port":
                yield (*place, "capture", name), "a name consists of letters, digits, _ and -, and must not be port"
            elif name in captured:
                yield (*place, "capture", name), f"another test captures {name!r} already"
            captured[name] = _eras(test, model)


def _holes(place: Place, written: Any, known: set[str]) -> Iterator[tuple[Place, str]]:
    """Each `${...}` without a value, and where it is."""
    if isinstance(written, dict):
        for key, member in cast("dict[str, Any]", written).items():
            yield from _holes((*place, key), key, known)
            yield from _holes((*place, key), member, known)
    elif isinstance(written, list):
        for number, entry in enumerate(cast("list[Any]", written)):
            yield from _holes((*place, number), entry, known)
    for name in names_in(written) if isinstance(written, str) else ():
        if name.startswith("env:") and not NAME.fullmatch(name.removeprefix("env:")):
            yield place, f"${{{name}}} does not name an environment variable; write ${{env:NAME}}"
        elif not name.startswith("env:") and name not in known:
            yield place, f"${{{name}}} has no value here: {_fillable(place)}"


def _eras(test: Test, model: SuiteModel) -> set[str | None]:
    """The revisions at which a test runs."""
    return set(test.eras or model.eras or [None])


def _elsewhere(
    place: Place, test: Test, written: Any, captured: Mapping[str, set[str | None]], model: SuiteModel
) -> Iterator[tuple[Place, str]]:
    """Captured values that are missing at some of the revisions where they are used."""
    if test.capture and test.cases:
        yield (*place, "capture"), "a test with cases cannot capture: each case would capture a different value"
    for name in sorted({name for name in names_in(written) if name in captured}):
        if not _eras(test, model) <= captured[name]:
            yield (
                place,
                f"${{{name}}} is captured at different revisions than this test runs at; give both tests the same eras",
            )


def _products(rows: Sequence[str], eras: Sequence[str]) -> Iterator[list[str]]:
    """The combinations of case and era in the titles of a test."""
    for row in rows or [None]:
        for era in eras or [None]:
            more = [part for part in (row, era) if part is not None]
            if more:
                yield more


def _fillable(place: Place) -> str:
    if place[0] == "tests":
        return "no test before this one captures it; write $${ for a literal ${"
    return "a server may use ${env:NAME}, and ${port} if it has a command and a url"


def _revisions(place: Place, eras: Sequence[str] | None) -> Iterator[tuple[Place, str]]:
    for number, era in enumerate(eras or ()):
        if era not in SPOKEN:
            yield (*place, number), f"unknown revision {era!r}; revisions: {', '.join(SPOKEN)}"
        elif eras is not None and era in eras[:number]:
            yield (*place, number), f"{era} is listed twice"


def _test(place: Place, test: Test, written: Mapping[str, Any], model: SuiteModel) -> Iterator[tuple[Place, str]]:
    servers = ", ".join(model.servers)
    if test.server is None and model.server is None and len(model.servers) > 1:
        yield place, f"name the server to use: {servers}"
    elif test.server is not None and test.server not in model.servers:
        yield (*place, "server"), f"there is no server {test.server!r}; servers: {servers}"
    eras = test.eras if test.eras is not None else model.eras
    yield from _revisions((*place, "eras"), test.eras)
    older = [era for era in eras or () if era in HANDSHAKE_PROTOCOL_VERSIONS]
    if older and (test.tamper or test.fault):
        what = "tamper" if test.tamper else "fault"
        yield (
            (*place, what),
            f"{what} needs rounds, and revision {older[0]} does not have them; give this test its own eras",
        )
    yield from _said(place, written)
    known = model.servers.get(test.server or model.server or next(iter(model.servers)))
    yield from _useless(place, test, known)
    for name, path in test.capture.items():
        yield from _checked((*place, "capture", name), _single, path)
    names: set[str] = set()
    for number, case in enumerate(test.cases or ()):
        if case.name in names:
            yield (*place, "cases", number), f"there is another case called {case.name!r}"
        names.add(case.name)
        if case.inputResponses is not None and (case.rounds is not None or test.rounds is not None):
            yield (*place, "cases", number), "inputResponses and rounds both give answers; use one"
        if case.rounds is not None and test.inputResponses is not None:
            yield (*place, "cases", number), "inputResponses and rounds both give answers; use one"
        yield from _said((*place, "cases", number), written["cases"][number])
    verify: Any = written.get("verify", [])
    for number, one in enumerate(cast("list[Any]", verify) if isinstance(verify, list) else ()):
        yield from _said((*place, "verify", number), one)
    if isinstance(verify, dict):
        yield from _said((*place, "verify"), cast("dict[str, Any]", verify))


def _useless(place: Place, test: Test, server: Server | None) -> Iterator[tuple[Place, str]]:
    """Keys that would be accepted and have no effect."""
    for number, case in enumerate(test.cases or ()):
        if test.resource is not None and case.arguments is not None:
            yield (*place, "cases", number, "arguments"), "a resource takes no arguments"
        if test.tool is None and case.expect is not None and case.expect.isError is not None:
            yield (*place, "cases", number, "expect", "isError"), "only the result of a tool has isError"
    if test.fresh and server is not None and server.command is None:
        yield (*place, "fresh"), "only a server with a command can be restarted"
    if test.resource is not None and test.tamper is not None and test.tamper.arguments is not None:
        yield (*place, "tamper"), "a resource takes no arguments, so other-arguments does not apply"
    for where, target in [(place, test), *(((*place, "verify"), one) for one in test.verify or ())]:
        if target.tool is None and target.expect.isError is not None:
            yield (*where, "expect", "isError"), "only the result of a tool has isError"
        if target.expect.error is not None and target.expect.isError is not None:
            yield (
                (*where, "expect", "isError"),
                "a call ends with an error or with a result that has isError; expect one of them",
            )
    if test.maxRounds is not None and test.rounds is not None and test.maxRounds < len(test.rounds):
        yield (*place, "maxRounds"), "the test has more rounds than maxRounds allows"


def _redactable(written: str) -> None:
    """Raises `ValueError` for a path to a value that a replay needs."""
    path = parse_path(written)
    if path[0] == "resultType" or (path[0] == "inputRequests" and path[-1] not in TEXT_FOR_PEOPLE):
        told = ", ".join(TEXT_FOR_PEOPLE)
        raise ValueError(
            f"{written!r} cannot be redacted: a question needs it. In a question, only text for people can be "
            f"redacted: {told}"
        )


def _single(path: str) -> None:
    if EVERY in parse_path(path):
        raise ValueError(f"the path {path!r} matches many values; name one")


def _said(place: Place, written: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Mistakes in answers and expectations."""
    for name in ("inputResponses", "input_responses"):
        if name in written:
            yield from _answers((*place, name), written[name])
    yield from _expectations((*place, "expect"), written.get("expect", {}), Expect)
    for number, one in enumerate(written.get("rounds") or ()):
        at = (*place, "rounds", number)
        if "answer" in one:
            yield from _answers((*at, "answer"), one["answer"])
        yield from _expectations((*at, "expect"), one.get("expect", {}), RoundExpect)


def _answers(place: Place, written: Any) -> Iterator[tuple[Place, str]]:
    """Check each answer separately, so that each mistake has its line."""
    if isinstance(written, dict):
        for key, one in cast("dict[str, Any]", written).items():
            yield from _checked((*place, key), InputResponseFixture, {key: one}, f"{key}: ")
    elif isinstance(written, list):
        rules = cast("list[Any]", written)
        for number, one in enumerate(rules):
            yield from _checked((*place, number), InputResponseFixture, [one], "[0]: ")
        last = next((number for number, one in enumerate(rules) if _is_otherwise(one)), len(rules))
        if last < len(rules) - 1:
            yield (*place, last + 1), "no rule may follow otherwise: it matches everything"
        ids = [cast("dict[str, Any]", one).get("id") for one in rules if isinstance(one, dict)]
        known: set[Any] = set()
        for number, id_ in enumerate(ids):
            if isinstance(id_, str) and id_ in known:
                yield (*place, number), f"the id {id_!r} is used twice"
            known.add(id_ if isinstance(id_, str) else None)
    else:
        yield place, "answers must be a map of key to answer, or a list of rules"


def _is_otherwise(rule: Any) -> bool:
    return isinstance(rule, dict) and "otherwise" in rule


def _expectations(place: Place, written: Mapping[str, Any], model: type[BaseModel]) -> Iterator[tuple[Place, str]]:
    plain = {"isError", "asks", "state"}
    for name, one in written.items():
        if name in plain:
            continue
        if name == "error" or (model is RoundExpect and isinstance(one, dict)):
            for key, inner in cast("dict[str, Any]", one).items():
                yield from _checked((*place, name, key), parse_matcher, inner)
        else:
            yield from _checked((*place, name), parse_matcher, one)
            yield from _never((*place, name), name, one)


_KINDS = {
    "text": (str, "a string"),
    "rounds": (int | float, "a number"),
    **dict.fromkeys(("asked", "content", "messages", "contents", "notifications"), (list, "a list")),
}
"""Expectations that can have only one type."""


def _never(place: Place, name: str, written: Any) -> Iterator[tuple[Place, str]]:
    """Expectations that can never be met."""
    if name not in _KINDS or has_holes(written):
        return
    if isinstance(written, _KINDS[name][0]) and not isinstance(written, bool):
        return
    if isinstance(written, dict):
        keys = [str(key) for key in cast("dict[Any, Any]", written)]
        if not keys or keys[0] in list(Operator):
            return
        matchers = [operator.value for operator in Operator]
        near = difflib.get_close_matches(keys[0], matchers, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"matchers are {', '.join(matchers)}"
        yield place, f"{name} is {_KINDS[name][1]}, and {keys[0]!r} is not a matcher; {hint}"
    else:
        yield place, f"{name} is {_KINDS[name][1]}, and can never be {json.dumps(written)}"


def _checked(place: Place, check: Any, written: Any, prefix: str = "") -> Iterator[tuple[Place, str]]:
    try:
        check(written)
    except ValueError as error:
        if has_holes(written):
            return  # it is checked again once its value is known
        yield (*place, *getattr(error, "steps", ())), str(error).removeprefix(prefix)
