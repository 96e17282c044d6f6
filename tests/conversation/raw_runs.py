"""A test that meets a raw server: the server as a process or over HTTP, and the result of the test."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from bespeak.conversation.profiles.known_profiles import find_profile
from bespeak.testing.report.results import Result
from bespeak.testing.run_options import Options
from bespeak.transports.http.asgi import ASGIApp, Receive, Scope, Send, read_body, respond
from tests.conversation import raw_servers
from tests.conversation.gates import gated
from tests.conversation.raw_servers import Raw, Script, written
from tests.testing.canned import run
from tests.wires import Listening


@asynccontextmanager
async def target(raw: Raw, folder: Path) -> AsyncGenerator[str]:
    """The server of a suite, in YAML."""
    if raw.http:
        async with Listening(over_http(raw)) as listening:
            headers = ", headers: {Authorization: Bearer x}" if {"token", "ignores_token"} & raw.gate.keys() else ""
            yield f"url: '{listening.url}'{headers}"
        return
    (folder / "raw.json").write_text(written(raw))
    yield f"command: [python, {raw_servers.__file__}, raw.json]"


def over_http(raw: Raw) -> ASGIApp:
    """The server as an app: a stream of events if there is more than one message, or else one body."""
    script = Script(json.loads(written(raw)))

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        request = json.loads(await read_body(receive, 100_000) or b"{}")
        if "id" not in request:
            await respond(send, raw.accepted if scope["method"] == "POST" else 405, b"")
            return
        messages = script.messages(request)
        kind, body = b"application/json", messages[0].encode()
        if len(messages) > 1:
            kind, body = b"text/event-stream", "".join(f"{raw.event}data: {one}\n\n" for one in messages).encode()
        called = request["method"] == "tools/call"
        kind = raw.kind.encode() if called and len(messages) == 1 else kind
        more = [(name.encode(), value.encode()) for name, value in raw.headers.items()] if called else []
        await respond(send, raw.status if called else 200, body, (b"content-type", kind), *more)

    return gated(app, raw.gate) if raw.gate or "probe:" in raw.test else app


async def held(raw: Raw, folder: Path) -> Result:
    """The result of the server's test."""
    path = folder / "raw.bespeak.yaml"
    async with target(raw, folder) as server:
        head = f"version: 1\nservers: {{raw: {{{server}, protocol: {raw.revision}, timeout: 20}}}}\n"
        path.write_text(f"{head}tests:\n  - {{name: a, {raw.whole_test}}}\n", encoding="utf-8")
        (result_,) = await run(path, Options(profile=None if raw.profile is None else find_profile(raw.profile)))
    return result_
