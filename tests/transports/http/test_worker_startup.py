"""When workers start: what is kept of the log until they accept connections, and interrupts that are held back."""

import logging
import signal
import socket
import sys

import pytest

from bespeak.transports.http.worker_startup import Announcement, accepts, interrupts_held, release_interrupts


def test_what_is_logged_about_the_address_comes_later_and_once(caplog: pytest.LogCaptureFixture) -> None:
    log = logging.getLogger("bespeak.tests.announcement")
    announcement = Announcement(log)
    with caplog.at_level(logging.INFO):
        with announcement.kept():
            log.info("running on %s", "here")
            log.error("in use")
        assert caplog.messages == ["in use"]
        log.info("starting")
        announcement.make()
        announcement.make()
    assert caplog.messages == ["in use", "starting", "running on here"]


def test_a_bound_socket_accepts_when_it_listens() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert not accepts(bound)
        bound.listen()
        assert accepts(bound)


def test_a_system_that_does_not_say_is_taken_to_accept() -> None:
    bound = socket.socket()
    bound.close()
    assert accepts(bound)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_interrupts_are_held_back_only_in_the_block() -> None:
    def held() -> bool:
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, ())

    with interrupts_held():
        assert held()
    assert not held()
    with interrupts_held():
        release_interrupts()
        assert not held()
