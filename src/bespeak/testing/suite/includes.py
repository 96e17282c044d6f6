"""Files that a suite includes: reading them all, and putting them together."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bespeak.conversation.json_values import as_array
from bespeak.testing.suite.mistakes import BadSuite, Mistake
from bespeak.testing.suite.suite_values import Place
from bespeak.testing.suite.yaml_positions import YamlDocument

SUFFIX = ".bespeak.yaml"
_SETTINGS = ("server", "eras", "wire", "maxRounds")
_KEYS = ("version", "include", "servers", "tests", "redact", *_SETTINGS)
"""The keys that an included file may have."""


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a part of a suite is written."""

    path: Path
    document: YamlDocument
    place: Place

    def line(self, rest: Place = ()) -> int:
        return self.document.line((*self.place, *rest))


@dataclass(slots=True)
class SuiteSource:
    """The text of a suite: its own file, with everything that it includes put in."""

    path: Path
    document: YamlDocument
    value: Any
    _origins: dict[Place, _Origin] = field(default_factory=dict[Place, _Origin])
    """Where servers, tests and settings of other files come from."""

    def line(self, place: Place) -> int:
        """Return the line of a part, in its own file."""
        origin, rest = self._origin(place)
        return origin.line(rest)

    def file(self, place: Place) -> Path:
        """Return the file of a part."""
        return self._origin(place)[0].path

    def _origin(self, place: Place) -> tuple[_Origin, Place]:
        for length in (2, 1):
            if place[:length] in self._origins:
                return self._origins[place[:length]], place[length:]
        return _Origin(self.path, self.document, ()), place


def with_includes(path: Path, document: YamlDocument, read: Callable[[Path], YamlDocument]) -> SuiteSource:
    """Return a suite with all that it includes. `read` reads a file. Raises `BadSuite`."""
    value: Any = document.value
    if not isinstance(value, dict) or "include" not in value:
        return SuiteSource(path, document, cast("Any", value))
    merging = _Merging(read)
    merging.add(path, document, (path.resolve(),))
    if merging.faults:
        raise BadSuite(merging.faults)
    return SuiteSource(path, document, merging.value, merging.origins)


class _Merging:
    """The parts of several files while they are put together."""

    def __init__(self, read: Callable[[Path], YamlDocument]) -> None:
        self._read = read
        self._seen: set[Path] = set()
        self.value: dict[str, Any] = {}
        self.origins: dict[Place, _Origin] = {}
        self.faults: list[Mistake] = []

    def add(self, path: Path, document: YamlDocument, chain: tuple[Path, ...]) -> None:
        """Add a file, after the files that it includes. `chain` leads to it from the suite."""
        written = cast("dict[str, Any]", document.value)
        set_before = set(self.value)
        for number, name in enumerate(_names(written)):
            self._include(path, document, number, name, chain)
        inner = set(self.value) - set_before
        """The settings of the files that this one includes: its own go before them."""
        for key, value in written.items():
            origin = _Origin(path, document, (key,))
            if key == "servers" and isinstance(value, dict):
                self._add_servers(cast("dict[str, Any]", value), origin)
            elif key in ("tests", "redact") and isinstance(value, list):
                self._add_entries(key, cast("list[Any]", value), origin)
            elif key in _SETTINGS and key in self.value and key not in inner:
                other = self.origins[(key,)]
                self._fault(origin, f"{key} is also set in {other.path}:{other.line()}; set it in the suite itself")
            elif key in ("servers", "tests", "redact") and len(chain) > 1:
                self._fault(origin, f"{key}: must be a {'map' if key == 'servers' else 'list'}")
            elif len(chain) == 1 or key not in ("include", "version"):
                self.value[key] = value
                self.origins[(key,)] = origin

    def _include(self, path: Path, document: YamlDocument, number: int, name: str, chain: tuple[Path, ...]) -> None:
        origin = _Origin(path, document, ("include", number))
        target = path.parent / name
        if "${" in name:
            self._fault(origin, "the name of an included file cannot contain ${...}; write it out")
        elif name.endswith(SUFFIX):
            self._fault(origin, f"{name} would also be run as a suite of its own; call an included file NAME.yaml")
        elif not target.is_file():
            self._fault(origin, f"there is no file {str(target)!r} to include")
        elif target.resolve() in chain:
            way = " -> ".join(one.name for one in (*chain[chain.index(target.resolve()) :], target.resolve()))
            self._fault(origin, f"{name} includes itself: {way}")
        elif name in _names(document.value)[:number]:
            self._fault(origin, f"{name} is listed twice")
        elif target.resolve() not in self._seen:  # two included files may share a third
            self._seen.add(target.resolve())
            self._add_included(target, chain)

    def _add_included(self, target: Path, chain: tuple[Path, ...]) -> None:
        try:
            document = self._read(target)
        except BadSuite as error:
            self.faults += error.faults
            return
        whole = _Origin(target, document, ())
        if not isinstance(document.value, dict):
            self._fault(whole, f"an included file is a map; known keys: {', '.join(_KEYS)}")
            return
        written = cast("dict[str, Any]", document.value)
        for key in written:
            if key not in _KEYS:
                what = f"unknown key {key!r} in an included file; known keys: {', '.join(_KEYS)}"
                self._fault(_Origin(target, document, (key,)), what)
        if written.get("version") != 1 or isinstance(written["version"], bool):
            self._fault(_Origin(target, document, ("version",)), "an included file needs version: 1")
        self.add(target, document, (*chain, target.resolve()))

    def _add_servers(self, servers: dict[str, Any], origin: _Origin) -> None:
        known: dict[str, Any] = self.value.setdefault("servers", {})
        for name, server in servers.items():
            here = _Origin(origin.path, origin.document, ("servers", name))
            if name in known:
                other = self.origins[("servers", name)]
                self._fault(here, f"there is another server called {name!r}, in {other.path}:{other.line()}")
                continue
            known[name] = server
            self.origins[("servers", name)] = here

    def _add_entries(self, key: str, entries: list[Any], origin: _Origin) -> None:
        known: list[Any] = self.value.setdefault(key, [])
        for number, entry in enumerate(entries):
            self.origins[(key, len(known))] = _Origin(origin.path, origin.document, (key, number))
            known.append(entry)

    def _fault(self, origin: _Origin, message: str) -> None:
        self.faults.append(Mistake(origin.path, origin.line(), message))


def _names(written: Any) -> list[str]:
    """The names of included files, as far as they are names. The model says what is wrong with the others."""
    names: Any = cast("dict[str, Any]", written).get("include")
    entries = as_array(names)
    return entries if all(isinstance(one, str) and one for one in entries) else []
