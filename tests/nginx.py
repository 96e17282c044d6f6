"""nginx for tests: one that is started here, on a free port of loopback."""

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.waiting import eventually

SKIPPED = "nginx is not installed: the tests of a deployment behind nginx are skipped"
MISSING = "nginx is not installed, and CI is set. Install it"
SECONDS = 20
MAIN = """
daemon off;
master_process off;
pid FOLDER/nginx.pid;
events {}
http {
    log_format upstreams '$request_method $status $upstream_addr';
    access_log FOLDER/access.log upstreams;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    include FOLDER/included.conf;
}
"""
"""What belongs around a configuration. One process, so that upstream servers strictly take turns."""


class Nginx:
    """nginx while it runs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @property
    def log(self) -> list[list[str]]:
        """The requests that have ended, each with its method, its status and the upstream servers that were tried."""
        return [line.split(" ", 2) for line in (self._folder / "access.log").read_text().splitlines()]


@asynccontextmanager
async def running_nginx(folder: Path, configuration: str) -> AsyncGenerator[Nginx]:
    """Run nginx with a configuration for its http context. Skips the test where it is not installed; fails it in CI."""
    program = shutil.which("nginx", path=os.pathsep.join([os.environ["PATH"], "/usr/sbin"]))
    if program is None:
        if os.environ.get("CI"):
            pytest.fail(MISSING)
        pytest.skip(SKIPPED)
    (folder / "included.conf").write_text(configuration)
    (folder / "nginx.conf").write_text(MAIN.replace("FOLDER", str(folder)))
    process = _start(program, folder)
    try:
        await eventually(lambda: (folder / "nginx.pid").exists() or process.poll() is not None)
        assert process.poll() is None, (folder / "error.log").read_text()
        yield Nginx(folder)
    finally:
        process.terminate()
        process.wait(SECONDS)


def _start(program: str, folder: Path) -> subprocess.Popen[bytes]:
    command = [program, "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
