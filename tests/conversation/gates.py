"""What stands before a raw server over HTTP, and refuses what a server should refuse, or does not."""

import itertools
import json
from collections.abc import Mapping
from typing import Any

from bespeak.transports.http.asgi import ASGIApp, Receive, Scope, Send, read_body, respond
from tests.conversation.raw_servers import Json, failed


def gated(app: ASGIApp, gate: Mapping[str, Any]) -> ASGIApp:
    """Check what the gate names.

    `origin`, `headers`, `session`, `delete` (a status), `versions`, `token` (the challenge), `also` (another token that is
    taken), `get` (a status), `kind` (its content type), `document`, `notified` (the status and the body of what answers a
    notification).
    """

    numbers = itertools.count(1)
    ended: set[str] = set()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        given = {name.decode(): value.decode() for name, value in scope["headers"]}
        body = await read_body(receive, 100_000) or b""
        request: Json = json.loads(body or b"{}")
        method, kind = scope["method"], (b"content-type", b"application/json")
        meta = request.get("params", {}).get("_meta", {})
        if method == "POST" and "id" not in request and "notified" in gate:
            status, said = gate["notified"]
            await respond(send, status, said.encode(), kind)
        elif method == "GET" and "document" in gate and scope["path"] == "/document":
            await respond(send, 200, json.dumps(gate["document"]).encode(), kind)
        elif method == "DELETE" and "session" in gate:
            ended.add(given.get("mcp-session-id", ""))
            await respond(send, gate.get("delete", 204), b"")
        elif method != "POST":
            await respond(send, gate.get("get", 405), b"", (b"content-type", gate.get("kind", "text/plain").encode()))
        elif gate.get("origin") and "origin" in given:
            await respond(send, 403 if gate["origin"] is True else gate["origin"], b"")
        elif "token" in gate and given.get("authorization") not in ("Bearer x", gate.get("also", "")):
            host = f"http://{given['host']}"
            await respond(send, 401, b"", *_challenge(gate["token"].replace("$host", host)))
        elif gate.get("versions") and given.get("mcp-protocol-version") == "2031-01-01":
            refused = {**failed(gate["versions"]), "id": request["id"]}
            await respond(send, 400, json.dumps(refused).encode(), kind)
        elif gate.get("session") == "checked" and given.get("mcp-session-id") in ended:
            await respond(send, 404, b"")
        elif gate.get("session") == "needed" and request["method"] != "initialize" and not _in_session(given):
            await respond(send, 400, json.dumps({**failed(-32020), "id": request.get("id")}).encode(), kind)
        elif gate.get("headers") and request["method"] != "initialize" and not _same(given, request, meta, gate):
            mismatch = {**failed(-32020), "id": request["id"]}
            await respond(send, 400, json.dumps(mismatch).encode(), kind)
        else:

            async def again() -> Any:
                return {"type": "http.request", "body": body}

            async def named(message: Any) -> None:
                if message["type"] == "http.response.start" and "session" in gate and request["method"] == "initialize":
                    session = f"session-{next(numbers)}".encode()
                    message["headers"] = [*message["headers"], (b"mcp-session-id", session)]
                await send(message)

            await app(scope, again, named)

    return guarded


def _challenge(challenge: str) -> list[tuple[bytes, bytes]]:
    return [(b"www-authenticate", challenge.encode())] if challenge else []


def _in_session(given: Mapping[str, str]) -> bool:
    return given.get("mcp-session-id", "").startswith("session-") and "mcp-protocol-version" in given


def _same(given: Mapping[str, str], request: Json, meta: Mapping[str, Any], gate: Mapping[str, Any]) -> bool:
    version = meta.get("io.modelcontextprotocol/protocolVersion")
    if request["method"] == "tools/call" and given.get("mcp-name") != request["params"]["name"]:
        return False
    if gate["headers"] is not True and "mcp-protocol-version" not in given:
        version = None
    return given.get("mcp-method") == request["method"] and given.get("mcp-protocol-version") == version
