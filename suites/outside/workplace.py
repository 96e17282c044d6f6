"""The folder and the pages that the servers under test work with. Each run gets new ones, and leaves nothing behind."""

import base64
import os
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

FILES = {
    "secret.txt": "hidden\n",
    "files-not/secret.txt": "hidden\n",
    "files/poem.txt": "first\nsecond\nthird\n",
    "repository/poem.txt": "first\n",
    "pages/tea.html": "<html><head><title>Tea</title></head><body><article><h1>Tea</h1>"
    '<p>Tea is <b>good</b> for <a href="/you">you</a>. It has been drunk for thousands of years, and it still is.</p>'
    "</article></body></html>\n",
    "pages/data.json": '{"leaves": 3}\n',
    "pages/robots.txt": "User-agent: *\nDisallow: /private\n",
    "pages/private/diary.html": "<html><body><article><p>Dear diary, nobody may read this page.</p></article></body></html>\n",
}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="
"""A PNG of one pixel."""


@contextmanager
def workplace() -> Generator[dict[str, str]]:
    """Make a folder and serve its pages. Return the environment variables that the suites use."""
    with tempfile.TemporaryDirectory(prefix="bespeak-outside-") as name:
        folder = Path(name).resolve()
        for path, text in FILES.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "files" / "dot.png").write_bytes(base64.b64decode(DOT))
        (folder / "files" / "link-to-secret").symlink_to(folder / "secret.txt")
        _commit(folder / "repository")
        with _pages(folder / "pages") as url:
            yield {"OUTSIDE_FOLDER": str(folder), "OUTSIDE_PAGES": url}


def _commit(repository: Path) -> None:
    """Make a repository with one commit, a file that has changed since, and a new one."""
    alone = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for words in (
        "init --quiet --initial-branch main",
        "config user.name Tester",
        "config user.email tester@example.org",
        "config commit.gpgsign false",
        "add poem.txt",
        "commit --quiet --message Begin",
    ):
        subprocess.run(["git", *words.split()], cwd=repository, env={**os.environ, **alone}, check=True)
    (repository / "poem.txt").write_text("first\nsecond\n")
    (repository / "new.txt").write_text("new\n")


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def _pages(folder: Path) -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()
