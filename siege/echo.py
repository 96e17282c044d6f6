"""A server whose one tool says what it is told, for a suite to look at."""

from bespeak import MCPServer

mcp = MCPServer("echo", version="1.0.0")


@mcp.tool()
async def echo(text: str) -> str:
    return text


if __name__ == "__main__":
    mcp.run()
