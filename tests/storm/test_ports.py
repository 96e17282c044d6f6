"""The ports that a storm keeps."""

import asyncio
import socket

import pytest
from storm.ports import reserved_ports


async def nobody(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def test_a_server_can_listen_on_a_reserved_port_again_and_again() -> None:
    with reserved_ports(1) as (port,):
        for _ in range(2):
            server = await asyncio.start_server(nobody, "127.0.0.1", port)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()
            server.close()
            await server.wait_closed()


def test_a_reserved_port_is_taken_for_whoever_looks_for_a_free_one() -> None:
    with reserved_ports(1) as (port,), socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("127.0.0.1", port))


def test_ports_are_different() -> None:
    with reserved_ports(20) as some, reserved_ports(20) as others:
        assert len({*some, *others}) == 40
