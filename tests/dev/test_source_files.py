"""Which source files count, and when they have changed."""

import os
import sys
from pathlib import Path

import pytest

from bespeak.dev.source_files import SourceFiles, changed, loaded_files
from bespeak.server.targets import CannotLoad, load
from tests.cli.conftest import ONE, Write


def looking_at(*files: Path) -> SourceFiles:
    source = SourceFiles()
    source.add(map(str, files))
    return source


def test_a_file_that_is_written_again_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("one = 1")
    source = looking_at(file)
    before = source.state()
    assert changed(before, source.state()) == []
    file.write_text("one = 11")
    assert changed(before, source.state()) == [str(file)]


def test_the_same_size_at_another_time_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("one = 1")
    source = looking_at(file)
    before = source.state()
    os.utime(file, ns=(1, 1))
    assert changed(before, source.state()) == [str(file)]


def test_a_new_file_beside_one_that_is_loaded_is_a_change_and_so_is_one_that_is_gone(tmp_path: Path) -> None:
    file, beside = tmp_path / "server.py", tmp_path / "shop.py"
    file.touch()
    source = looking_at(file)
    before = source.state()
    beside.touch()
    (tmp_path / "notes.txt").touch()
    assert changed(before, source.state()) == [str(beside)]
    before = source.state()
    beside.unlink()
    assert changed(before, source.state()) == [str(beside)]


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    source = looking_at(tmp_path / "gone" / "server.py")
    assert source.state() == {}


def test_a_folder_that_cannot_be_read_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    file = tmp_path / "server.py"
    file.touch()
    monkeypatch.setattr(Path, "glob", refused)
    assert list(looking_at(file).state()) == [str(file)]


@pytest.mark.long
def test_the_files_of_the_author_are_looked_at_and_no_others(write: Write) -> None:
    write("helper.py", "")
    file = write("shop_of_files.py", f"import helper, json, pydantic\n{ONE}")
    load(str(file))
    found = loaded_files()
    assert {str(file), str(file.with_name("helper.py"))} <= set(found)
    assert not [one for one in found if "site-packages" in one or one == str(Path(str(sys.modules["json"].__file__)))]
    assert not [one for one in found if "/src/bespeak/" in one]


@pytest.mark.long
def test_a_file_in_which_loading_failed_is_looked_at(write: Write) -> None:
    broken = write("parts/broken_part.py", "def (")
    raising = write("parts/raising_part.py", "import broken_part")
    file = write("shop_of_parts.py", f"import sys; sys.path.append({str(broken.parent)!r})\nimport raising_part")
    with pytest.raises(CannotLoad) as failed:
        load(str(file))
    assert {str(broken), str(raising), str(file)} <= set(loaded_files(failed.value))
