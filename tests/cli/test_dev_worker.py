"""The process of the server that `bespeak dev` starts: what it loads, reports and serves."""

import asyncio
import json
import socket
from collections.abc import Callable, Generator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from bespeak.cli import dev_worker
from bespeak.cli.dev_settings import DevSettings
from bespeak.cli.dev_worker import load_app, serve_once
from bespeak.dev.page_gate import PREFIX
from bespeak.dev.supervisor import Loaded, Report
from bespeak.transports.http.asgi import ASGIApp, Message
from tests.cli.conftest import ONE, Write

SHOP = """
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve
mcp = MCPServer("shop")
async def sure(title: str) -> Elicit[bool]:
    return Elicit("Sure?", bool)
@mcp.tool()
async def buy(title: str, sure: Annotated[bool, Resolve(sure)]) -> str:
    return title
@mcp.tool()
async def look() -> str:
    return "nothing"
"""
TOKEN = "a-token"


@pytest.fixture(autouse=True)
def no_lines(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether lines of calls were asked for, instead of having them."""
    asked: list[bool] = []

    def show_calls(*, all_of_them: bool) -> None:
        asked.append(all_of_them)

    monkeypatch.setattr(dev_worker, "show_calls", show_calls)
    return asked


def settings(file: Path | str) -> DevSettings:
    return DevSettings(str(file), 8000, TOKEN)


async def get(app: ASGIApp, path: str) -> tuple[int, bytes]:
    """The status and the body of a response."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        sent.append(message)

    path, _, query = path.partition("?")
    headers = [(b"host", b"127.0.0.1:8000")]
    scope = {"type": "http", "method": "GET", "path": path, "query_string": query.encode(), "headers": headers}
    await app(scope, receive, send)
    return sent[0]["status"], sent[1]["body"]


async def state(app: ASGIApp) -> dict[str, Any]:
    return json.loads((await get(app, f"{PREFIX}{TOKEN}/api/server"))[1])


@pytest.mark.long
async def test_the_page_gets_the_drawings_that_bespeak_graph_makes(write: Write, no_lines: list[bool]) -> None:
    file = write("shop_to_draw.py", SHOP)
    app, report = load_app(settings(file))
    assert report.loaded is Loaded.SERVES
    assert str(file) in report.files
    assert no_lines == [True]
    told = await state(app)
    assert (told["name"], told["url"], told["error"]) == ("shop", "http://127.0.0.1:8000/mcp", None)
    buy, look = told["drawings"]
    assert (buy["kind"], buy["name"], buy["draws"], look["draws"]) == ("tool", "buy", True, False)
    assert buy["summary"] == "at most 2 rounds; the client needs elicitation.form"
    assert "sure <- sure [may ask the user in round 1]" in buy["tree"]
    status, svg = await get(app, f"{PREFIX}{TOKEN}/api/graph?kind=tool&name=buy")
    assert status == 200
    assert svg.startswith(b"<svg")


@pytest.mark.long
async def test_each_process_says_that_it_was_started_anew(write: Write) -> None:
    file = write("shop_again.py", SHOP)
    states = [await state(load_app(settings(file))[0]) for _ in range(2)]
    assert states[0]["started"] != states[1]["started"]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def (", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("", "has no MCPServer at its top level"),
        (
            f"{ONE}from typing import Annotated\nfrom bespeak import Resolve\n@mcp.tool()\ndef f(a: Resolve(f)): ...",
            "NameError",
        ),
        (
            f"{ONE}@mcp.custom_route('/mcp', ['GET'])\nasync def own(request): ...",
            "matches the path of the MCP endpoint",
        ),
    ],
)
@pytest.mark.long
async def test_a_file_that_cannot_be_loaded_is_explained_on_the_terminal_and_on_the_page(
    write: Write, capsys: pytest.CaptureFixture[str], source: str, said: str
) -> None:
    file = write("broken_shop.py", source)
    app, report = load_app(settings(file))
    assert report.loaded is Loaded.FAILED
    assert said in (await state(app))["error"]
    printed = capsys.readouterr().err
    assert said in printed
    assert "Traceback" not in printed
    assert (await get(app, "/mcp"))[0] == 503


# Serving


@pytest.fixture
def listening() -> Generator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


async def lifespan(app: ASGIApp) -> None:
    """Start and end an app as a server does."""
    messages = iter(["startup", "shutdown"])

    async def receive() -> Message:
        return {"type": f"lifespan.{next(messages)}"}

    async def send(message: Message) -> None:
        assert message["type"].endswith(".complete")

    await app({"type": "lifespan"}, receive, send)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, list[socket.socket]]]:
    """What was to be served, and at which sockets, instead of serving it."""
    told: list[tuple[Any, list[socket.socket]]] = []

    def run_http(server: Any, sockets: list[socket.socket]) -> None:
        told.append((server, sockets))
        asyncio.run(lifespan(server.config.app))

    ignored: Callable[[Any], None] = lambda _: None  # noqa: E731
    monkeypatch.setattr(dev_worker, "run_http", run_http)
    monkeypatch.setattr(dev_worker, "end_with_parent", ignored)
    return told


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.long
def test_a_server_is_served_at_the_socket_that_is_given(
    write: Write, listening: socket.socket, served: list[tuple[Any, list[socket.socket]]], first: bool
) -> None:
    ours, theirs = get_context("spawn").Pipe()
    serve_once(listening, theirs, settings(write("served_shop.py", SHOP)), first)
    report = ours.recv()
    assert isinstance(report, Report)
    assert report.loaded is Loaded.SERVES
    ((server, sockets),) = served
    assert sockets == [listening]
    assert server.config.log_level == "warning"


@pytest.mark.long
def test_a_file_that_cannot_be_loaded_the_first_time_ends_the_process(
    listening: socket.socket, served: list[tuple[Any, list[socket.socket]]], capsys: pytest.CaptureFixture[str]
) -> None:
    ours, theirs = get_context("spawn").Pipe()
    with pytest.raises(SystemExit) as ended:
        serve_once(listening, theirs, settings("nothing.py"), True)
    assert ended.value.code == 2
    assert ours.recv() == Report(Loaded.GIVEN_UP)
    assert served == []
    assert "there is no file 'nothing.py'" in capsys.readouterr().err


@pytest.mark.long
def test_a_file_that_cannot_be_loaded_later_leaves_the_page(
    listening: socket.socket, served: list[tuple[Any, list[socket.socket]]]
) -> None:
    ours, theirs = get_context("spawn").Pipe()
    serve_once(listening, theirs, settings("nothing.py"), False)
    assert ours.recv().loaded is Loaded.FAILED
    assert len(served) == 1
