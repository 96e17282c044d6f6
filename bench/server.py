"""One library as a server, run by the interpreter that has it: `python server.py LIBRARY stdio|PORT [json|stream]`.

`bare` is the app in `bare.py`: the floor under uvicorn. `json` and `stream` are for the peers, which answer with one or the
other; ours answers with what each call needs.
"""

# pyright: basic, reportMissingImports=false
# The peers are not installed where the types are checked.

import logging
import sys

LIBRARY, WHERE = sys.argv[1:3]
AS_JSON = sys.argv[3:] != ["stream"]

if LIBRARY == "bare":
    from bare import bare as app
elif LIBRARY == "fastmcp":
    from fastmcp_tools import make

    logging.disable(logging.WARNING)
    mcp = make()
    if WHERE == "stdio":
        mcp.run("stdio", show_banner=False)
        sys.exit()
    app = mcp.http_app(json_response=AS_JSON)
else:
    from tools import register

    if LIBRARY == "bespeak":
        from bespeak import Context, Elicit, MCPServer, Resolve
    else:
        from mcp.server import MCPServer
        from mcp.server.mcpserver import Context, Elicit, Resolve
    mcp = MCPServer("Bench", log_level="ERROR")
    register(mcp, Elicit, Resolve, Context)
    if WHERE == "stdio":
        mcp.run("stdio")
        sys.exit()
    app = mcp.streamable_http_app() if LIBRARY == "bespeak" else mcp.streamable_http_app(json_response=AS_JSON)

import uvicorn  # noqa: E402

uvicorn.run(
    app,
    port=int(WHERE),
    loop="uvloop",
    http="httptools",
    log_level="error",
    access_log=False,
    proxy_headers=False,
    server_header=False,
)
