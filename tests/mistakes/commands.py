"""Mistakes at the command line and when a server starts, by their headings in docs/reference/errors.md."""

from tests.mistakes.mistake import Mistake, program, typed

MISTAKES: dict[str, Mistake] = {
    "A file that is not there": typed("run", "servre.py"),
    "A server that the file does not have": typed("run", "server.py:shop"),
    "Several servers in one file": typed(
        "run", "server.py", source="del mcp\nfirst = MCPServer()\nsecond = MCPServer()\n"
    ),
    "A tool that the server does not have": typed("call", "server.py", "order_bok", "title=Dune"),
    "An argument that the tool does not have": typed("call", "server.py", "order_book", "titel=Dune"),
    "An argument without its name": typed("call", "server.py", "order_book", "Dune"),
    "A value with spaces": typed("call", "server.py", "order_book", "title=Dune", "Messiah"),
    "An argument that is written as an option": typed("call", "server.py", "order_book", "--title", "Dune"),
    "Arguments that are not JSON": typed("call", "server.py", "order_book", "--arguments", "{'title': 'Dune'}"),
    "An answer with the fields of a form": typed(
        "call", "server.py", "order_book", "title=Dune", "--answer", 'confirm={"value": true}'
    ),
    "A call without its server": typed("call", "order_book", "title=Dune"),
    "An argument that is missing": typed("call", "server.py", "order_book"),
    "An answer under another name": typed("call", "server.py", "order_book", "title=Dune", "--answer", "confrim=true"),
    "An answer in braces without double quotes": typed(
        "call", "server.py", "order_book", "title=Dune", "--answer", "server:confirm={accept: {value: true}}"
    ),
    "An answer that does not fit its form": typed(
        "call", "server.py", "order_book", "title=Dune", "--answer", "server:confirm=yes"
    ),
    "An address without `http://`": typed("call", "127.0.0.1:8000/mcp", "order_book"),
    "Nobody listens there": typed("call", "http://127.0.0.1:9/mcp", "order_book"),
    "A command that does not exist": typed("call", "pyton server.py", "order_book"),
    "HTTP options without `--http`": typed("run", "server.py", "--port", "8000"),
    "Options of `run()` over stdio": program("mcp.run(port=8000)\n"),
    "A transport that does not exist": program("mcp.run('http')\n"),
    "An option that does not exist": program("mcp.run('streamable-http', prot=8000)\n"),
    "A port that does not exist": program("mcp.run('streamable-http', port=80000)\n"),
    "`mcp.run()` in async code": program("async def main():\n    mcp.run()\nasyncio.run(main())\n"),
    "A state key that is too short": program(
        "from bespeak import RequestStateSecurity\nMCPServer(request_state_security=RequestStateSecurity(keys=['secret']))\n"
    ),
    "A store that does not exist": program("MCPServer(store='redis')\n"),
    "An option that the server does not have": program("MCPServer('Bookshop', port=8000)\n"),
}
