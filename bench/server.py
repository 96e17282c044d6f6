"""One library as a server, run by the interpreter that has it: `python server.py bespeak|mcp|bare stdio|PORT`.

`bare` is the app in `bare.py`: the floor under uvicorn.
"""

# pyright: basic, reportMissingImports=false
# The peer is not installed where the types are checked.

import sys

from tools import register

LIBRARY, WHERE = sys.argv[1:3]

if LIBRARY == "bare":
    from bare import bare as app
else:
    if LIBRARY == "bespeak":
        from bespeak import Elicit, MCPServer, Resolve
    else:
        from mcp.server import MCPServer
        from mcp.server.mcpserver import Elicit, Resolve
    mcp = MCPServer("Bench", log_level="ERROR")
    register(mcp, Elicit, Resolve)
    if WHERE == "stdio":
        mcp.run("stdio")
        sys.exit()
    app = mcp.streamable_http_app() if LIBRARY == "bespeak" else mcp.streamable_http_app(json_response=True)

import uvicorn  # noqa: E402

uvicorn.run(app, port=int(WHERE), log_level="error", access_log=False, proxy_headers=False, server_header=False)
