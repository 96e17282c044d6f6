"""Mistakes that are found while a server starts and serves, by their headings in docs/reference/errors.md."""

from tests.mistakes.mistake import Mistake, alone, client, program

_HTTP = "import contextlib\nimport httpx2\nfrom bespeak.client import streamable_http_client\n"


def _reached(url: str, *, app: str = "mcp.streamable_http_app()", running: str = "mcp.lifespan(None)") -> Mistake:
    """A client that is connected to an app in its own process by a URL."""
    return program(
        f"{_HTTP}async def main():\n"
        f"    transport = httpx2.ASGITransport({app})\n"
        f"    async with {running}, httpx2.AsyncClient(transport=transport) as http:\n"
        f"        async with Client(streamable_http_client('{url}', http_client=http)) as client:\n"
        "            await client.list_tools()\n"
        "asyncio.run(main())\n"
    )


_MOUNTED = "Starlette(routes=[Mount('/books', mcp.streamable_http_app())], lifespan=mcp.lifespan)"
_IMPORTS = "from starlette.applications import Starlette\nfrom starlette.routing import Mount\n"


def _mounted(url: str) -> Mistake:
    reached = _reached(url, app=_MOUNTED)
    return Mistake(_IMPORTS + reached.source)


MISTAKES: dict[str, Mistake] = {
    "A server file that never runs": alone(""),
    "A port in use": alone(
        "import socket\nother = socket.socket()\nother.bind(('127.0.0.1', 0))\nother.listen()\n"
        "mcp.run('streamable-http', port=other.getsockname()[1])\n"
    ),
    "A wrong path": _mounted("http://127.0.0.1/books"),
    "A path that belongs to another app": _mounted("http://127.0.0.1/mcp"),
    "A host that is not allowed": _reached("http://mcp.example.com/mcp"),
    "A mounted app without the lifespan": _reached("http://127.0.0.1/mcp", running="contextlib.nullcontext()"),
    "A package that is not installed": program(
        "import sys\nsys.modules['uvicorn'] = None\nmcp.run('streamable-http')\n"
    ),
    "A lifespan without its decorator": program(
        "async def lifespan(server):\n    yield\n"
        "async def main():\n    async with Client(MCPServer(lifespan=lifespan)): ...\nasyncio.run(main())\n"
    ),
    "A lifespan that fails": Mistake(
        "from contextlib import asynccontextmanager\nfrom bespeak import MCPServer\n@asynccontextmanager\n"
        "async def lifespan(server):\n    raise ConnectionError('no database')\n    yield\n"
        "mcp = MCPServer('Bookshop', lifespan=lifespan)\n",
        ("call", "server.py", "order_book"),
    ),
    "State keys without a shared store": program(
        "from bespeak import RequestStateSecurity\n"
        "shop = MCPServer(request_state_security=RequestStateSecurity(keys=['k' * 32]))\n"
        "async def main():\n    async with shop.lifespan(None): ...\nasyncio.run(main())\n"
    ),
    "A call that cannot be continued": client(
        "await client.session.call_tool('order_book', {'title': 'Dune'}, input_responses={}, request_state='from before')"
    ),
    "A question that the client cannot show": client("await client.call_tool('order_book', {'title': 'Dune'})"),
}
