"""A server of the legacy era, without any framework, that asks whenever its script says so, and tells what it was answered."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

SOURCE = r"""
import json, sys, time

script = json.loads(sys.argv[1])
answers, waiting = [], {}

def line(**message):
    return json.dumps({"jsonrpc": "2.0", **message}) + "\n"

def send(*lines):
    sys.stdout.write("".join(lines))
    sys.stdout.flush()

def questions(when):
    for question in script.get(when, []):
        id_ = f"q{len(waiting)}"
        waiting[id_] = None
        yield id_, line(id=id_, **question)

def asked(when):
    return [one for _, one in questions(when)]

def told(value):
    return {"content": [{"type": "text", "text": json.dumps(value)}]}

for raw in sys.stdin:
    message = json.loads(raw)
    method, id_, params = message.get("method"), message.get("id"), message.get("params", {})
    if method is None:
        answer = {name: message[name] for name in ("result", "error") if name in message}
        answers.append(answer)
        heard_at = time.monotonic()
        call = waiting.get(id_)
        if call is not None:
            send(line(id=call, result=told(answer)))
    elif id_ is None:
        send(*asked(method))
    elif method == "initialize":
        known = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "c", "version": "1"}}
        send(line(id=id_, result=known))
    elif method == "ping":
        send(line(id=id_, result={}))
    elif method == "tools/list":
        tools = [{"name": "beside", "inputSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}]
        send(*asked("tools/list"), line(id=id_, result={"tools": tools}))
    elif method == "tools/call" and params["name"] == "beside":
        send(*asked("beside"), line(id=id_, result=told("done")))
    elif method == "tools/call" and params["name"] == "within":
        for report in script.get("progress", []):
            send(line(method="notifications/progress", params={"progressToken": id_, **report}))
        for question, one in questions("within"):
            waiting[question] = id_
            send(one)
    elif method == "tools/call" and params["name"] == "since":
        send(line(id=id_, result=told(time.monotonic() - heard_at)))
    elif method == "tools/call":
        send(line(id=id_, result=told(answers)))
    else:
        send(line(id=id_, error={"code": -32601, "message": "what?"}))
"""
"""Tools: `beside` asks and responds at once, `within` waits for the answer, `heard` returns all answers so far,
and `since` how many seconds ago the last of them came."""

ROOTS: dict[str, Any] = {"method": "roots/list"}
CITY: dict[str, Any] = {
    "method": "elicitation/create",
    "params": {"message": "City?", "requestedSchema": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
SAMPLE: dict[str, Any] = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 9}}
NOTHING: dict[str, Any] = {"result": {"roots": []}}


def curious(folder: Path, **script: list[dict[str, Any]]) -> list[str]:
    """The command of a server that asks these questions: at `initialized`, `list`, `changed`, `beside` or `within`.

    Before it asks `within`, it reports its `progress`.
    """
    names = {
        "initialized": "notifications/initialized",
        "list": "tools/list",
        "changed": "notifications/roots/list_changed",
    }
    file = folder / "curious.py"
    file.write_text(SOURCE)
    told = json.dumps({names.get(when, when): questions for when, questions in script.items()})
    return [sys.executable, "-I", "-S", str(file), told]


def as_target(command: list[str]) -> str:
    """The command as one word of a command line."""
    return shlex.join(command)
