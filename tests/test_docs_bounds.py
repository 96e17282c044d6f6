"""SECURITY.md lists every bound with the default and the option that the code has."""

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bespeak import Client, MCPServer, RequestStateSecurity
from bespeak.resolve.asking import questions
from bespeak.server import MemoryEventStore, MemoryStore
from bespeak.server.auth import AuthSettings
from bespeak.server.calls import held_calls
from bespeak.state import ledger, sessions
from bespeak.state.stores import redis_connection, session_store, sqlite_database, store

SECURITY = (Path(__file__).parent.parent / "SECURITY.md").read_text()
MIB = 1024 * 1024


@pytest.mark.parametrize(
    ("owner", "option", "default", "written"),
    [
        (MCPServer, "max_waiting_calls", 1024, "1,024"),
        (MCPServer, "max_waiting_calls_per_session", 32, "32"),
        (MCPServer, "max_waiting_bytes", 64 * MIB, "64 MiB"),
        (MCPServer, "question_timeout", 600.0, "10 min"),
        (MCPServer, "disconnect_grace", 30.0, "30 s"),
        (MCPServer.streamable_http_app, "max_sessions", 10_000, "10,000"),
        (MCPServer.streamable_http_app, "session_idle_timeout", 1800.0, "30 min"),
        (MCPServer.streamable_http_app, "max_request_body_size", 4 * MIB, "4 MiB"),
        (MCPServer.streamable_http_app, "max_incoming_bytes", 64 * MIB, "64 MiB"),
        (MCPServer.streamable_http_app, "request_body_timeout", 30.0, "30 s"),
        (MCPServer.run_streamable_http_async, "request_head_timeout", 20.0, "20 s"),
        (MCPServer.run_streamable_http_async, "response_read_timeout", 30.0, "30 s"),
        (MCPServer.run_streamable_http_async, "max_unread_output", 64 * MIB, "64 MiB"),
        (MCPServer.run_streamable_http_async, "max_connections", None, "two thirds of its limit on open files"),
        (MCPServer, "max_concurrent_calls", None, "no bound"),
        (MCPServer, "max_concurrent_calls_per_caller", None, "no bound"),
        (AuthSettings, "leeway", 30.0, "30 s"),
        (RequestStateSecurity, "ttl", 600.0, "10 min"),
        (RequestStateSecurity, "deadline", 3600.0, "1 h"),
        (MemoryStore, "max_claims", 1_000_000, "1,000,000"),
        (MemoryStore, "question_limit", 0.8, "80 %"),
        (MemoryStore, "pressure", 0.5, "half"),
        (MemoryStore, "share", 0.1, "a tenth"),
        (MemoryStore, "max_result_bytes", 64 * MIB, "64 MiB"),
        (MemoryEventStore, "max_events", 100, "100 a stream"),
        (MemoryEventStore, "max_streams", 1000, "1,000 streams"),
        (MemoryEventStore, "max_bytes", 64 * MIB, "64 MiB"),
        (Client, "input_required_max_questions", 64, "64"),
        (Client, "input_required_max_rounds", 10, "10"),
    ],
)
def test_a_bound_is_listed_with_its_default_and_its_option(
    owner: Callable[..., Any], option: str, default: object, written: str
) -> None:
    assert inspect.signature(owner).parameters[option].default == default
    assert any(option in line and written in line for line in SECURITY.splitlines() if line.startswith("|"))


@pytest.mark.parametrize(
    ("bound", "value", "row", "written"),
    [
        (session_store.MOST_MAIL, 10_000, "messages from other workers that wait for one worker", "10,000"),
        (session_store.WORKER_LEASE, 15.0, "after which a worker counts as dead", "15 s"),
        (session_store.BEAT_SECONDS, 5.0, "after which a worker counts as dead", "one sign every 5 s"),
        (sessions.TAKEN_SECONDS, 5.0, "to take an answer that another worker has received", "5 s"),
        (ledger.LEASE_SECONDS, 15.0, "lease of a call whose body runs", "15 s"),
        (ledger.WAIT_SECONDS, 60.0, "time to wait for the result of the same request", "60 s"),
        (redis_connection.WAIT_SECONDS, 5.0, "time to wait for a shared store", "5 s"),
        (sqlite_database.WAIT_SECONDS, 5.0, "time to wait for a shared store", "5 s"),
        (held_calls.MOST_HELD, 1024, "because the page of a URL question was opened", "1,024"),
        (questions.OPENED_SECONDS, 25.0, "because the page of a URL question was opened", "25 s"),
        (store.CLOCK_DIFFERENCE, 60.0, "difference between the clocks of workers", "60 s"),
        (store.MAX_CLAIMS, 1_000_000, "claims of one server in a store", "1,000,000"),
    ],
)
def test_a_bound_without_an_option_is_listed(bound: float, value: float, row: str, written: str) -> None:
    assert bound == value
    (line,) = [line for line in SECURITY.splitlines() if line.startswith("|") and row in line]
    assert written in line
