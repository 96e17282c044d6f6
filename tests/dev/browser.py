"""A headless Chromium, driven through chromedriver: what a person at the page does, and what they see."""

import base64
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest

SKIPPED = "chromium or chromedriver is not installed, so tests of the page in a browser are skipped"
SECONDS = 30.0
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
"""The name under which WebDriver hands out an element."""
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
)
T = TypeVar("T")


def require_chromium() -> None:
    """Skip a test where there is no browser; in CI that is a failure."""
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        if os.environ.get("CI"):
            pytest.fail(SKIPPED)
        pytest.skip(SKIPPED)


class Browser:
    """One window."""

    def __init__(self, http: httpx2.Client, session: str) -> None:
        self._http = http
        self._session = session

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        response = self._http.request(method, f"/session/{self._session}{path}", json={} if body is None else body)
        answer = response.json()["value"]
        if response.status_code != 200:
            raise NotThere(f"{answer['error']}: {answer['message'].splitlines()[0]}")
        return answer

    def open(self, url: str) -> None:
        self._send("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a script returns."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, css: str) -> str:
        """Return an element that is there, or comes to be."""
        found = eventually(lambda: self._send("POST", "/elements", {"using": "css selector", "value": css}), css)
        return found[0][ELEMENT]

    def count(self, css: str) -> int:
        return len(self._send("POST", "/elements", {"using": "css selector", "value": css}))

    def text(self, css: str) -> str:
        """Return the text that a person sees."""
        return self._send("GET", f"/element/{self.find(css)}/text")

    def texts(self, css: str) -> list[str]:
        return self.run("return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)", css)

    def click(self, css: str) -> None:
        element = self.find(css)
        eventually(lambda: self._send("GET", f"/element/{element}/enabled"), f"{css}, enabled")
        self.run("arguments[0].scrollIntoView({block: 'center'})", {ELEMENT: element})
        self._send("POST", f"/element/{element}/click")

    def type(self, css: str, text: str) -> None:
        element = self.find(css)
        self._send("POST", f"/element/{element}/clear")
        self._send("POST", f"/element/{element}/value", {"text": text})

    def choose(self, css: str, value: str) -> None:
        """Choose in a list, by the value of the option."""
        self.click(f"{css} option[value='{value}']")

    def wait_for_text(self, css: str, part: str) -> str:
        """Return the text of an element once it contains a part."""
        return eventually(lambda: said if part in (said := self.text(css)) else None, f"{part!r} in {css}")

    def errors(self) -> list[str]:
        """Return what the browser has complained about since the last time, such as a broken policy, but no HTTP statuses."""
        entries = self._send("POST", "/se/log", {"type": "browser"})
        return [one["message"] for one in entries if "Failed to load resource" not in one["message"]]

    def prefer(self, scheme: str) -> None:
        """Have the page drawn in `light` or `dark`."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._send("POST", "/goog/cdp/execute", {"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}})

    def picture(self, file: Path, css: str | None = None) -> None:
        """Write a picture of the window, or of one element."""
        before = self._send("GET", "/window/rect")
        self._send("POST", "/window/rect", {**before, "height": before["height"] if css is None else 2400})
        of = "" if css is None else f"/element/{self.find(css)}"
        data = self._send("GET", f"{of}/screenshot")
        self._send("POST", "/window/rect", before)
        file.write_bytes(base64.b64decode(data))


class NotThere(Exception):
    """The browser refused what it was told."""


def eventually(what: Callable[[], T | None], name: str) -> T:
    """Return what a function returns, once that is something."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            found = what()
        except NotThere:
            found = None
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError(f"it did not come to be: {name}")
        time.sleep(0.02)  # the browser is another program, and knows nothing of the test


@contextmanager
def browser(width: int = 1180, height: int = 900) -> Generator[Browser]:
    """A new browser without any history. It ends with the block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        log = Path(folder) / "driver"
        with log.open("wb") as out:
            driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=out, stderr=out)
        try:
            port = eventually(lambda: _port_in(log), "the port of chromedriver")
            options = {
                "binary": shutil.which("chromium"),
                "args": [*ARGUMENTS, f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"],
            }
            wanted = {
                "alwaysMatch": {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}},
            }
            with httpx2.Client(base_url=f"http://127.0.0.1:{port}", timeout=SECONDS, trust_env=False) as http:
                session = http.post("/session", json={"capabilities": wanted}).json()["value"]
                assert "sessionId" in session, session
                try:
                    yield Browser(http, session["sessionId"])
                finally:
                    http.delete(f"/session/{session['sessionId']}")
        finally:
            driver.terminate()
            driver.wait(SECONDS)


def _port_in(log: Path) -> str | None:
    said = log.read_text(errors="replace").partition("started successfully on port ")[2]
    return said.partition(".")[0] if "." in said else None
