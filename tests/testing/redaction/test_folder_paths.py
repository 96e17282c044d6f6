"""Paths of folders in texts: replaced where they are whole, in each form, and put back."""

from pathlib import Path

import pytest

from bespeak.testing.redaction.folder_paths import could_be, folders_of
from bespeak.testing.redaction.redactor import Redactor

HERE = Path("/srv/jörg's check out")


def hidden(text: str, suite: Path = HERE, server: Path | None = None) -> str:
    return Redactor(folders=folders_of(suite, server)).text(text)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Allowed directories:\n/srv/jörg's check out/shared", "Allowed directories:\n[suiteFolder]/shared"),
        ("/srv/jörg's check out", "[suiteFolder]"),
        ("it is in /srv/jörg's check out.", "it is in [suiteFolder]."),
        ("file:///srv/j%C3%B6rg%27s%20check%20out/a.txt", "file://[suiteFolder]/a.txt"),
        (r'{"path": "/srv/j\u00f6rg\'s check out/a"}'.replace("\\'", "'"), '{"path": "[suiteFolder]/a"}'),
    ],
)
def test_a_folder_is_replaced_as_it_is_in_a_uri_and_in_json(text: str, told: str) -> None:
    assert hidden(text) == told


@pytest.mark.parametrize("text", ["/srv/app2/x", "/srv/app-old", "/srv/app.bak", "/mnt/srv/app", "srv/app"])
def test_a_path_that_only_looks_like_the_folder_is_kept(text: str) -> None:
    assert hidden(text, Path("/srv/app")) == text


def test_the_folder_of_the_server_has_a_placeholder_of_its_own_outside_of_the_suites_folder() -> None:
    assert hidden("/srv/app/x and /opt/server/y", Path("/srv/app"), Path("/opt/server")) == (
        "[suiteFolder]/x and [serverFolder]/y"
    )
    assert hidden("/srv/app/data/x", Path("/srv/app"), Path("/srv/app/data")) == "[suiteFolder]/data/x"
    assert hidden("/srv/app/x and /srv/y", Path("/srv/app"), Path("/srv/app/..")) == (
        "[suiteFolder]/x and [serverFolder]/y"
    )


def test_a_folder_behind_a_link_is_found_by_both_of_its_paths(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    link.symlink_to(real)
    assert hidden(f"{real}/a {link}/a", link) == "[suiteFolder]/a [suiteFolder]/a"


def test_the_root_of_the_file_system_is_no_folder_to_replace() -> None:
    assert hidden("/etc/hostname", Path("/")) == "/etc/hostname"


def test_folders_are_put_back_as_paths_and_in_uris() -> None:
    redactor = Redactor(folders=folders_of(HERE, None))
    stored = {"text": "[suiteFolder]/a", "links": ["file://[suiteFolder]/a"]}
    assert redactor.restored(stored) == {
        "text": "/srv/jörg's check out/a",
        "links": ["file:///srv/j%C3%B6rg%27s%20check%20out/a"],
    }


def test_a_mock_takes_any_folder_in_place_of_a_placeholder() -> None:
    assert could_be("[suiteFolder]/a.txt", "/home/me/a.txt")
    assert not could_be("[suiteFolder]/a.txt", "/home/me/b.txt")
    assert not could_be("[suiteFolder]/a.txt", "/a.txt")
    assert could_be("a.txt", "a.txt")
    assert not could_be("a.txt", "b.txt")
