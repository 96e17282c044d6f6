"""What the shape of a suite does not say: names that lead nowhere, answers that are none, keys that would do nothing."""

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.matchers import Operator, parse_matcher
from bespeak.conversation.variables import NAME, has_holes, names_in
from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS, SPOKEN
from bespeak.testing.suite.suite_file import MODES, Expect, RoundExpect, Server, SuiteModel, Test
from bespeak.testing.value_paths import EVERY, parse_path

SAID_TO_PEOPLE = ("message", "description")
Place = tuple[str | int, ...]
"""Where something stands in a suite: keys, and numbers of entries."""


def mistakes_in(model: SuiteModel, value: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from _revisions(("eras",), model.eras)
    if model.server is not None and model.server not in model.servers:
        yield ("server",), f"there is no server {model.server!r}; there is {', '.join(model.servers)}"
    for name, server in model.servers.items():
        place: Place = ("servers", name)
        if server.protocol not in MODES:
            yield (*place, "protocol"), f"protocol is one of {', '.join(MODES)}, not {server.protocol!r}"
        known = {"port"} if server.command is not None and server.url is not None else set[str]()
        yield from _holes(place, value["servers"][name], known)
    for number, written in enumerate(model.redact):
        yield from _checked(("redact", number), _redactable, written)
        if has_holes(written):
            yield ("redact", number), "nothing is filled into a path; write it out"
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
            yield (*place, "name"), "with its case, the test has the title of another"
        seen |= dict.fromkeys(titles | {test.name}, number)
        yield from _test(place, test, value["tests"][number], model)
        yield from _holes(place, value["tests"][number], set(captured))
        yield from _elsewhere(place, test, value["tests"][number], captured, model)
        for name in test.capture:
            if not NAME.fullmatch(name) or name == "port":
                yield (*place, "capture", name), "a name is made of letters, digits, _ and -, and is not port"
            elif name in captured:
                yield (*place, "capture", name), f"another test captures {name!r} already"
            captured[name] = _eras(test, model)


def _holes(place: Place, written: Any, known: set[str]) -> Iterator[tuple[Place, str]]:
    """`${...}` that nothing fills, each where it stands."""
    if isinstance(written, dict):
        for key, member in cast("dict[str, Any]", written).items():
            yield from _holes((*place, key), key, known)
            yield from _holes((*place, key), member, known)
    elif isinstance(written, list):
        for number, entry in enumerate(cast("list[Any]", written)):
            yield from _holes((*place, number), entry, known)
    for name in names_in(written) if isinstance(written, str) else ():
        if name.startswith("env:") and not NAME.fullmatch(name.removeprefix("env:")):
            yield place, f"${{{name}}} names no variable of the environment; write ${{env:NAME}}"
        elif not name.startswith("env:") and name not in known:
            yield place, f"${{{name}}} stands for nothing here: {_fillable(place)}"


def _eras(test: Test, model: SuiteModel) -> set[str | None]:
    """The revisions at which a test is held."""
    return set(test.eras or model.eras or [None])


def _elsewhere(
    place: Place, test: Test, written: Any, captured: Mapping[str, set[str | None]], model: SuiteModel
) -> Iterator[tuple[Place, str]]:
    """Values that are not captured wherever they are used."""
    if test.capture and test.cases:
        yield (*place, "capture"), "a test with cases captures nothing: each case would capture another value"
    for name in sorted({name for name in names_in(written) if name in captured}):
        if not _eras(test, model) <= captured[name]:
            yield (
                place,
                f"${{{name}}} is captured at other revisions than this test is held at; give both the same eras",
            )


def _products(rows: Sequence[str], eras: Sequence[str]) -> Iterator[list[str]]:
    """What may stand behind the name of a test in its titles."""
    for row in rows or [None]:
        for era in eras or [None]:
            more = [part for part in (row, era) if part is not None]
            if more:
                yield more


def _fillable(place: Place) -> str:
    if place[0] == "tests":
        return "no test before this one captures it; $${ is a plain ${"
    return "a server can have ${env:NAME}, and ${port} if it has a command and a url"


def _revisions(place: Place, eras: Sequence[str] | None) -> Iterator[tuple[Place, str]]:
    for number, era in enumerate(eras or ()):
        if era not in SPOKEN:
            yield (*place, number), f"there is no revision {era!r}; there is {', '.join(SPOKEN)}"
        elif eras is not None and era in eras[:number]:
            yield (*place, number), f"{era} is there twice"


def _test(place: Place, test: Test, written: Mapping[str, Any], model: SuiteModel) -> Iterator[tuple[Place, str]]:
    servers = ", ".join(model.servers)
    if test.server is None and model.server is None and len(model.servers) > 1:
        yield place, f"say which server: {servers}"
    elif test.server is not None and test.server not in model.servers:
        yield (*place, "server"), f"there is no server {test.server!r}; there is {servers}"
    eras = test.eras if test.eras is not None else model.eras
    yield from _revisions((*place, "eras"), test.eras)
    older = [era for era in eras or () if era in HANDSHAKE_PROTOCOL_VERSIONS]
    if older and (test.tamper or test.fault):
        what = "tamper" if test.tamper else "fault"
        yield (*place, what), f"{what} is for rounds, and at {older[0]} there are none; give this test eras of its own"
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
            yield (*place, "cases", number), "inputResponses and rounds both say what is answered; use one"
        if case.rounds is not None and test.inputResponses is not None:
            yield (*place, "cases", number), "inputResponses and rounds both say what is answered; use one"
        yield from _said((*place, "cases", number), written["cases"][number])
    verify: Any = written.get("verify", [])
    for number, one in enumerate(cast("list[Any]", verify) if isinstance(verify, list) else ()):
        yield from _said((*place, "verify", number), one)
    if isinstance(verify, dict):
        yield from _said((*place, "verify"), cast("dict[str, Any]", verify))


def _useless(place: Place, test: Test, server: Server | None) -> Iterator[tuple[Place, str]]:
    """What would be accepted and do nothing."""
    for number, case in enumerate(test.cases or ()):
        if test.resource is not None and case.arguments is not None:
            yield (*place, "cases", number, "arguments"), "a resource takes no arguments"
        if test.tool is None and case.expect is not None and case.expect.isError is not None:
            yield (*place, "cases", number, "expect", "isError"), "only a tool's result says isError"
    if test.fresh and server is not None and server.command is None:
        yield (*place, "fresh"), "only a server with a command can be started anew"
    if test.resource is not None and test.tamper is not None and test.tamper.arguments is not None:
        yield (*place, "tamper"), "a resource takes no arguments, so there are no others"
    for where, target in [(place, test), *(((*place, "verify"), one) for one in test.verify or ())]:
        if target.tool is None and target.expect.isError is not None:
            yield (*where, "expect", "isError"), "only a tool's result says isError"
        if target.expect.error is not None and target.expect.isError is not None:
            yield (
                (*where, "expect", "isError"),
                "a call ends with an error or with a result that says isError; expect one",
            )
    if test.maxRounds is not None and test.rounds is not None and test.maxRounds < len(test.rounds):
        yield (*place, "maxRounds"), "the test has more rounds than maxRounds allows for"


def _redactable(written: str) -> None:
    """Raises `ValueError` for a path to what a replay could not do without."""
    path = parse_path(written)
    if path[0] == "resultType" or (path[0] == "inputRequests" and path[-1] not in SAID_TO_PEOPLE):
        told = ", ".join(SAID_TO_PEOPLE)
        raise ValueError(
            f"{written!r} is what makes it a question; only what is said to people can be kept out: {told}"
        )


def _single(path: str) -> None:
    if EVERY in parse_path(path):
        raise ValueError(f"the path {path!r} leads to many values; name one")


def _said(place: Place, written: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Answers and expectations, wherever they stand."""
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
    """Each answer for itself, so that each is told with its line."""
    if isinstance(written, dict):
        for key, one in cast("dict[str, Any]", written).items():
            yield from _checked((*place, key), InputResponseFixture, {key: one}, f"{key}: ")
    elif isinstance(written, list):
        rules = cast("list[Any]", written)
        for number, one in enumerate(rules):
            yield from _checked((*place, number), InputResponseFixture, [one], "[0]: ")
        last = next((number for number, one in enumerate(rules) if _is_otherwise(one)), len(rules))
        if last < len(rules) - 1:
            yield (*place, last + 1), "nothing comes after otherwise: it takes whatever is left"
        ids = [cast("dict[str, Any]", one).get("id") for one in rules if isinstance(one, dict)]
        known: set[Any] = set()
        for number, id_ in enumerate(ids):
            if isinstance(id_, str) and id_ in known:
                yield (*place, number), f"the id {id_!r} is there twice"
            known.add(id_ if isinstance(id_, str) else None)
    else:
        yield place, "answers are a map of key to answer, or a list"


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
    "text": (str, "a text"),
    "rounds": (int | float, "a number"),
    **dict.fromkeys(("asked", "content", "messages", "contents", "notifications"), (list, "a list")),
}
"""What can only be of one sort."""


def _never(place: Place, name: str, written: Any) -> Iterator[tuple[Place, str]]:
    """Expectations that nothing can ever meet."""
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
        yield place, f"{name} is {_KINDS[name][1]}, and {keys[0]!r} is no matcher; {hint}"
    else:
        yield place, f"{name} is {_KINDS[name][1]}, and can never be {json.dumps(written)}"


def _checked(place: Place, check: Any, written: Any, prefix: str = "") -> Iterator[tuple[Place, str]]:
    try:
        check(written)
    except ValueError as error:
        if has_holes(written):
            return  # what fills it is looked at when it is there
        yield (*place, *getattr(error, "steps", ())), str(error).removeprefix(prefix)
