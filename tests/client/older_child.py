"""A server of the legacy era in a process of its own, which writes down what it hears and can be made to die."""

import json
import sys
from pathlib import Path

from bespeak import StdioServerParameters

SCRIPT = r"""
import json, os, sys

where, how = sys.argv[1], sys.argv[2]
heard = open(where, "a", buffering=1)
life = sum('"start"' in line for line in open(where))
heard.write('"start"\n')
if how == "absent":
    sys.exit(3)

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

waiting = {}
for raw in sys.stdin.buffer:
    message = json.loads(raw)
    method, id_, params = message.get("method"), message.get("id"), message.get("params", {})
    heard.write(json.dumps(method) + "\n")
    result = None
    if id_ is None:
        continue
    if method is None:
        action = message.get("result", {}).get("action", "an error")
        send(id=waiting.pop(id_), result={"content": [{"type": "text", "text": action}]})
        continue
    if method == "initialize":
        if how == "dies always":
            sys.exit(5)
        version = "2025-03-26" if life and how == "changes" else params["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}
    elif method == "server/discover":
        if how.startswith("dies"):
            sys.exit(4)
        if how == "mute":
            continue
        if how == "chatty":
            print("what is that?", flush=True)
        if how == "no id":
            id_ = None
    elif method == "tools/list":
        if life == 0:
            os._exit(5)
        result = {"tools": []}
    elif method == "tools/call" and params["name"] == "die":
        os._exit(4)
    elif method == "tools/call" and params["name"] == "life":
        result = {"content": [{"type": "text", "text": str(life)}]}
    elif method == "tools/call":
        question = f"q-{len(waiting)}"
        waiting[question] = id_
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}}
        send(id=question, method="elicitation/create", params={"message": params["name"], "requestedSchema": schema})
        continue
    send(id=id_, **({"result": result} if result else {"error": {"code": -32601, "message": "what?"}}))
"""


class OlderChild:
    """The tool `life` returns how often the child was started before, `die` ends it, and any other tool asks."""

    def __init__(self, folder: Path) -> None:
        self._script, self._heard = folder / "child.py", folder / "heard"
        self._script.write_text(SCRIPT)

    def parameters(self, how: str = "") -> StdioServerParameters:
        return StdioServerParameters(sys.executable, ["-S", "-E", str(self._script), str(self._heard), how])

    @property
    def heard(self) -> list[str | None]:
        """The methods that all its lives heard, `None` for a response, and `start` for each start."""
        return [json.loads(line) for line in self._heard.read_text().splitlines()]
