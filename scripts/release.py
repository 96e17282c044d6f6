"""Does everything that a release needs, except the upload: `python -m scripts.release`, or `make release`."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGETS = ("check", "test", "docs", "package")
"""What is made, in this order. Targets that the Makefile does not have are left out."""


def newest_version(changelog: str) -> str | None:
    """Return the version of the newest heading in the changelog, such as `## [0.1.0] - unreleased`."""
    heading = re.search(r"^## \[([^\]]+)\]", changelog, re.MULTILINE)
    return heading.group(1) if heading else None


def faults(changes: str, version: str, changelog: str) -> list[str]:
    """Return what stands in the way of a release. `changes` is what `git status --porcelain` printed."""
    found: list[str] = []
    if changes.strip():
        found.append(f"The tree has changes that are not committed:\n{changes.rstrip()}")
    newest = newest_version(changelog)
    if newest is None:
        found.append("CHANGELOG.md has no heading like '## [0.1.0] - 2026-01-31'.")
    elif newest != version:
        found.append(
            f"pyproject.toml has version {version}, but the newest heading of CHANGELOG.md is {newest}. Make them equal."
        )
    return found


def targets(makefile: str) -> list[str]:
    """Return the targets to make."""
    return [name for name in TARGETS if re.search(rf"^{name}:", makefile, re.MULTILINE)]


def next_steps(version: str, changelog: str) -> str:
    """Return what is left to do by hand."""
    steps = [
        f"git tag -a v{version} -m 'Bespeak {version}' && git push origin v{version}",
        ".package/bin/python -m twine upload dist/*",
    ]
    if re.search(rf"^## \[{re.escape(version)}\] - unreleased", changelog, re.MULTILINE):
        steps.insert(0, "Replace 'unreleased' in CHANGELOG.md with today's date, commit, and run make release again.")
    return "\n".join(
        [f"Bespeak {version} is ready. Next:", *(f"  {number}. {step}" for number, step in enumerate(steps, 1))]
    )


def main() -> int:
    """Check the tree and the version, make the targets, and print what is next. Returns the exit code."""
    changelog = (ROOT / "CHANGELOG.md").read_text()
    version: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    status = subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=True)
    if found := faults(status.stdout, version, changelog):
        print("\n".join(found), file=sys.stderr)
        return 1
    for target in targets((ROOT / "Makefile").read_text()):
        print(f"== make {target}", flush=True)
        if code := subprocess.run(["make", target], cwd=ROOT, check=False).returncode:
            print(f"make {target} failed, so there is nothing to release.", file=sys.stderr)
            return code
    print(next_steps(version, changelog))
    return 0


if __name__ == "__main__":
    sys.exit(main())
