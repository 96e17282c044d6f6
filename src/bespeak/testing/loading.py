"""A suite file, read and checked: whatever is wrong with it is said with its file and line, all of it at once."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError

from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS, SPOKEN
from bespeak.testing.fixtures import InputResponseFixture
from bespeak.testing.matchers import parse_matcher
from bespeak.testing.positions import Document, YamlError, read_yaml
from bespeak.testing.redaction import parse_path
from bespeak.testing.suite import MODES, Expect, RoundExpect, SuiteModel, Test
from bespeak.testing.variables import NAME, environment_names, names_in

SUFFIX = ".bespeak.yaml"
MOST_BYTES = 4 * 1024 * 1024
MOST_ERRORS = 50


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a suite."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class BadSuite(Exception):
    """A suite that cannot be run. Each line says where and why."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(map(str, faults)))


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite file."""

    path: Path
    model: SuiteModel
    document: Document

    def line(self, *path: str | int) -> int:
        return self.document.line(path)

    @property
    def folder(self) -> Path:
        return self.path.resolve().parent

    @property
    def needs(self) -> set[str]:
        """The variables of the environment it needs."""
        return environment_names(self.document.value)


def load_suite(path: Path) -> Suite:
    """A suite file. Raises `BadSuite`."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadSuite([Fault(path, 1, f"the file is larger than {MOST_BYTES} bytes")])
        document = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSuite([Fault(path, 1, f"the file cannot be read: {error.strerror or error}")]) from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise BadSuite([Fault(path, line, "the file is not UTF-8")]) from None
    except YamlError as error:
        raise BadSuite([Fault(path, error.line, error.message)]) from None
    faults = [Fault(path, document.line(where), message) for where, message in _faults(document.value)]
    if faults:
        raise BadSuite(sorted(faults[:MOST_ERRORS], key=lambda fault: fault.line))
    return Suite(path, SuiteModel.model_validate(document.value), document)


Place = tuple[str | int, ...]


def _faults(value: Any) -> Iterator[tuple[Place, str]]:
    """What is wrong: first the shape, and if that is right, the meaning."""
    if not isinstance(value, dict):
        yield (), "a suite is a map with version, servers and tests"
        return
    try:
        model = SuiteModel.model_validate(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield _place(detail["loc"], value), _message(cast("Mapping[str, Any]", detail))
        return
    yield from _meaning(model, cast("dict[str, Any]", value))


def _place(location: tuple[str | int, ...], value: Any) -> Place:
    """A place in the file: what the model adds on the way to it is left out."""
    place: list[str | int] = []
    for step in location:
        if isinstance(value, list if isinstance(step, int) else dict):
            place.append(step)
            value = _inside(value, step)
    return tuple(place)


def _inside(value: Any, step: str | int) -> Any:
    if isinstance(value, dict):
        return cast("dict[Any, Any]", value).get(step)
    entries = cast("list[Any]", value)
    return entries[step] if isinstance(step, int) and step < len(entries) else None


def _message(detail: Mapping[str, Any]) -> str:
    kind, location = detail["type"], detail["loc"]
    if kind == "extra_forbidden":
        known = _keys(location[:-1])
        near = difflib.get_close_matches(str(location[-1]), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(known)}"
        return f"unknown key {location[-1]!r}; {hint}"
    if kind == "missing":
        return f"the key {location[-1]!r} is missing"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    named = f"{location[-1]}: " if location and isinstance(location[-1], str) else ""
    said: str = detail["msg"].removeprefix("Input should be ").replace("dictionary", "map")
    return f"{named}must be {said}" if said != detail["msg"] else f"{named}{said[0].lower()}{said[1:]}"


def _keys(location: Sequence[str | int]) -> list[str]:
    """The keys that are known at a place."""
    model: Any = SuiteModel
    for step in location:
        if isinstance(model, type) and issubclass(model, BaseModel):
            field = model.model_fields.get(str(step))
            model = None if field is None else _model_in(field.annotation)
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _model_in(annotation: Any) -> Any:
    """The model that a field holds: itself, one or none, or many."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for found in map(_model_in, get_args(annotation)) if found is not None), None)


# What the shape does not say


def _meaning(model: SuiteModel, value: Mapping[str, Any]) -> Iterator[tuple[Place, str]]:
    yield from _revisions(("eras",), model.eras)
    if model.server is not None and model.server not in model.servers:
        yield ("server",), f"there is no server {model.server!r}; there is {', '.join(model.servers)}"
    for name, server in model.servers.items():
        if server.protocol not in MODES:
            yield ("servers", name, "protocol"), f"protocol is one of {', '.join(MODES)}, not {server.protocol!r}"
    for number, written in enumerate(model.redact):
        yield from _checked(("redact", number), parse_path, written)
    seen: dict[str, int] = {}
    captured: set[str] = set()
    for number, test in enumerate(model.tests):
        place: Place = ("tests", number)
        if test.name in seen:
            yield (*place, "name"), f"there is another test called {test.name!r}"
        seen[test.name] = number
        yield from _test(place, test, value["tests"][number], model)
        unknown = _unknown(value["tests"][number], captured)
        if unknown is not None:
            yield place, f"${{{unknown}}} is captured by no test before this one"
        for name in test.capture:
            if not NAME.fullmatch(name):
                yield (*place, "capture", name), "a name is made of letters, digits, _ and -"
            elif name in captured:
                yield (*place, "capture", name), f"another test captures {name!r} already"
            captured.add(name)


def _unknown(written: Any, captured: set[str]) -> str | None:
    names = (name for name in names_in(written) if not name.startswith("env:"))
    return next((name for name in names if name not in captured), None)


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
    for name, path in test.capture.items():
        yield from _checked((*place, "capture", name), parse_path, path)
    cases = {number: case.name for number, case in enumerate(test.cases or ())}
    for number, case in enumerate(test.cases or ()):
        if case.name in list(cases.values())[:number]:
            yield (*place, "cases", number), f"there is another case called {case.name!r}"
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
        for number, one in enumerate(cast("list[Any]", written)):
            yield from _checked((*place, number), InputResponseFixture, [one], "[0]: ")
    else:
        yield place, "answers are a map of key to answer, or a list"


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


def _checked(place: Place, check: Any, written: Any, prefix: str = "") -> Iterator[tuple[Place, str]]:
    try:
        check(written)
    except ValueError as error:
        yield (*place, *getattr(error, "steps", ())), str(error).removeprefix(prefix)
