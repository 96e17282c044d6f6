"""Attacks on the wire: what got past a rule of the design or the protocol, and the strongest of what did not."""

import asyncio
import gzip
import json
import logging
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
from mcp_types import ElicitResult
from pydantic import AliasChoices, BaseModel, Field
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import Request
from starlette.responses import Response

from bespeak import Client, Elicit, InvalidSignature, MCPServer, Resolve
from bespeak.client import StdioServerParameters
from bespeak.protocol.errors import HEADER_MISMATCH
from bespeak.protocol.headers import Headers
from bespeak.protocol.messages import Request as WireRequest
from bespeak.protocol.messages import read_message
from bespeak.transports.http.asgi import ASGIApp
from tests.wires import Listening

VERSION = "2026-07-28"
META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
}
PROGRAM = """
import asyncio, sys, time
from pathlib import Path
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("attacked")
SEEN = Path(__file__).with_suffix(".seen")

def say(what):
    with SEEN.open("a") as file:
        file.write(what + "\\n")

async def sure() -> Elicit[bool]:
    return Elicit("sure?", bool)

@mcp.tool()
async def refund(seconds: float, ok: Annotated[bool, Resolve(sure)]) -> str:
    say("begun")
    await asyncio.sleep(seconds)
    say("ended")
    return "refunded"

@mcp.tool()
def hang() -> None:
    say("begun")
    time.sleep(60)
"""


def message(name: str, arguments: dict[str, Any], id_: int = 1, **more: Any) -> bytes:
    params = {"name": name, "arguments": arguments, "_meta": META, **more}
    return json.dumps({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": params}).encode()


def retry(name: str, arguments: dict[str, Any], asked: bytes) -> bytes:
    """The second round: everything that was asked, accepted."""
    result = json.loads(asked)["result"]
    accepted = {"action": "accept", "content": {"value": True}}
    answers = dict.fromkeys(result["inputRequests"], accepted)
    return message(name, arguments, 2, requestState=result["requestState"], inputResponses=answers)


def over_http(name: str, body: bytes, length: int | None = None) -> bytes:
    head = (
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {VERSION}\r\nMcp-Method: tools/call\r\n"
        f"Mcp-Name: {name}\r\nContent-Length: {len(body) if length is None else length}\r\n\r\n"
    )
    return head.encode() + body


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "attacked.py"
    path.write_text(PROGRAM)
    return path


def seen(program: Path) -> list[str]:
    path = program.with_suffix(".seen")
    return path.read_text().split() if path.exists() else []


def until_begun(program: Path) -> None:
    for _ in range(500):
        if seen(program):
            return
        time.sleep(0.01)
    raise AssertionError("the body has not begun")


@contextmanager
def listening(program: Path, *options: str, files: int | None = None) -> Generator[tuple[subprocess.Popen[bytes], int]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    command = [sys.executable, "-X", "dev", "-m", "bespeak.cli", "run", str(program), "--http", "--port", str(port)]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files} && exec "$@"', "sh", *command]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE) as process:
        try:
            for _ in range(400):
                try:
                    urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                    break
                except OSError:
                    time.sleep(0.05)
            yield process, port
        finally:
            process.kill()


# A mirrored argument cannot reach the body past its header (protocol section 24: value in body, header missing: -32020)


class To(BaseModel):
    region: str


NESTED = {"to": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}


def mirroring() -> MCPServer[Any]:
    mcp = MCPServer("mirrors")

    @mcp.tool()
    async def pay(amount: Annotated[int, Field(json_schema_extra={"x-mcp-header": "Amount"})]) -> int:
        return amount

    @mcp.tool(input_schema={"type": "object", "properties": NESTED})
    async def send(to: To) -> str:
        return to.region

    return mcp


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        pytest.param("pay", {"amount": 2**53}, id="an integer above 2**53 - 1"),
        pytest.param("pay", {"amount": 10**30}, id="an integer of any size"),
        pytest.param("pay", {"amount": 1e16}, id="a float above 2**53 - 1"),
        pytest.param("send", {"to": '{"region": "eu"}'}, id="an object as text"),
    ],
)
async def test_no_mirrored_argument_reaches_the_body_without_its_header(name: str, arguments: dict[str, Any]) -> None:
    mcp = mirroring()
    request = read_message(message(name, arguments))
    assert isinstance(request, WireRequest)
    answer = await mcp.answer(request, lambda _: None, Headers([]))
    refused = answer.code == HEADER_MISMATCH or b'"isError":true' in answer.message
    assert refused, answer.message


