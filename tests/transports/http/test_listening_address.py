"""Whether a server can listen at an address, and what to do if it cannot."""

import errno
import socket
from collections.abc import Generator
from typing import Any

import pytest

from bespeak.transports.http.listening_address import listening_problem


@pytest.fixture
def taken() -> Generator[int]:
    """A port that another program listens on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def failing(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def bind(self: socket.socket, where: Any) -> None:
        raise OSError(number, "something else")

    monkeypatch.setattr(socket.socket, "bind", bind)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "localhost"])
def test_a_port_in_use_is_named_with_what_to_do(host: str, taken: int) -> None:
    assert listening_problem(host, taken) == (
        f"Cannot listen at http://{host}:{taken}: the port is in use. Stop the program that uses it, or choose another port: "
        "--port on the command line, port= in run()"
    )


@pytest.mark.parametrize("host", [None, ""])
def test_no_host_means_every_address(host: str | None, taken: int) -> None:
    assert (listening_problem(host, taken) or "").startswith(
        f"Cannot listen at http://0.0.0.0:{taken}: the port is in use."
    )


@pytest.mark.parametrize("host", ["127.0.0.1", None])
def test_a_free_port_is_free(host: str | None) -> None:
    assert listening_problem(host, 0) is None


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host", "a" * 70 + ".invalid"])
def test_an_address_of_another_machine_is_named(host: str) -> None:
    assert listening_problem(host, 8000) == (
        f"Cannot listen at http://{host}:8000: this machine does not have the address. Use 127.0.0.1 for clients on this "
        "machine, 0.0.0.0 for all"
    )


def test_a_port_that_the_user_may_not_use_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, errno.EACCES)
    assert listening_problem("127.0.0.1", 80) == (
        "Cannot listen at http://127.0.0.1:80: this user may not use the port. Choose one above 1023, such as 8000"
    )


def test_any_other_reason_is_said_in_the_words_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, errno.ENOBUFS)
    assert listening_problem("::1", 80) == "Cannot listen at http://[::1]:80: something else"


def test_a_family_that_the_machine_does_not_have_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> socket.socket:
        raise OSError(errno.EAFNOSUPPORT, "no such family")

    monkeypatch.setattr(socket, "socket", refuse)
    assert listening_problem("127.0.0.1", 8000) is None
