"""Load a suite file and report all mistakes in it, each with its file and line."""

import difflib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, get_args

from pydantic import BaseModel, ValidationError

from bespeak.testing.suite.includes import SUFFIX, SuiteSource, with_includes
from bespeak.testing.suite.mistakes import BadSuite, Mistake
from bespeak.testing.suite.suite_checks import mistakes_in
from bespeak.testing.suite.suite_file import SuiteModel
from bespeak.testing.suite.suite_values import Place
from bespeak.testing.suite.variables import environment_names
from bespeak.testing.suite.yaml_positions import YamlDocument, YamlError, read_yaml

MOST_BYTES = 4 * 1024 * 1024
MOST_ERRORS = 50


@dataclass(frozen=True, slots=True)
class Suite:
    """A suite file."""

    path: Path
    model: SuiteModel
    document: SuiteSource
    needs: frozenset[str] = frozenset()
    """The environment variables that it needs."""

    def line(self, *path: str | int) -> int:
        """Return the line of a part, in the file that contains it."""
        return self.document.line(path)

    def file(self, *path: str | int) -> Path:
        """Return the file that contains a part: the suite's own, or one that it includes."""
        return self.document.file(path)

    def place_of_variable(self, name: str) -> tuple[Path, int]:
        """Return the file and the line of the first use of an environment variable."""
        place = next((where for where, text in _texts((), self.document.value) if name in environment_names(text)), ())
        return self.file(*place), self.line(*place)

    @property
    def stem(self) -> str:
        """The file's name without `.bespeak.yaml`."""
        return self.path.name.removesuffix(SUFFIX)

    @property
    def folder(self) -> Path:
        return self.path.resolve().parent


def _texts(place: Place, value: Any) -> Iterator[tuple[Place, str]]:
    """The texts of a suite, each with its place."""
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, dict):
        for key, member in cast("dict[str, Any]", value).items():
            yield from _texts((*place, key), key)
            yield from _texts((*place, key), member)
    elif isinstance(value, list):
        for number, entry in enumerate(cast("list[Any]", value)):
            yield from _texts((*place, number), entry)


def load_suite(path: Path) -> Suite:
    """Load a suite file with all that it includes. Raises `BadSuite`."""
    source = with_includes(path, _read(path), _read)
    found = ((source.file(where), source.line(where), message) for where, message in _faults(source.value))
    faults = [Mistake(*one) for one in dict.fromkeys(found)]  # an alias repeats its faults
    if faults:
        faults.sort(key=lambda fault: (fault.path != path, str(fault.path), fault.line))
        more = len(faults) - MOST_ERRORS
        rest = faults[MOST_ERRORS] if more > 0 else None
        last = [] if rest is None else [Mistake(rest.path, rest.line, f"and {more} more mistakes from here on")]
        raise BadSuite([*faults[:MOST_ERRORS], *last])
    model = SuiteModel.model_validate(source.value)
    return Suite(path, model, source, frozenset(environment_names(source.value)))


def _read(path: Path) -> YamlDocument:
    """Read a file. Raises `BadSuite`."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise BadSuite([Mistake(path, 1, f"the file is larger than {MOST_BYTES} bytes")])
        return read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadSuite([Mistake(path, 1, f"the file cannot be read: {error.strerror or error}")]) from None
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise BadSuite([Mistake(path, line, "the file is not UTF-8")]) from None
    except YamlError as error:
        raise BadSuite([Mistake(path, error.line, error.message)]) from None


def _faults(value: Any) -> Iterator[tuple[Place, str]]:
    """The mistakes: first those that the model finds, and if there are none, those of `suite_checks`."""
    if not isinstance(value, dict):
        yield (), "a suite is a map with version, servers and tests"
        return
    try:
        model = SuiteModel.model_validate(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield _place(detail["loc"], value), _message(cast("Mapping[str, Any]", detail))
        return
    yield from mistakes_in(model, cast("dict[str, Any]", value))


def _place(location: tuple[str | int, ...], value: Any) -> Place:
    """The place in the file of a location in the model, which has steps of its own."""
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
        if location[-1] == "roots" and location[0] == "tests":
            return "'roots' is a key of a server, not of a test; write it below servers"
        near = difflib.get_close_matches(str(location[-1]), known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(known)}"
        return f"unknown key {location[-1]!r}; {hint}"
    if kind == "missing":
        return f"the key {location[-1]!r} is missing"
    names = [step for step in location if isinstance(step, str)]
    if kind == "value_error":
        said = str(detail["ctx"]["error"])
        return f"{names[-1]} {said}" if said.startswith(("is ", "must ")) and names else said
    named = f"{names[-1]}: " if names else ""
    return f"{named}{_said_of(kind, detail)}"


_MUST_BE = {
    "model_type": "must be a map",
    "dict_type": "must be a map",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "too_short": "is empty; give it at least one entry",
    "string_too_short": "is empty; write some text",
}


def _said_of(kind: str, detail: Mapping[str, Any]) -> str:
    """What is wrong with a value, in the terms of the file."""
    written: Any = detail["input"]
    if kind == "string_type":
        simple = isinstance(written, bool | int | float)
        return f"must be a string; quote it: {json.dumps(str(json.dumps(written)))}" if simple else "must be a string"
    if kind == "literal_error":
        return _unlike(detail["ctx"]["expected"].replace("True", "true"), written)
    if kind == "list_type" and detail["loc"][-1] == "command" and isinstance(written, str):
        return f"must be a list of words: {json.dumps(_words(written), ensure_ascii=False)}"
    if kind == "list_type" and written is None:
        return _MUST_BE["too_short"]
    said: str = detail["msg"].removeprefix("Input should be ")
    return _MUST_BE.get(kind, f"must be {said}" if said != detail["msg"] else said)


def _unlike(expected: str, written: Any) -> str:
    """Say that something else is expected, and which of it is probably meant."""
    if not isinstance(written, str):
        return f"must be {expected}"
    near = difflib.get_close_matches(written, re.findall("'([^']*)'", expected), 1)
    return f"must be {expected}, not {written!r}" + (f"; did you mean {near[0]!r}?" if near else "")


def _words(command: str) -> list[str]:
    """The words of a command, as a shell reads them."""
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _keys(location: Sequence[str | int]) -> list[str]:
    """The keys that are allowed at a place."""
    model: type[BaseModel] = SuiteModel
    for step in location:
        field = model.model_fields.get(step) if isinstance(step, str) else None
        # The number of an entry leads no further into the model, and neither does the name of a server.
        model = (_model_in(field.annotation) if field is not None else None) or model
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    """The model that a field holds: itself, one or none, or many."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for found in map(_model_in, get_args(annotation)) if found is not None), None)
