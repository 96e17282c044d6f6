"""Cassettes and snapshots that no test uses any more: found, and removed if that is asked for."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from bespeak.conversation.atomic_files import alone, write_whole
from bespeak.protocol.versions import SPOKEN
from bespeak.testing.cassettes.cassette_file import file_name, slug
from bespeak.testing.expect.snapshots import read_snapshots, snapshots_path
from bespeak.testing.run_options import Options, relative
from bespeak.testing.suite.loader import SUFFIX, Suite
from bespeak.testing.suite.plan import Item, at_era, items_of
from bespeak.testing.suite.variables import Unknown, environment, fill, lookup

_CASSETTE = re.compile(r"(.+)\.[0-9a-f]{8}\.json")


@dataclass(frozen=True, slots=True)
class Unused:
    """What no test of the suites uses."""

    cassettes: Sequence[Path] = ()
    snapshots: Sequence[tuple[Path, str, str]] = ()
    """The file, the title of the test, and the name of the snapshot."""
    start: Path = field(default_factory=Path.cwd)

    def __iter__(self) -> Iterator[str]:
        """Return each of them, as it is told."""
        yield from (relative(path, self.start) for path in self.cassettes)
        for path, title, name in self.snapshots:
            yield f"the snapshot {name!r} of {title!r} in {relative(path, self.start)}"

    def notes(self) -> list[str]:
        """Return what is said of them after a run."""
        return [f"no test uses {one}; bespeak test --prune removes it" for one in self]

    def remove(self) -> None:
        """Delete them. Raises `OSError`."""
        for path in self.cassettes:
            path.unlink(missing_ok=True)
        for file in dict.fromkeys(path for path, _, _ in self.snapshots):
            with alone(file.parent):
                kept = read_snapshots(file)
                for path, title, name in self.snapshots:
                    if path == file:
                        kept.get(title, {}).pop(name, None)
                left = {title: names for title, names in kept.items() if names}
                write_whole(file, json.dumps(left, indent=2, sort_keys=True) + "\n")


def unused_files(suites: Sequence[Suite], options: Options) -> Unused:
    """Return the cassettes and snapshots that look like those of the suites, and that no test of them uses."""
    used: set[Path] = set()
    folders: dict[Path, list[Suite]] = {}
    snapshots: list[tuple[Path, str, str]] = []
    for suite in suites:
        items = _all_items(suite)
        folder = _folder(suite, options)
        if folder is not None and folder.is_dir():
            folders.setdefault(folder, []).append(suite)
            used |= {folder / file_name(folder, item) for item in items}
        snapshots += _unused_snapshots(suite, items)
    cassettes = [
        path
        for folder, owners in folders.items()
        for path in sorted(folder.iterdir())
        if path not in used and _belongs(path, owners) and _is_cassette(path)
    ]
    return Unused(cassettes, snapshots, options.start)


def _all_items(suite: Suite) -> list[Item]:
    """The items of a suite, at every revision at which it can be run."""
    items = items_of(suite)
    return [*items, *(item for era in SPOKEN for item in at_era(items, era))]


def _folder(suite: Suite, options: Options) -> Path | None:
    named = suite.model.cassettes
    if options.cassettes is not None or named is None:
        return options.cassettes
    try:
        return suite.folder / str(fill(named, lookup(environment(suite.needs), {})))
    except Unknown:
        return None


def _belongs(path: Path, owners: Sequence[Suite]) -> bool:
    """Whether the name of a file is that of a cassette of one of the suites, and of no other suite beside them."""
    found = _CASSETTE.fullmatch(path.name)
    if found is None:
        return False
    stems = {slug(suite.stem) for suite in owners}
    beside = {slug(file.name.removesuffix(SUFFIX)) for suite in owners for file in suite.folder.glob(f"*{SUFFIX}")}
    fitting = {stem for stem in stems | beside if f"{found[1]}-".startswith(f"{stem}-")}
    return bool(fitting) and max(fitting, key=len) in stems


def _is_cassette(path: Path) -> bool:
    try:
        found: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(found, dict) and {"format", "turns"} <= cast("dict[str, Any]", found).keys()


def _unused_snapshots(suite: Suite, items: Sequence[Item]) -> Iterator[tuple[Path, str, str]]:
    path = snapshots_path(suite)
    try:
        kept = read_snapshots(path)
    except (OSError, ValueError, RecursionError):
        return
    used = {item.title: set(_names(item.test.model_dump(by_alias=True, exclude_unset=True))) for item in items}
    for title, names in kept.items():
        known = used.get(title, set())
        if not any("${" in name for name in known):
            yield from ((path, title, name) for name in names if name not in known)


def _names(written: Any) -> Iterator[str]:
    """The names of the snapshots that a test expects."""
    if isinstance(written, list):
        for one in cast("list[Any]", written):
            yield from _names(one)
    elif isinstance(written, dict):
        for name, one in cast("dict[str, Any]", written).items():
            if name == "snapshot" and isinstance(one, str):
                yield one
            yield from _names(one)