def test_a_mirrored_argument_has_one_name() -> None:
    async def pay(
        amount: Annotated[
            int,
            Field(validation_alias=AliasChoices("amount", "sum"), json_schema_extra={"x-mcp-header": "Amount"}),
        ],
    ) -> int:
        return amount

    with pytest.raises(InvalidSignature, match="'amount' is repeated in a header, but can be sent as sum too"):
        MCPServer("mirrors").add_tool(pay)


# Shutdown: claimed bodies finish (bounded), and a server that is told to stop stops (design sections 7 and 8)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_not_break_off_a_claimed_body_on_stdio(program: Path, number: signal.Signals) -> None:
    command = [sys.executable, "-m", "bespeak.cli", "run", str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        try:
            assert server.stdin is not None
            assert server.stdout is not None
            server.stdin.write(message("refund", {"seconds": 1.0}) + b"\n")
            server.stdin.flush()
            server.stdin.write(retry("refund", {"seconds": 1.0}, server.stdout.readline()) + b"\n")
            server.stdin.flush()
            until_begun(program)
            for _ in range(2):
                server.send_signal(number)
                time.sleep(0.1)
            server.wait(10)
        finally:
            server.kill()
    assert seen(program) == ["begun", "ended"]


@pytest.mark.long
async def test_a_client_that_leaves_does_not_kill_a_claimed_body(program: Path) -> None:
    async def accept(_context: Any, _params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"value": True})

    server = StdioServerParameters(sys.executable, ["-m", "bespeak.cli", "run", str(program)])
    async with Client(server, elicitation_callback=accept) as client:
        call = asyncio.create_task(client.call_tool("refund", {"seconds": 5.0}))
        await asyncio.to_thread(until_begun, program)
        call.cancel()
        await asyncio.wait({call})
    assert seen(program) == ["begun", "ended"]


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_sync_body_that_hangs_does_not_keep_a_stopped_http_server_alive(
    program: Path, number: signal.Signals
) -> None:
    with listening(program) as (server, port):
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(over_http("hang", message("hang", {})))
            until_begun(program)
        time.sleep(0.1)
        server.send_signal(number)
        server.wait(8)


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_several_workers_end_without_a_socket_left_open(program: Path) -> None:
    with listening(program, "--workers", "2") as (server, _):
        server.send_signal(signal.SIGTERM)
        _, said = server.communicate(timeout=20)
    assert b"ResourceWarning" not in said


# What a client sends is limited, and what is refused is not read on (design section 8)


def test_a_header_section_without_end_is_refused(program: Path) -> None:
    block = b"".join(b"X-%d: " % number + b"a" * 1000 + b"\r\n" for number in range(1000))
    with listening(program) as (_, port), socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
        with pytest.raises(OSError, match=r"(?i)reset|broken pipe"):
            client.sendall(block * 32)


@pytest.mark.parametrize("parser", ["h11", "httptools"])
async def test_the_rest_of_a_body_that_is_too_large_is_not_read(parser: Any) -> None:
    async with Listening(MCPServer("small").streamable_http_app(), parser) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(over_http("any", b"", 10**9))
        assert b" 413 " in await reader.readline()
        writer.write(b"x" * 64_000_000)
        with pytest.raises(OSError, match=r"(?i)reset|broken pipe|lost"):
            await writer.drain()
        writer.close()


