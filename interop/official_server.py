# pyright: basic, reportMissingImports=false
"""One of our programs on the official Python SDK, changed in its imports only: on stdio, or over HTTP when a port is given.

python -m interop.official_server examples/bookshop/reserve.py [PORT]
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

HOMES = {
    "MCPServer": "mcp.server",
    "ResourceNotFoundError": "mcp.server.mcpserver.exceptions",
    "ToolError": "mcp.server.mcpserver.exceptions",
}
"""Where the official SDK has its names, if not in `mcp.server.mcpserver`."""


def with_official_imports(text: str) -> str:
    """The program whose `from bespeak import ...` lines name the official SDK instead. Every other line stays."""
    lines = text.splitlines(keepends=True)
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.ImportFrom) and node.module == "bespeak":
            homes: dict[str, list[str]] = defaultdict(list)
            for alias in node.names:
                homes[HOMES.get(alias.name, "mcp.server.mcpserver")].append(ast.unparse(alias))
            lines[node.lineno - 1 : node.end_lineno] = [
                f"from {home} import {', '.join(names)}\n" for home, names in homes.items()
            ]
    changed = "".join(lines)
    assert "bespeak" not in changed, "a program that moves over by its imports names Bespeak nowhere else"
    return changed


def load(file: Path) -> ModuleType:
    module = ModuleType(file.stem)
    sys.modules[file.stem] = module  # hints are looked up there
    exec(compile(with_official_imports(file.read_text()), file, "exec"), module.__dict__)
    return module


def main() -> None:
    file, *port = sys.argv[1:]
    mcp = load(Path(file)).mcp
    if port:
        mcp.run("streamable-http", port=int(port[0]))
    else:
        mcp.run("stdio")


if __name__ == "__main__":
    main()
