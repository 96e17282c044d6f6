"""What the page asks for: lists, drawings and the server's state; and requests that are not the page's."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from bespeak.dev.dev_app import NOT_LOADED, DevApp, no_server
from bespeak.dev.page_api import BODY_SECONDS, PageApi, Shown
from bespeak.dev.page_gate import PREFIX, PageGate
from bespeak.transports.http.asgi import Message
from bespeak.transports.interfaces import MESSAGE_LIMIT
from tests.dev.asking_shop import mcp
from tests.dev.pages import LEGACY, MODERN, TOKEN, Page, page_of
from tests.waiting import pass_time, turns


@pytest.fixture
async def page() -> AsyncGenerator[Page]:
    async with page_of(mcp) as page:
        yield page


@pytest.mark.parametrize("era", [MODERN, LEGACY])
async def test_everything_that_a_client_sees_is_listed(page: Page, era: str) -> None:
    lists = (await page.post("api/list", {"era": era})).json()
    assert [one["name"] for one in lists["tools"]] == ["order", "pay", "praise", "index", "break_down"]
    assert lists["tools"][0]["inputSchema"]["properties"].keys() == {"title"}
    assert [one["name"] for one in lists["prompts"]] == ["letter"]
    assert [one["uri"] for one in lists["resources"]] == ["shop://opening"]
    assert [one["uriTemplate"] for one in lists["resourceTemplates"]] == ["shop://book/{title}"]
    assert lists["problems"] == []


async def test_a_list_that_cannot_be_had_says_why(page: Page) -> None:
    assert (await page.post("api/list", {"era": "1999-01-01"})).json()["problems"] != []


async def test_the_state_of_the_server_has_its_drawings(page: Page) -> None:
    told = (await page.get("api/server")).json()
    assert (told["name"], told["target"], told["started"], told["error"]) == ("shop", "server.py", "started-1", None)
    assert told["url"] == f"http://{page.http.base_url.netloc.decode()}/mcp"
    (drawing,) = told["drawings"]
    assert (drawing["kind"], drawing["name"], drawing["draws"]) == ("tool", "buy", True)
    assert drawing["tree"].startswith("buy\n")


async def test_a_drawing_is_an_image_that_can_run_nothing(page: Page) -> None:
    drawn = await page.get("api/graph?kind=tool&name=buy")
    assert (drawn.text, drawn.headers["content-type"]) == ("<svg xmlns='a'/>", "image/svg+xml")
    assert "sandbox" in drawn.headers["content-security-policy"]


@pytest.mark.parametrize("query", ["", "?kind=tool", "?kind=prompt&name=buy", "?kind=tool&name=%00"])
async def test_what_is_not_there_has_no_drawing(page: Page, query: str) -> None:
    response = await page.get(f"api/graph{query}")
    assert (response.status_code, response.text) == (404, "the server has nothing of this name to draw")


# Requests that are not the page's


@pytest.mark.parametrize(
    "path", ["nothing", "api/nothing", "static/page.js", "../page.js", "%2e%2e/pyproject.toml", "page.py"]
)
async def test_there_is_nothing_else(page: Page, path: str) -> None:
    assert (await page.get(path)).status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", ""), ("POST", "page.js"), ("GET", "api/call"), ("GET", "api/list"), ("PUT", "api/call/x/stop")],
)
async def test_each_path_has_its_method(page: Page, method: str, path: str) -> None:
    response = await page.http.request(method, path)
    assert (response.status_code, response.text) == (405, f"{method} is not possible here")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
async def test_a_body_must_say_that_it_is_json(page: Page, kind: str) -> None:
    response = await page.http.post("api/call", content=b"{}", headers={"content-type": kind})
    assert (response.status_code, response.text) == (415, "the body must be JSON, and say so in its Content-Type")


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000])
async def test_a_body_must_be_json(page: Page, body: bytes) -> None:
    response = await page.http.post("api/call", content=body, headers={"content-type": "application/json"})
    assert (response.status_code, response.text) == (400, "the body must be JSON, and say so in its Content-Type")


async def test_a_body_has_a_limit(page: Page) -> None:
    body = b" " * (MESSAGE_LIMIT + 1)
    response = await page.http.post("api/call", content=body, headers={"content-type": "application/json"})
    assert (response.status_code, response.text) == (413, "the body is too large")


CALL: dict[str, Any] = {"era": MODERN, "method": "tools/call", "params": {"name": "order"}}


@pytest.mark.parametrize(
    ("body", "places"),
    [
        ([], "all of it"),
        ({**CALL, "era": "2024-11-05"}, "era"),
        ({**CALL, "method": "tools/list"}, "method"),
        ({**CALL, "params": []}, "params"),
        ({**CALL, "url": "http://evil.example/mcp"}, "url"),
        ({**CALL, "authorization": 1}, "authorization"),
        ({}, "era, method, params"),
    ],
)
async def test_a_call_must_be_one_that_the_page_makes(page: Page, body: Any, places: str) -> None:
    response = await page.post("api/call", body)
    assert (response.status_code, response.text) == (400, f"the request of the page is not valid: see {places}")


@pytest.mark.parametrize("body", [[], {}, {"era": 1}, {"era": MODERN, "more": 1}])
async def test_a_request_for_lists_must_be_one_that_the_page_makes(page: Page, body: Any) -> None:
    response = await page.post("api/list", body)
    assert (response.status_code, response.text) == (400, "the request of the page is not valid")


@pytest.mark.parametrize("what", ["answers", "stop", "", "more/answers"])
async def test_a_call_must_be_under_way(page: Page, what: str) -> None:
    response = await page.post(f"api/call/unknown/{what}", {"answers": {}})
    assert (response.status_code, response.text) == (404, "this call has ended")


@pytest.mark.parametrize(
    ("what", "body"), [("answers", []), ("answers", {"answers": []}), ("answers", {}), ("more", {})]
)
async def test_answers_must_be_a_map(page: Page, what: str, body: Any) -> None:
    async with page.call("order", {"title": "Dune"}) as call:
        await call.until("questions")
        response = await page.post(f"api/call/{call.id}/{what}", body)
        assert (response.status_code, response.text) == (400, "the request of the page is not valid")


# What only a client without a browser does


class Raw:
    """One request to the app, piece by piece."""

    def __init__(self, app: Any, path: str = "api/call", kind: str = "http") -> None:
        self.sent: list[Message] = []
        self.pieces: asyncio.Queue[Message] = asyncio.Queue()
        headers = [(b"host", b"127.0.0.1:8000"), (b"content-type", b"application/json")]
        self._scope = {"type": kind, "method": "POST", "path": f"{PREFIX}{TOKEN}/{path}", "headers": headers}
        self._app = app

    async def run(self) -> None:
        await self._app({**self._scope, "query_string": b""}, self.pieces.get, self._send)

    async def _send(self, message: Message) -> None:
        self.sent.append(message)


def app_of(error: str | None = None) -> DevApp:
    shown = Shown("server.py", "started", "http://127.0.0.1:8000/mcp", error=error)
    return DevApp(no_server, PageGate(TOKEN, 8000), PageApi(shown))


async def test_a_body_must_arrive_in_time() -> None:
    request = Raw(app_of())
    running = asyncio.create_task(request.run())
    await turns()
    await pass_time(BODY_SECONDS + 1)
    await running
    assert (request.sent[0]["status"], request.sent[1]["body"]) == (408, b"the body did not arrive in time")


async def test_nothing_is_sent_to_who_has_gone() -> None:
    request = Raw(app_of())
    request.pieces.put_nowait({"type": "http.disconnect"})
    await request.run()
    assert request.sent == []


async def test_without_a_server_the_page_says_why_and_the_endpoint_only_where_to_look() -> None:
    request = Raw(app_of("server.py cannot be loaded: SyntaxError"), "api/server")
    request._scope["method"] = "GET"  # pyright: ignore[reportPrivateUsage] - of this file
    await request.run()
    assert json.loads(request.sent[1]["body"])["error"] == "server.py cannot be loaded: SyntaxError"
    request = Raw(no_server)
    await request.run()
    assert request.sent[0]["status"] == 503
    assert json.loads(request.sent[1]["body"])["error"]["message"] == NOT_LOADED
    assert "SyntaxError" not in NOT_LOADED


async def test_without_a_server_the_app_starts_and_ends_and_speaks_no_websocket() -> None:
    request = Raw(no_server, kind="lifespan")
    for what in ("startup", "shutdown"):
        request.pieces.put_nowait({"type": f"lifespan.{what}"})
    await request.run()
    assert [one["type"] for one in request.sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    request = Raw(app_of(), kind="websocket")
    await request.run()
    assert request.sent == [{"type": "websocket.close", "code": 1000}]
