"""Mistakes in hostile tests that their schema cannot find: attacks that cannot be made."""

from collections.abc import Iterator
from typing import Any

from bespeak.conversation.responses import MAY_ASK
from bespeak.protocol.versions import HANDSHAKE_PROTOCOL_VERSIONS
from bespeak.testing.suite.suite_file import Expect, Server, SuiteModel, Test
from bespeak.testing.suite.suite_values import Place

_AFTER_STOP = {"rounds", "asked", "notifications"}
"""What can be expected of a call without an end."""


def attack_mistakes(place: Place, test: Test, model: SuiteModel, server: Server | None) -> Iterator[tuple[Place, str]]:
    """The mistakes of `tamper`, `fault` and `stop`."""
    name = next((name for name in ("tamper", "fault", "stop") if getattr(test, name) is not None), None)
    if name is None:
        return
    if test.request_method not in MAY_ASK:
        yield (*place, name), f"{name} needs rounds, and only {', '.join(sorted(MAY_ASK))} have them"
    older = [era for era in test.eras or model.eras or () if era in HANDSHAKE_PROTOCOL_VERSIONS]
    if older and name != "stop":
        yield (
            (*place, name),
            f"{name} needs rounds, and revision {older[0]} does not have them; give this test its own eras",
        )
    if test.tamper is not None:
        yield from _tamper((*place, "tamper"), test, server)
    if test.fault is not None and test.fault.restart and server is not None and server.command is None:
        yield (*place, "fault", "restart"), "only a server with a command can be restarted"
    if test.stop is not None:
        yield from _stop(place, test)


def _tamper(place: Place, test: Test, server: Server | None) -> Iterator[tuple[Place, str]]:
    assert test.tamper is not None
    how = test.tamper.how
    if how == "other-arguments" and test.request_method == "resources/read":
        yield place, "a resource takes no arguments, so other-arguments does not apply"
    if how == "other-tool" and test.request_method != "tools/call":
        yield place, "other-tool is for a test of a tool"
    if how == "other-caller" and server is not None and server.url is None:
        yield place, "other-caller needs a server with a url: over stdio there is only one caller"


def _stop(place: Place, test: Test) -> Iterator[tuple[Place, str]]:
    rows: list[tuple[tuple[Any, ...], Expect | None]] = [(place, test.expect)]
    rows += [((*place, "cases", number), case.expect) for number, case in enumerate(test.cases or ())]
    for where, expect in rows:
        for name in sorted((expect.model_fields_set if expect is not None else set[str]()) - _AFTER_STOP):
            yield (
                (*where, "expect", name),
                f"a call that the client stops has no result; only {', '.join(sorted(_AFTER_STOP))} can be expected",
            )
    if test.capture:
        yield (*place, "capture"), "a call that the client stops has no result to capture"
