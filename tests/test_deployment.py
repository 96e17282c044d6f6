"""Two servers behind nginx share a Redis store, as the page about deployment says: any of them may get any request."""

import asyncio
import signal
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from bespeak import Client
from tests.answering import text
from tests.cli.programs import Program
from tests.deployment import deployed, person, port_of, write_shop
from tests.state.stores.redis_servers import own_server
from tests.transports.http.legacy.older_client import accepted, call
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.timing]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_shop(tmp_path)


@pytest.fixture
def redis(tmp_path: Path) -> Generator[str]:
    with own_server(tmp_path) as server:
        yield server.url


async def test_a_modern_call_is_finished_by_any_server(redis: str, shop: Path) -> None:
    async with deployed(shop, redis) as both, Client(both.url, elicitation_callback=person()) as client:
        assert {text(await client.call_tool("buy")) for _ in range(10)} <= both.pids
        log = both.nginx.log
    assert (shop.parent / "bought").read_text() == "x" * 10
    assert {status for _, status, _ in log} == {"200"}
    servers = [server for _, _, server in log]
    assert len(set(servers)) == 2
    assert all(one != other for one, other in zip(servers[::2], servers[1::2], strict=False)), "they take turns"


async def test_an_older_client_is_asked_by_one_server_and_answers_another(redis: str, shop: Path) -> None:
    async with deployed(shop, redis) as both:
        client = await both.older()
        for _ in range(6):
            async with client.open(call("buy")) as stream:
                question = await client.asked(stream)
                assert (await client.post(accepted(question["id"]))).status == 202
                assert (await stream.message())["result"]["content"][0]["text"] in both.pids
                assert await stream.event() is None
        await eventually(lambda: len(both.nginx.log) == 14)
        requests = both.nginx.log[2:]
    assert (shop.parent / "bought").read_text() == "x" * 6
    for pair in zip(requests[::2], requests[1::2], strict=True):
        assert {status for _, status, _ in pair} == {"200", "202"}, "a call and its answer, whichever has ended first"
        assert len({server for _, _, server in pair}) == 2


async def test_a_whole_client_of_an_older_revision_is_served(redis: str, shop: Path) -> None:
    async with (
        deployed(shop, redis) as both,
        Client(both.url, mode="2025-11-25", elicitation_callback=person()) as client,
    ):
        for _ in range(10):
            assert not (await client.call_tool("buy")).is_error
        assert len({server for _, _, server in both.nginx.log}) == 2
    assert (shop.parent / "bought").read_text() == "x" * 10


async def test_a_server_knows_the_addresses_of_clients_and_believes_only_nginx(redis: str, shop: Path) -> None:
    async with deployed(shop, redis) as both:
        client = await both.older("127.0.0.2")
        for forged in ({}, {"x_forwarded_for": "192.0.2.1"}, {"forwarded": "for=192.0.2.1"}):
            assert (await client.post(call("where"), **forged)).status == 200
    assert (shop.parent / "addresses").read_text().split() == ["127.0.0.2"] * 3


async def test_a_server_is_stopped_while_calls_go_on(redis: str, shop: Path) -> None:
    async with deployed(shop, redis) as both, Client(both.url, elicitation_callback=person()) as client:
        older = await both.older()
        slow = asyncio.create_task(client.call_tool("buy_slowly"))
        stopping = both.server(await begun(shop))
        stopping.signal(signal.SIGTERM)
        await eventually(lambda: not accepts(stopping))
        for _ in range(10):
            assert (await older.post(call("where"))).status == 200
            assert text(await client.call_tool("buy")) != str(stopping.process.pid)
        (shop.parent / "go").touch()
        assert text(await slow) == str(stopping.process.pid), "an approved call finishes on the server that is stopping"
        assert "Traceback" not in await stopping.ended()
        assert stopping.process.returncode in (0, -signal.SIGTERM)


async def test_a_request_that_a_server_has_received_is_not_sent_to_the_other_when_it_dies(
    redis: str, shop: Path
) -> None:
    async with deployed(shop, redis) as both:
        client = await both.older()
        calling = asyncio.create_task(client.post(call("take_time")))
        died = both.server(await begun(shop))
        died.process.kill()
        assert (await calling).status == 502
        assert (await client.post(call("where"))).text != str(died.process.pid)
        assert both.nginx.log[2][1:] == ["502", f"127.0.0.1:{port_of(died)}"]
    assert len(list(shop.parent.glob("begun *"))) == 1


async def begun(shop: Path) -> str:
    """Return the process that runs a tool which takes time, when it does."""
    await eventually(lambda: list(shop.parent.glob("begun *")))
    (found,) = shop.parent.glob("begun *")
    return found.name.split()[1]


def accepts(server: Program) -> bool:
    """Return whether a server accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", port_of(server))).close()
    except ConnectionRefusedError:
        return False
    return True


async def test_an_answer_to_a_server_that_has_died_is_an_error_and_nothing_runs(redis: str, shop: Path) -> None:
    async with deployed(shop, redis) as both:
        client = await both.older()
        async with client.open(call("buy")) as stream:
            question = await client.asked(stream)
            both.servers[0].process.kill()
            answer = await client.post(accepted(question["id"]))
            with pytest.raises(asyncio.IncompleteReadError):  # its connection breaks
                await stream.rest()
        assert answer.status == 400
        assert answer.code == -32603
        assert answer.reason == (
            "the worker that asked this question is gone, and the call with it; whether anything was done is not known"
        )
        assert (await client.post(call("where"))).text == str(both.servers[1].process.pid), "the session goes on"
    assert not (shop.parent / "bought").exists()