def ask(port: int, address: str) -> bytes:
    """The status line of a call from an address."""
    with socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(address, 0)) as client:
        client.sendall(over_http("refund", message("refund", {"seconds": 0})))
        return client.makefile("rb").readline()


@pytest.mark.skipif(sys.platform == "win32", reason="limits on open files")
@pytest.mark.parametrize("half", [b"", b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"])
def test_more_half_sent_heads_than_there_are_files_keep_nobody_else_out(program: Path, half: bytes) -> None:
    with listening(program, files=128) as (_, port), ExitStack() as stack:
        for number in range(160):
            attacker = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=("127.0.0.2", 0))
            stack.enter_context(attacker).sendall(half)
            if number % 20 == 0:
                assert b" 200 " in ask(port, "127.0.0.1")
        assert b" 200 " in ask(port, "127.0.0.1")
        time.sleep(1.1)  # until those of the attacker are no longer young
        assert b" 200 " in ask(port, "127.0.0.2")


# What a disconnect leaves behind


class Through(BaseHTTPMiddleware):
    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        return await call_next(request)


async def test_a_disconnect_is_no_error_behind_a_middleware_of_starlette(caplog: pytest.LogCaptureFixture) -> None:
    ended = asyncio.Event()
    mcp = MCPServer("mounted")

    @mcp.tool()
    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.set()

    app: ASGIApp = Through(mcp.streamable_http_app())
    async with Listening(app) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(over_http("slow", message("slow", {})))
        await asyncio.sleep(0.05)
        writer.close()
        await asyncio.wait_for(ended.wait(), 5)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


async def read_answer(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    return await reader.readexactly(int(length.partition(b":")[2]))


async def test_however_soon_a_client_goes_an_approval_is_spent_once_and_its_body_finishes() -> None:
    begun: list[int] = []
    ended: list[int] = []
    mcp = MCPServer("desk")

    async def sure(order: int) -> Elicit[bool]:
        return Elicit(f"refund {order}?", bool)

    @mcp.tool()
    async def refund(order: int, ok: Annotated[bool, Resolve(sure)]) -> str:
        begun.append(order)
        await asyncio.sleep(0.004)
        ended.append(order)
        return f"refunded {ok}"

    async with Listening(mcp.streamable_http_app(), "httptools") as server:

        async def say(body: bytes, leave_after: float | None = None) -> bytes:
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                writer.write(over_http("refund", body))
                if leave_after is None:
                    return await read_answer(reader)
                await asyncio.sleep(leave_after)
                writer.transport.abort()
                return b""
            finally:
                writer.close()

        async def attack(order: int) -> None:
            approved = retry("refund", {"order": order}, await say(message("refund", {"order": order})))
            await say(approved, order / 4000)
            assert b"refunded True" in await say(approved)

        for order in range(48):
            await attack(order)
    assert begun == ended == list(range(48))


# A client of ours before a hostile server


@asynccontextmanager
async def answering(raw: bytes) -> AsyncGenerator[int]:
    """A server that says the same to everybody."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_what_is_secret_in_a_url_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with Listening(MCPServer("known").streamable_http_app()) as server:
        client = Client(f"http://someone:pass-word@127.0.0.1:{server.port}/mcp?key=very-secret")
        await client.__aenter__()
        await client.__aexit__(None, None, None)
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "pass-word" not in logged
    assert "very-secret" not in logged


async def test_an_answer_that_is_packed_twice_is_not_unpacked_beyond_the_limit() -> None:
    packed = gzip.compress(gzip.compress(b"\0" * 80 * 1024 * 1024))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip, gzip\r\n"
    async with answering(head + b"Content-Length: %d\r\n\r\n" % len(packed) + packed) as port:
        with pytest.raises(ConnectionError, match="sent more than"):
            async with Client(f"http://127.0.0.1:{port}/mcp"):
                pass
