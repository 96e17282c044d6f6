"""The tools under measurement as a file that `bespeak run` serves."""

# pyright: basic
# The tools take either library, so their types are not known.

from bench.tools import register
from bespeak import Context, Elicit, MCPServer, Resolve

mcp = MCPServer("Bench", log_level="ERROR")
register(mcp, Elicit, Resolve, Context)
