"""Several worker processes share a port, their settings and the keys of states."""

import os
from typing import Any

import pytest

from bespeak.cli import workers
from bespeak.cli.workers import Settings, make_app
from bespeak.state.seal import KEYS_VARIABLE
from bespeak.transports.http.app import HttpApp
from tests.cli.conftest import ONE, Write


def test_workers_share_one_port_and_each_makes_its_own_app(write: Write, started: list[Any]) -> None:
    target = str(write("target_shop.py", ONE))
    workers.run(Settings(target, "127.0.0.1", 8123, "/here"), 3)
    ((app, options),) = started
    assert app == "bespeak.cli.workers:make_app"
    assert (options["workers"], options["factory"]) == (3, True)
    assert (options["host"], options["port"]) == ("127.0.0.1", 8123)
    assert Settings.inherited() == Settings(target, "127.0.0.1", 8123, "/here")
    with pytest.warns(RuntimeWarning, match="state keys are configured, but no shared store is"):
        assert isinstance(make_app(), HttpApp)


def test_workers_are_reported_which_proxies_to_trust(write: Write, started: list[Any]) -> None:
    told = Settings(str(write("target_shop.py", ONE)), "127.0.0.1", 8123, "/mcp", ("10.0.0.4", "fd00::/8"))
    workers.run(told, 2)
    assert Settings.inherited() == told


@pytest.mark.parametrize("before", [None, "", " , "])
def test_keys_are_made_once_where_there_are_none(before: str | None, started: list[Any]) -> None:
    if before is not None:
        os.environ[KEYS_VARIABLE] = before
    workers.run(Settings("x.py", "127.0.0.1", 8123, "/mcp"), 2)
    assert len(os.environ[KEYS_VARIABLE].strip(" ,")) >= 32


def test_keys_that_are_there_are_kept(started: list[Any]) -> None:
    os.environ[KEYS_VARIABLE] = "k" * 32
    workers.run(Settings("x.py", "127.0.0.1", 8123, "/mcp"), 2)
    assert os.environ[KEYS_VARIABLE] == "k" * 32
