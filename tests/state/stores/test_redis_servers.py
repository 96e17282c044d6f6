"""Which Redis the tests use, and what happens where there is none."""

import shutil
from pathlib import Path

import pytest

from tests.state.stores.redis_servers import MISSING, SKIPPED, VARIABLE, own_server, shared_server


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def which(_: str) -> None: ...

    monkeypatch.setattr(shutil, "which", which)
    for name in (VARIABLE, "CI"):
        monkeypatch.delenv(name, raising=False)


def test_the_server_that_the_environment_names_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "redis://cache/1")
    with shared_server(tmp_path) as url:
        assert url == "redis://cache/1"


def test_without_a_server_tests_are_skipped(tmp_path: Path) -> None:
    for server in (shared_server, own_server):
        with pytest.raises(pytest.skip.Exception, match=f"^{SKIPPED}$"), server(tmp_path):
            pass


def test_without_a_server_tests_fail_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    for server in (shared_server, own_server):
        with pytest.raises(pytest.fail.Exception, match=f"^{MISSING}$"), server(tmp_path):
            pass
