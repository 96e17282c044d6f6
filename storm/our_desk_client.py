"""Our client at the refund desk: `python -m storm.our_desk_client URL REVISION MODE CALLS`."""

from contextlib import AbstractAsyncContextManager

from interop.checks import Person

from bespeak import Client
from storm.desk_visits import Desk, main


def connect(url: str, mode: str, person: Person) -> AbstractAsyncContextManager[Desk]:
    return Client(url, elicitation_callback=person, mode=mode, read_timeout_seconds=30)


if __name__ == "__main__":
    main(connect)
