"""What `bespeak test` says of a command line that a newcomer may type."""

from pathlib import Path

import pytest

from tests.cli.desks import bespeak, told


@pytest.mark.parametrize("name", ["shop.yaml", "shpo.bespeak.yaml", "shop"])
def test_a_missing_suite_beside_one_of_nearly_its_name_is_a_typing_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "shop.bespeak.yaml").touch()
    monkeypatch.chdir(tmp_path)
    said = f"{name}:1: there is no such file; did you mean 'shop.bespeak.yaml'?\n"
    assert told(bespeak("test", name), 2) == said
