"""Targets that are nearly right: a misspelt file, a folder, an app in which a server is mounted."""

from pathlib import Path

import pytest

from bespeak.server.targets import NoServer, load
from tests.cli.conftest import Write
from tests.cli.desks import bespeak, told


@pytest.mark.parametrize("target", [".", "target_folder", "target_folder:mcp"])
def test_a_folder_is_not_a_target(write: Write, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    monkeypatch.chdir(write("target_folder/notes.txt", "").parent.parent)
    with pytest.raises(NoServer, match=rf"^'{target.removesuffix(':mcp')}' is a folder, not a file; a target is FILE"):
        load(target)


@pytest.mark.parametrize("source", ["", "from bespeak import MCPServer\nshop = MCPServer()\n"])
def test_an_app_that_a_server_is_mounted_in_is_not_a_server(
    write: Write, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    app = "class App:\n    async def __call__(self, scope, receive, send): ...\napp = App()\n"
    monkeypatch.chdir(write("target_shop.py", source + app).parent)
    named = "shop" if source else "mcp"
    told = f"is an ASGI app; name its MCPServer, such as target_shop.py:{named}, or run the app with uvicorn target_shop:app"
    with pytest.raises(NoServer, match=f"^target_shop.py:app {told}$"):
        load("target_shop.py:app")


@pytest.mark.parametrize("command", ["list", "call", "check"])
@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("servr", "there is no file 'servr' (did you mean 'server.py'?); a target is FILE"),
        ("server.yaml", "there is no file 'server.yaml' (did you mean 'server.py'?); a target is FILE"),
        (".", "'.' is a folder, not a file; a target is FILE"),
    ],
)
def test_a_word_that_is_no_command_and_nearly_a_file_is_a_typing_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, target: str, said: str
) -> None:
    (tmp_path / "server.py").write_text("")
    monkeypatch.chdir(tmp_path)
    words = [command, target, *(["order_book"] if command == "call" else [])]
    assert told(bespeak(*words), 2).startswith(f"bespeak: {said}")
