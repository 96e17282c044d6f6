"""An ASGI app that only parses JSON and answers what it always answers: the floor under any framework."""

# pyright: basic

import json

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
