"""The process of the server that `bespeak dev` starts: load the file, report, and serve it with the page beside it."""

import secrets
import socket
import sys
from collections.abc import Callable
from typing import Any

from bespeak.cli.call_lines import show_calls
from bespeak.cli.dev_settings import HOST, PATH, DevSettings
from bespeak.cli.exit_codes import ExitCode
from bespeak.cli.output import complain
from bespeak.cli.server_log import brief_failures
from bespeak.cli.target_server import server_of
from bespeak.dev.dev_app import DevApp, no_server
from bespeak.dev.page_api import Drawing, PageApi, Shown
from bespeak.dev.page_gate import PageGate
from bespeak.dev.server_process import ParentPipe, end_with_parent
from bespeak.dev.source_files import loaded_files
from bespeak.dev.supervisor import Loaded, Report
from bespeak.resolve.graph.drawing import draw_graph
from bespeak.resolve.graph.overview import summary
from bespeak.resolve.graph.svg import as_svg
from bespeak.server.features.registered import Registered
from bespeak.server.running import http_server, run_http
from bespeak.server.server import MCPServer
from bespeak.server.targets import NoServer
from bespeak.transports.http.asgi import ASGIApp

GRACE_SECONDS = 2
"""How long calls may still run when the source has changed. Those that are approved are waited for."""


def serve_once(listening: socket.socket, pipe: ParentPipe, settings: DevSettings, first: bool) -> None:
    """Serve until told to stop. `first` says that a file that cannot be loaded ends the command."""
    app, report = load_app(settings, lambda: pipe.send(report))
    if first and report.loaded is not Loaded.SERVES:
        pipe.send(Report(Loaded.GIVEN_UP))
        sys.exit(ExitCode.BAD_USAGE)
    options = {"log_level": "warning", "timeout_graceful_shutdown": GRACE_SECONDS}
    server = http_server(app, HOST, settings.port, options)
    server.ending.is_last = True
    end_with_parent(pipe)
    with brief_failures():
        run_http(server, [listening])


def load_app(settings: DevSettings, started: Callable[[], object] = lambda: None) -> tuple[ASGIApp, Report]:
    """Return the app to serve, and what to report when it has `started`. If the file cannot be loaded, the page says why."""
    start = secrets.token_hex(8)
    gate = PageGate(settings.token, settings.port)
    try:
        server = server_of(settings.target)
        served = server.streamable_http_app(host=HOST, streamable_http_path=PATH)
    except (NoServer, ValueError) as error:
        complain(str(error), ExitCode.BAD_USAGE, error)
        shown = Shown(settings.target, start, settings.endpoint, error=str(error))
        return DevApp(no_server, gate, PageApi(shown), started), Report(Loaded.FAILED, loaded_files(error))
    show_calls(all_of_them=True)
    shown = Shown(settings.target, start, settings.endpoint, server.name, _drawings(server))
    return DevApp(served, gate, PageApi(shown), started), Report(Loaded.SERVES, loaded_files())


def _drawings(server: MCPServer[Any]) -> list[Drawing]:
    return [_drawing(one) for one in server.registered]


def _drawing(one: Registered) -> Drawing:
    return Drawing(
        one.what,
        one.name,
        summary(one.graph),
        draw_graph(one.graph, one.name),
        lambda: as_svg(one.graph, one.name),
        bool(one.graph.nodes),
    )
