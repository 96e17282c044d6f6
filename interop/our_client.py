"""Our client at a refund desk, reached by a URL or started by a command.

python -m interop.our_client http://127.0.0.1:8000/mcp
python -m interop.our_client COMMAND [ARGUMENT ...]
"""

import asyncio
import sys

from bespeak import Client, MCPError, StdioServerParameters
from interop.checks import Person, check


def main() -> None:
    first, *rest = sys.argv[1:]
    server = first if first.startswith("http") else StdioServerParameters(command=first, args=rest)

    def connect(person: Person | None) -> Client:
        return Client(server, elicitation_callback=person, read_timeout_seconds=20)

    asyncio.run(check(connect, MCPError))


if __name__ == "__main__":
    main()
