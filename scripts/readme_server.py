"""The server that the README begins with, as the file that a reader saves."""

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"


def readme_server(readme: str) -> str:
    """Return the README's first Python snippet that makes a server. Raises `LookupError` if there is none."""
    for snippet in re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE):
        if "MCPServer(" in snippet and "@mcp.tool()" in snippet:
            return snippet
    raise LookupError("the README has no Python snippet with a server and a tool")
