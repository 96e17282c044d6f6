"""What the built packages may contain."""

import io
import tarfile
import zipfile
from pathlib import Path

from scripts.packaged_files import (
    NEEDED_IN_SDIST,
    NEEDED_IN_WHEEL,
    faults_of_sdist,
    faults_of_wheel,
    names_in_sdist,
    names_in_wheel,
)


def test_an_sdist_with_what_it_needs_has_no_fault() -> None:
    assert faults_of_sdist(NEEDED_IN_SDIST, [name for name in NEEDED_IN_SDIST if name != "PKG-INFO"]) == []


def test_a_file_that_is_missing_in_the_sdist_is_named() -> None:
    assert faults_of_sdist([name for name in NEEDED_IN_SDIST if name != "LICENSE"], None) == ["LICENSE is missing"]


def test_caches_and_downloads_do_not_belong_into_the_sdist() -> None:
    unwanted = [".venv-3.12/x.py", "interop/node_modules/a.js", "src/bespeak/__pycache__/a.py", "tests/a.pyc"]
    assert faults_of_sdist([*NEEDED_IN_SDIST, *unwanted], NEEDED_IN_SDIST) == [
        f"{name} does not belong into a package" for name in unwanted
    ]


def test_a_file_that_is_not_of_the_project_is_named() -> None:
    assert faults_of_sdist([*NEEDED_IN_SDIST, "notes.txt"], NEEDED_IN_SDIST) == [
        "notes.txt is not a file of the project"
    ]


def test_a_wheel_has_every_module_and_nothing_else() -> None:
    names = [*NEEDED_IN_WHEEL, "bespeak/a.py", "bespeak-0.1.0.dist-info/METADATA"]
    assert faults_of_wheel(names, ["bespeak/a.py"]) == []
    assert faults_of_wheel([*names, "tests/a.py"], ["bespeak/b.py"]) == [
        "bespeak/b.py is missing",
        "tests/a.py does not belong into a wheel",
    ]


def test_the_files_of_both_archives_are_read(tmp_path: Path) -> None:
    sdist, wheel = tmp_path / "a.tar.gz", tmp_path / "a.whl"
    with tarfile.open(sdist, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("bespeak-0.1.0/src/a.py"), io.BytesIO())
    with zipfile.ZipFile(wheel, "w") as zipped:
        zipped.writestr("bespeak/a.py", "")
    assert names_in_sdist(sdist) == ["src/a.py"]
    assert names_in_wheel(wheel) == ["bespeak/a.py"]
