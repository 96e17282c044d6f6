"""Runs the storms one after the other: `python -m storm [--short] [--only WORD] [--seed NUMBER] [--keep DIRECTORY]`."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

from storm import desk_storm
from storm.judgement import Violation
from storm.stores import has_redis, redis, sqlite
from storm.till_storm import LONG, SHORT, Length, figures, rage

EXAMPLES = 3
"""How many examples are printed of each rule that did not hold."""
DESK_CALLS = 1000
DESK_CALLS_SHORT = 80
Store = Callable[[Path], AbstractAsyncContextManager[str]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="storm")
    parser.add_argument("--short", action="store_true", help="every storm with few calls")
    parser.add_argument("--only", choices=["redis", "sqlite", "desk"], help="only this storm")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(2**32), help="repeats the choices of another storm"
    )
    parser.add_argument("--keep", type=Path, help="keep books and logs in this directory, which must not exist yet")
    parser.add_argument("--peer", default=".peer/bin/python", help="a Python that has the official SDK")
    parser.add_argument("--node", default="node", help="a Node that runs the TypeScript SDK")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    stores: dict[str, Store] = {"redis": redis, "sqlite": sqlite}
    if options.only in (None, "redis") and not has_redis():
        print("REDIS IS LEFT OUT: redis-server is not installed", flush=True)
        del stores["redis"]
    with tempfile.TemporaryDirectory(prefix="storm-") as temporary:
        directory: Path = options.keep or Path(temporary) / "storm"
        for name in (*stores, "desk"):
            (directory / name).mkdir(parents=True)
        storms: dict[str, Callable[[], Coroutine[None, None, bool]]] = {
            name: partial(at_the_till, name, store, SHORT if options.short else LONG, directory / name, options.seed)
            for name, store in stores.items()
        }
        calls = DESK_CALLS_SHORT if options.short else DESK_CALLS
        storms["desk"] = partial(at_the_desk, calls, directory / "desk", options.peer, options.node)
        chosen = {name: storm for name, storm in storms.items() if options.only in (None, name)}
        if not chosen:
            sys.exit("no storm was run")
        failed = asyncio.run(run(chosen, together=stores.keys() if options.short else ()))
    if failed:
        sys.exit(f"\nnot everything held: {', '.join(failed)}")
    print(f"\neverything held: {', '.join(chosen)}")


async def run(storms: Mapping[str, Callable[[], Coroutine[None, None, bool]]], together: Collection[str]) -> list[str]:
    """Run storms, some of them at the same time: they wait for the claims of dead workers most of it. Return those that failed."""
    first = [name for name in storms if name in together]
    held = dict(zip(first, await asyncio.gather(*(storms[name]() for name in first)), strict=True))
    for name, storm in storms.items():
        if name not in held:
            held[name] = await storm()
    return [name for name in storms if not held[name]]


async def at_the_till(name: str, store: Store, length: Length, directory: Path, seed: int) -> bool:
    """One storm at the till. Returns whether everything held."""
    started = time.perf_counter()
    async with store(directory) as url:
        storm = await rage(url, length, directory, seed)
    return report(f"the till, {name}", figures(storm), storm.violations(), time.perf_counter() - started)


async def at_the_desk(calls: int, directory: Path, peer: str, node: str) -> bool:
    """The storm at the refund desk. Returns whether everything held."""
    started = time.perf_counter()
    storm = await desk_storm.rage(calls, directory, peer, node)
    return report("the refund desk", storm.figures(), storm.violations(), time.perf_counter() - started)


def report(name: str, figures: Sequence[str], violations: Sequence[Violation], seconds: float) -> bool:
    """Print the figures of a storm, and every rule that did not hold with some examples. Return whether all held."""
    print(f"\n{name}: {'FAIL' if violations else 'PASS'} after {seconds:.0f} s")
    for line in figures:
        print(f"  {line}")
    by_rule = defaultdict[str, list[str]](list)
    for one in violations:
        by_rule[one.rule].append(one.example)
    for rule, examples in by_rule.items():
        print(f"  NOT MET {len(examples)} x: {rule}")
        for example in examples[:EXAMPLES]:
            print("    " + example.replace("\n", "\n    "))
    sys.stdout.flush()
    return not violations


if __name__ == "__main__":
    main()
