"""A child process that a test makes misbehave."""

import fcntl
import json
import sys
from pathlib import Path
from typing import Any

from bespeak import StdioServerParameters

PUPPET = r"""
import fcntl, json, os, signal, subprocess, sys, time

where, mode = sys.argv[1], sys.argv[2]
lock = open(os.path.join(where, f"alive-{os.getpid()}"), "w")
fcntl.flock(lock, fcntl.LOCK_EX)
heard = open(os.path.join(where, "heard"), "a", buffering=1)
heard.write(json.dumps({"pid": os.getpid()}) + "\n")
out = sys.stdout.buffer

def say(message):
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()

def answer(id_, value):
    content = [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]
    say({"jsonrpc": "2.0", "id": id_, "result": {"resultType": "complete", "content": content}})

def note(method, **params):
    say({"jsonrpc": "2.0", "method": "notifications/" + method, "params": params})

def spawn(*first):
    code = "import fcntl, os, sys, time, signal;" + ";".join(first) + (
        f";lock = open(os.path.join({where!r}, f'alive-{{os.getpid()}}'), 'w'); fcntl.flock(lock, fcntl.LOCK_EX);"
        "os.write(1, b'\\n'); time.sleep(20)"
    )
    return subprocess.Popen([sys.executable, "-S", "-c", code])

if mode == "mute":
    sys.exit(3)
if "deaf" in mode:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "parent" in mode:
    spawn("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
if "estranged" in mode:
    spawn("os.setsid()")

def serve(request):
    id_, method, params = request["id"], request["method"], request.get("params", {})
    token = params.get("_meta", {}).get("progressToken")
    if method == "server/discover":
        fields = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"}
        return say({"jsonrpc": "2.0", "id": id_, "result": {"resultType": "complete", **fields}})
    name = params["name"]
    if name == "echo":
        answer(id_, params["arguments"].get("text", ""))
    elif name == "facts":
        answer(id_, {"pid": os.getpid(), "cwd": os.getcwd(), "env": dict(os.environ)})
    elif name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif name == "leave":
        sys.exit(4)
    elif name == "half":
        out.write(b'{"jsonrpc": "2.0", "id": %d, "result": {"resul' % id_)
        out.flush()
        sys.exit(0)
    elif name == "sleep":
        time.sleep(20)
    elif name == "close":
        os.close(1)
    elif name == "turn away":
        os.close(0)
        answer(id_, "enough")
        time.sleep(20)
    elif name == "garbage":
        for garbage in (b"hello", b"\xff\x00", b"[1, 2]", b"{", b"", b"x" * 200_000):
            out.write(garbage + b"\n")
        say({"jsonrpc": "2.0", "id": 1, "method": "roots/list"})
        answer(id_, "after all that")
    elif name == "steps":
        note("message", level="info", data=f"log of {params['arguments']['text']}")
        note("progress", progressToken=token, progress=1)
        note("progress", progressToken="somebody's", progress=2)
        note("progress", progressToken=token, progress=3, total=4, message=params["arguments"]["text"])
        answer(id_, "done")
    # "never" gets no answer

waiting = []
for raw in sys.stdin.buffer:
    message = json.loads(raw)
    heard.write(json.dumps(message) + "\n")
    if message.get("params", {}).get("name") == "together":  # two of them are answered together, the last one first
        waiting.append(message)
        if len(waiting) == 2:
            for one in reversed(waiting):
                answer(one["id"], one["params"]["arguments"]["text"])
    elif "id" in message:
        serve(message)
while "deaf" in mode or "slow" in mode:
    time.sleep(0.05)
"""


class Puppet:
    """A child that does as it is told."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / "puppet.py").write_text(PUPPET)
        (folder / "heard").touch()

    def parameters(self, mode: str = "", **more: Any) -> StdioServerParameters:
        script = str(self._folder / "puppet.py")
        return StdioServerParameters(sys.executable, ["-S", script, str(self._folder), mode], **more)

    def heard(self, method: str | None = None) -> list[Any]:
        """What its children were told, in order."""
        lines = [json.loads(line) for line in (self._folder / "heard").read_text().splitlines()]
        return [line for line in lines if "method" in line and method in (None, line["method"])]

    @property
    def pids(self) -> list[int]:
        lines = [json.loads(line) for line in (self._folder / "heard").read_text().splitlines()]
        return [line["pid"] for line in lines if "pid" in line]

    def alive(self) -> list[str]:
        """Who still holds the lock that only death takes away."""
        living: list[str] = []
        for file in self._folder.glob("alive-*"):
            with file.open("w") as lock:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    living.append(file.name)
        return living
