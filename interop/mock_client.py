# pyright: basic, reportMissingImports=false
"""The official Python client at `bespeak mock interop/tapes`, reached by a URL or started by a command.

python -m interop.mock_client [--legacy] http://127.0.0.1:8000/mcp
python -m interop.mock_client [--legacy] COMMAND [ARGUMENT ...]
"""

import asyncio
import sys

from mcp import Client, MCPError, StdioServerParameters
from mcp.types import ElicitResult

ANSWERS = {"SFO serves several cities. Which one?": "San Francisco", "Units for San Francisco?": "C"}


async def visit(target: list[str], *, legacy: bool) -> None:
    asked: list[str] = []

    async def answer(context, params):
        asked.append(params.message)
        return ElicitResult(action="accept", content={"value": ANSWERS[params.message]})

    first, *rest = target
    server = first if first.startswith("http") else StdioServerParameters(command=first, args=rest)
    async with Client(server, elicitation_callback=answer, mode="legacy" if legacy else "auto") as client:
        assert client.protocol_version == ("2025-11-25" if legacy else "2026-07-28"), client.protocol_version
        assert [tool.name for tool in (await client.list_tools()).tools] == ["forecast"]
        result = await client.call_tool("forecast", {"loc": "SFO"})
        assert result.content[0].text == "San Francisco in C", result
        assert asked == list(ANSWERS), asked
        said = ""
        try:
            await client.call_tool("forecast", {"loc": "LHR"})
        except MCPError as error:
            said = str(error)
        assert "diverged at round 0" in said, said
    print("a recorded conversation, and a call that was not recorded")


if __name__ == "__main__":
    given = sys.argv[1:]
    asyncio.run(visit([word for word in given if word != "--legacy"], legacy="--legacy" in given))
