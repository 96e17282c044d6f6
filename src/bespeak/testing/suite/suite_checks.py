"""Mistakes in a suite that its schema cannot find: unknown names, invalid answers, keys without effect."""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel

from bespeak.conversation.fixtures import InputResponseFixture
from bespeak.conversation.json_values import as_array
from bespeak.conversation.matchers import Operator, parse_matcher
from bespeak.conversation.profiles.known_profiles import KNOWN, is_profile_name
from bespeak.protocol.versions import SPOKEN
from bespeak.testing.suite.attack_checks import attack_mistakes
from bespeak.testing.suite.redact_checks import redact_mistakes
from bespeak.testing.suite.server_answers import mistakes_in_roots
from bespeak.testing.suite.suite_file import MODES, Expect, RoundExpect, Server, SuiteModel, Test
from bespeak.testing.suite.suite_values import Place
from bespeak.testing.suite.variables import NAME, has_holes, names_in
from bespeak.testing.value_paths import EVERY, parse_path

TAG = re.compile("[A-Za-z][A-Za-z0-9_-]*")


def mistakes_in(model: SuiteModel, value: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from _revisions(("eras",), model.eras)
    if model.server is not None and model.server not in model.servers:
        yield ("server",), f"there is no server {model.server!r}; servers: {', '.join(model.servers)}"
    for name, server in model.servers.items():
        place: Place = ("servers", name)
        if server.protocol not in MODES:
            yield (*place, "protocol"), f"protocol is one of {', '.join(MODES)}, not {server.protocol!r}"
        known = {"port"} if server.command is not None and server.url is not None else set[str]()
        if server.url is not None and not server.url.startswith(("http://", "https://", "${")):
            yield (*place, "url"), "url must begin with http:// or https://"
        yield from _holes(place, value["servers"][name], known)
        yield from (((*place, *where), message) for where, message in mistakes_in_roots(server))
        if "answers" in value["servers"][name]:
            yield from _answers((*place, "answers"), server.answers)
    yield from redact_mistakes(("redact",), model.redact)
    for name in ("cassettes", "setup", "teardown"):
        yield from _holes((name,), value.get(name), set())
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
    if place[0] == "servers":
        return "a server may use ${env:NAME}, and ${port} if it has a command and a url"
    return "only ${env:NAME} can be used here"


def _revisions(place: Place, eras: Sequence[str] | None) -> Iterator[tuple[Place, str]]:
    for number, era in enumerate(eras or ()):
        if era not in SPOKEN:
            yield (*place, number), f"unknown revision {era!r}; use modern, legacy, or one of {', '.join(SPOKEN)}"
        elif eras is not None and era in eras[:number]:
            yield (*place, number), f"{era} is listed twice"


def _test(place: Place, test: Test, written: Mapping[str, Any], model: SuiteModel) -> Iterator[tuple[Place, str]]:
    servers = ", ".join(model.servers)
    if test.server is None and model.server is None and len(model.servers) > 1:
        yield place, f"name the server to use: {servers}"
    elif test.server is not None and test.server not in model.servers:
        yield (*place, "server"), f"there is no server {test.server!r}; servers: {servers}"
    yield from _revisions((*place, "eras"), test.eras)
    yield from _said(place, written)
    yield from redact_mistakes((*place, "redact"), test.redact)
    yield from _tags((*place, "tags"), test.tags or ())
    known = model.servers.get(test.server or model.server or next(iter(model.servers)))
    yield from attack_mistakes(place, test, model, known)
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
    yield from _verified(place, written)
    for name in test.profiles:
        at = (*place, "profiles", name)
        if not is_profile_name(name):
            yield at, f"there is no profile {name!r}; use {', '.join(KNOWN)}, or MODULE:CLASS for your own"
        yield from _said(at, written["profiles"][name])
        yield from _verified(at, written["profiles"][name])


def _verified(place: Place, written: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    """Mistakes in the calls made afterwards, of which one may be written without a list around it."""
    verify: Any = written.get("verify", [])
    for number, one in enumerate(as_array(verify)):
        yield from _said((*place, "verify", number), one)
    if isinstance(verify, dict):
        yield from _said((*place, "verify"), cast("dict[str, Any]", verify))


def _useless(place: Place, test: Test, server: Server | None) -> Iterator[tuple[Place, str]]:
    """Keys that would be accepted and have no effect."""
    for number, case in enumerate(test.cases or ()):
        if test.resource is not None and case.arguments is not None:
            yield (*place, "cases", number, "arguments"), "a resource takes no arguments"
        if test.method is not None and case.arguments is not None:
            yield (*place, "cases", number, "arguments"), "a method takes params, not arguments"
        if test.request_method != "tools/call" and case.expect is not None and case.expect.isError is not None:
            yield (*place, "cases", number, "expect", "isError"), "only the result of a tool has isError"
    if test.fresh and server is not None and server.command is None:
        yield (*place, "fresh"), "only a server with a command can be restarted"
    for where, is_tool, expect in _all_expected(place, test):
        if not is_tool and expect.isError is not None:
            yield (*where, "expect", "isError"), "only the result of a tool has isError"
        if expect.error is not None and expect.isError is not None:
            yield (
                (*where, "expect", "isError"),
                "a call ends with an error or with a result that has isError; expect one of them",
            )
    if test.profiles and (test.tamper or test.fault or test.stop):
        yield (*place, "profiles"), "a hostile test plays a client of its own, and is left out with --as"
    if test.maxRounds is not None and test.rounds is not None and test.maxRounds < len(test.rounds):
        yield (*place, "maxRounds"), "the test has more rounds than maxRounds allows"


def _all_expected(place: Place, test: Test) -> Iterator[tuple[Place, bool, Expect]]:
    """What a test expects of each call, where that is written, and whether it is the call of a tool."""
    yield place, test.request_method == "tools/call", test.expect
    for one in test.verify or ():
        yield (*place, "verify"), one.request_method == "tools/call", one.expect
    for name, profile in test.profiles.items():
        at = (*place, "profiles", name)
        if profile.expect is not None:
            yield at, test.request_method == "tools/call", profile.expect
        for one in profile.verify or ():
            yield (*at, "verify"), one.request_method == "tools/call", one.expect


_RESERVED = {
    "skip",
    "skipif",
    "xfail",
    "parametrize",
    "usefixtures",
    "filterwarnings",
    "and",
    "or",
    "not",
    "bespeak_eras",
}
"""Names that mean something else to pytest."""


def _tags(place: Place, tags: Sequence[str]) -> Iterator[tuple[Place, str]]:
    for number, tag in enumerate(tags):
        if not TAG.fullmatch(tag):
            yield (*place, number), f"the tag {tag!r} must consist of letters, digits, _ and -, and begin with a letter"
        elif tag in _RESERVED:
            yield (*place, number), f"the tag {tag!r} has a meaning of its own in pytest; choose another name"
        elif tag in tags[:number]:
            yield (*place, number), f"the tag {tag!r} is listed twice"


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
