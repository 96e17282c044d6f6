"""What happens to tests of nginx where it is not installed."""

import shutil
from pathlib import Path

import pytest

from tests.nginx import MISSING, SKIPPED, running_nginx


@pytest.fixture(autouse=True)
def nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def which(_: str, path: str) -> None: ...

    monkeypatch.setattr(shutil, "which", which)
    monkeypatch.delenv("CI", raising=False)


async def test_without_nginx_tests_are_skipped(tmp_path: Path) -> None:
    with pytest.raises(pytest.skip.Exception, match=f"^{SKIPPED}$"):
        async with running_nginx(tmp_path, ""):
            pass


async def test_without_nginx_tests_fail_in_ci(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match=f"^{MISSING}$"):
        async with running_nginx(tmp_path, ""):
            pass
