"""Requests as bytes, sent and checked with as little work as possible, so that the server is what is measured."""

import json
import socket
import subprocess
import time
from collections.abc import Callable
from typing import Any

META: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
}
INITIALIZE: dict[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"elicitation": {}},
    "clientInfo": {"name": "bench", "version": "1"},
}
"""How a client of 2025-11-25 begins a session."""
CONNECTIONS = 8
"""Requests in flight over HTTP, one a connection: the server always has something to do."""


def message(tool: str, number: int, **more: Any) -> bytes:
    """A call that adds 2 to a number."""
    params: dict[str, Any] = {"name": tool, "arguments": {"a": number, "b": 2}, **more, "_meta": META}
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}).encode()


def answered(tool: str, number: int, response: dict[str, Any], content: dict[str, Any] | None = None) -> bytes | None:
    """Checks a response; the retry to send if it asks, `None` if it is the sum."""
    result = response["result"]
    assert response["id"] == number, response
    if result["resultType"] == "input_required":
        answers = {key: {"action": "accept", "content": content or {"yes": True}} for key in result["inputRequests"]}
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        return message(tool, number, inputResponses=answers, **state)
    assert result["content"][0]["text"] == str(number + 2), response
    return None


class Http:
    """Some connections to one server."""

    def __init__(self, port: int) -> None:
        self._head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json, text/event-stream\r\n"
            "Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n"
        )
        self._sockets = [socket.create_connection(("127.0.0.1", port)) for _ in range(CONNECTIONS)]
        for one in self._sockets:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def close(self) -> None:
        for one in self._sockets:
            one.close()

    def run(self, tool: str, calls: int, *, requests: int = 1) -> float:
        """Seconds per call. `requests`: a server that never asks is sent each call so often, to be a floor for one that does."""
        head = f"{self._head}Mcp-Name: {tool}\r\n"
        ready = [_request(head, message(tool, number)) for number in range(calls)]
        retries = _Retries(head, tool, calls) if tool == "asked" and requests == 1 else None
        waiting = iter([number for number in range(calls) for _ in range(requests)])
        busy: dict[socket.socket, int] = {}
        started = time.perf_counter()
        for one in self._sockets:
            number = next(waiting, None)
            if number is not None:
                busy[one] = number
                one.sendall(ready[number])
        while busy:
            for one in list(busy):
                number = busy[one]
                body = _receive(one)
                if retries is not None and (state := retries.state(body)):
                    one.sendall(retries.request(number, state, body))
                    continue
                if b'"text":"%d"' % (number + 2) not in body or b'"id":%d' % number not in body:
                    raise AssertionError(f"call {number} of {tool} was answered with {body!r}")
                number = next(waiting, None)
                if number is None:
                    del busy[one]
                else:
                    busy[one] = number
                    one.sendall(ready[number])
        return (time.perf_counter() - started) / calls


class _Retries:
    """The second requests of calls that ask, written beforehand but for the key and the state."""

    _MARK = b'"requestState":"'
    _ASKED = b'"inputRequests":{"'

    def __init__(self, head: str, tool: str, calls: int) -> None:
        self._head = head
        self._tool = tool
        self._calls = calls
        self._parts: list[list[bytes]] = []
        self._sent: set[int] = set()

    def state(self, body: bytes) -> bytes:
        """The state in a response; empty if it asks nothing."""
        return body.partition(self._MARK)[2].partition(b'"')[0]

    def request(self, number: int, state: bytes, body: bytes) -> bytes:
        if not self._parts:
            answers = {"@": {"action": "accept", "content": {"yes": True}}}
            for call in range(self._calls):
                written = message(self._tool, call, inputResponses=answers, requestState="@")
                self._parts.append(written.split(b'"@"'))
        if number in self._sent:
            raise AssertionError(f"call {number} of {self._tool} asks again: {body!r}")
        self._sent.add(number)
        key = body.partition(self._ASKED)[2].partition(b'"')[0]
        before, between, after = self._parts[number]
        return _request(self._head, b'%s"%s"%s"%s"%s' % (before, key, between, state, after))


def _request(head: str, body: bytes) -> bytes:
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def _receive(one: socket.socket) -> bytes:
    """The body of one response."""
    data = one.recv(65536)
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        if end:
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            if len(body) >= length:
                return body
        more = one.recv(65536)
        assert more, "the server closed the connection"
        data += more


class Stdio:
    """A server as a child process, one request at a time."""

    def __init__(self, command: list[str]) -> None:
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait(10)

    def run(self, tool: str, calls: int) -> float:
        """Seconds per call."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        started = time.perf_counter()
        for number in range(calls):
            body: bytes | None = message(tool, number)
            while body is not None:
                self._child.stdin.write(body + b"\n")
                self._child.stdin.flush()
                body = answered(tool, number, json.loads(self._child.stdout.readline()))
        return (time.perf_counter() - started) / calls


def until_it_listens(port: int, alive: Callable[[], bool]) -> None:
    """Return when a server takes connections. Raises `TimeoutError`."""
    for _ in range(300):
        assert alive(), "the server ended before it listened"
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nobody listens on port {port}")
