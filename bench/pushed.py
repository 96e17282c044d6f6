"""Calls of 2025-11-25 whose questions are pushed and answered, over connections that stay open.

Written with plain sockets, so that the load takes little beside the server.
"""

import json
import selectors
import socket
import time
from collections.abc import Iterator
from typing import Any

END = b"0\r\n\r\n"
"""The last chunk of a response."""


class _Client:
    """One session: a connection for its calls, and another one for its answers."""

    def __init__(self, port: int, session: str, tool: str, answer: dict[str, Any]) -> None:
        self.calls, self.answers = (socket.create_connection(("127.0.0.1", port)) for _ in range(2))
        for one in (self.calls, self.answers):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = (
            f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json, text/event-stream\r\n"
            f"Content-Type: application/json\r\nMcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-11-25\r\n"
        )
        self._tool = tool
        self._answer = answer
        self._number = 0
        self._asked = False
        self._received = b""

    def close(self) -> None:
        self.calls.close()
        self.answers.close()

    def _post(self, connection: socket.socket, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        connection.sendall(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def call(self, number: int) -> None:
        self._number, self._asked, self._received = number, False, b""
        params = {"name": self._tool, "arguments": {"a": number, "b": 2}}
        self._post(self.calls, {"id": number, "method": "tools/call", "params": params})

    def read(self) -> bool:
        """Take what has arrived on the connection of the call. Return whether the call has ended."""
        more = self.calls.recv(65536)
        assert more, "the server closed the connection"
        self._received += more
        if not self._asked:
            start = self._received.find(b"data: {")
            end = self._received.find(b"\n", start)
            if start < 0 or end < 0:
                return False
            question = json.loads(self._received[start + 6 : end])
            assert question.get("method") == "elicitation/create", question
            self._asked, self._received = True, self._received[end:]
            self._post(self.answers, {"id": question["id"], "result": {"action": "accept", "content": self._answer}})
        if not self._received.endswith(END):
            return False
        expected = b'"text":"%d"' % (self._number + 2)
        assert expected in self._received, self._received
        return True

    def confirmed(self) -> None:
        """Take the response to an answer."""
        response = self.answers.recv(65536)
        assert response.startswith(b"HTTP/1.1 202 "), response


def seconds_per_pushed_call(port: int, sessions: list[str], tool: str, calls: int, answer: dict[str, Any]) -> float:
    """Return the seconds per call, with one call at a time in each session."""
    clients = [_Client(port, session, tool, answer) for session in sessions]
    selector = selectors.DefaultSelector()
    for client in clients:
        selector.register(client.calls, selectors.EVENT_READ, (client, True))
        selector.register(client.answers, selectors.EVENT_READ, (client, False))
    numbers: Iterator[int] = iter(range(calls))
    began = time.perf_counter()
    busy = 0
    for client, number in zip(clients, numbers, strict=False):
        client.call(number)
        busy += 1
    while busy:
        for key, _ in selector.select():
            client, is_call = key.data
            if not is_call:
                client.confirmed()
            elif client.read():
                number = next(numbers, None)
                if number is None:
                    busy -= 1
                else:
                    client.call(number)
    took = time.perf_counter() - began
    selector.close()
    for client in clients:
        client.close()
    return took / calls
