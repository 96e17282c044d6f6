"""A server whose tools ask, as a program, and two of them behind nginx with the configuration of the example."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.answering import Person, accept
from tests.cli.programs import COMMAND, Program, free_port, listening
from tests.nginx import Nginx, running_nginx
from tests.transports.http.legacy.older_client import Older

EXAMPLES = Path(__file__).parent.parent / "examples" / "deployment"
KEYS = "k" * 43

SHOP = """
import asyncio, os
from pathlib import Path
from typing import Annotated
from bespeak import Elicit, MCPServer, Resolve

mcp = MCPServer("shop")
HERE = Path(__file__).parent

async def confirm() -> Elicit[bool]:
    return Elicit("Sure?", bool)

@mcp.tool()
async def buy(sure: Annotated[bool, Resolve(confirm)]) -> str:
    with (HERE / "bought").open("a") as file:
        file.write("x")
    return str(os.getpid())

@mcp.tool()
async def take_time() -> str:
    (HERE / f"begun {os.getpid()}").touch()
    while not (HERE / "go").exists():
        await asyncio.sleep(0.01)
    return str(os.getpid())

@mcp.tool()
async def buy_slowly(sure: Annotated[bool, Resolve(confirm)]) -> str:
    return await take_time()

@mcp.tool()
async def where() -> str:
    return str(os.getpid())

@mcp.on_request
async def note(request, proceed):
    with (HERE / "addresses").open("a") as file:
        file.write(f"{request.address}\\n")
    return await proceed()
"""


def write_shop(folder: Path) -> Path:
    """Write the file of a server whose tools note in its folder what they do."""
    file = folder / "shop.py"
    file.write_text(SHOP)
    return file


def person() -> Person:
    return Person({"confirm": accept(value=True)})


def serving(shop: Path, store: str, *options: str) -> list[str]:
    """The command that serves the shop."""
    return [*COMMAND, str(shop), "--http", "--port", "PORT", "--store", store, *options]


def port_of(server: Program) -> int:
    return int(server.url.split("/")[2].partition(":")[2])


class Deployed:
    """Two servers behind nginx."""

    def __init__(self, port: int, servers: list[Program], nginx: Nginx) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.servers = servers
        self.nginx = nginx

    @property
    def pids(self) -> set[str]:
        return {str(one.process.pid) for one in self.servers}

    def server(self, pid: str) -> Program:
        (found,) = [one for one in self.servers if str(one.process.pid) == pid]
        return found

    async def older(self, address: str = "127.0.0.1") -> Older:
        """Return a client of an older revision that has made its handshake."""
        client = Older(self.port, address=address)
        await client.initialize("2025-11-25")
        return client


@asynccontextmanager
async def deployed(shop: Path, store: str) -> AsyncGenerator[Deployed]:
    """Two servers behind nginx, which has the configuration of the example with other addresses."""
    command, port = serving(shop, store, "--trusted-proxy", "127.0.0.1"), free_port()
    async with (
        listening(*command, BESPEAK_STATE_KEYS=KEYS) as one,
        listening(*command, BESPEAK_STATE_KEYS=KEYS) as other,
    ):
        configuration = (EXAMPLES / "nginx.conf").read_text()
        for before, after in (
            ("10.0.0.11:8000", f"127.0.0.1:{port_of(one)}"),
            ("10.0.0.12:8000", f"127.0.0.1:{port_of(other)}"),
            ("listen 80;", f"listen 127.0.0.1:{port};"),
        ):
            assert configuration.count(before) == 1
            configuration = configuration.replace(before, after)
        async with running_nginx(shop.parent, configuration) as nginx:
            yield Deployed(port, [one, other], nginx)
