# pyright: basic, reportMissingImports=false
"""The official Python client at one of the programs, reached by a URL or started by a command.

python -m interop.python_client [--program backorder] [--mode legacy --revision 2025-11-25] http://127.0.0.1:8000/mcp
python -m interop.python_client [--program backorder] [--mode legacy --revision 2025-11-25] COMMAND [ARGUMENT ...]
"""

import asyncio
from typing import Any

from mcp import Client, MCPError, StdioServerParameters

from interop.arguments import given
from interop.checks import Person


def main() -> None:
    told = given()
    server = told.url or StdioServerParameters(command=told.command[0], args=told.command[1:])

    def connect(person: Person | None, **options: Any) -> Client:
        return Client(server, elicitation_callback=person, mode=told.mode, read_timeout_seconds=20, **options)

    asyncio.run(told.check(connect, MCPError, told.expected))


if __name__ == "__main__":
    main()
