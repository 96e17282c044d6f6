"""One library as a server, run by the interpreter that has it: `python server.py bespeak|mcp|bare stdio|PORT`.

`bare` is an ASGI app that only parses JSON and answers what it always answers: the floor under uvicorn.
"""

# pyright: basic, reportMissingImports=false
# The peer is not installed where the types are checked.

import json
import sys

from tools import register

LIBRARY, WHERE = sys.argv[1:3]


REPLY = (
    b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%d"}],"structuredContent":{"result":"%d"},'
    b'"isError":false,"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"Bench","version":""}}}}'
)
"""What a real server answers to `plain`, word for word."""


async def bare(scope, receive, send) -> None:
    if scope["type"] == "lifespan":
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    request = json.loads((await receive())["body"])
    a, b = request["params"]["arguments"].values()
    body = REPLY % (request["id"], a + b, a + b)
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if LIBRARY == "bare":
    app = bare
else:
    if LIBRARY == "bespeak":
        from bespeak import Elicit, MCPServer, Resolve
    else:
        from mcp.server import MCPServer
        from mcp.server.mcpserver import Elicit, Resolve
    mcp = MCPServer("Bench", log_level="ERROR")
    register(mcp, Elicit, Resolve)
    if WHERE == "stdio":
        mcp.run("stdio")
        sys.exit()
    app = mcp.streamable_http_app() if LIBRARY == "bespeak" else mcp.streamable_http_app(json_response=True)

import uvicorn  # noqa: E402

uvicorn.run(app, port=int(WHERE), log_level="error", access_log=False, proxy_headers=False, server_header=False)
