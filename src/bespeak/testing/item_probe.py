"""A test that sends unusual requests, and the rules that the server's answers break."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.connection import Connection
from bespeak.conversation.connection_pool import Pool, Wanted
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.conversation.servers import Unreachable
from bespeak.protocol.errors import MCPError
from bespeak.testing.altered_requests import NotReached
from bespeak.testing.probes.known_probes import PROBES
from bespeak.testing.probes.probe_wire import ProbeWire
from bespeak.testing.report.results import Failure
from bespeak.testing.suite.probe_keys import ALL

REPLAYED = "a probe needs the live server, and conversations are replayed"
"""Why a probe is skipped in a replay."""


class ItemProbe:
    """The probes of one test, and what they find."""

    def __init__(self, names: Sequence[str]) -> None:
        self._all = list(names) == [ALL]
        self._names = list(PROBES) if self._all else names
        self.failures: list[Failure] = []
        self.advice: list[Finding] = []

    async def hold(self, wire: ProbeWire) -> bool:
        """Send them one after the other. Return whether the connection can still be used."""
        sent = 0
        for name in self._names:
            try:
                found = await PROBES[name](wire)
            except NotReached as error:
                if not self._all:
                    self.failures.append(Failure(f"not reached: the probe {name} was not sent: {error}"))
                continue
            except (OSError, InvalidServerResponse, MCPError) as error:
                how = "did not respond" if isinstance(error, TimeoutError) else f"broke off: {error}"
                self.failures.append(Failure(f"the probe {name}: the server {how}"))
                return False
            sent += 1
            self._keep(found, wire.version)
        await wire.connection.settle()
        self._keep(wire.connection.astray(), wire.version)
        if not sent and not self.failures:
            self.failures.append(Failure("not reached: no probe applies to this server"))
        return not self.failures

    def _keep(self, found: Sequence[Finding], version: str) -> None:
        for one in dict.fromkeys(found):
            if not RULES[one.rule].holds_at(version) and one.rule != "handshake":  # which is about another connection
                continue
            if one.is_advice:
                self.advice.append(one)
            else:
                self.failures.append(Failure(one.text, rule=one.rule))


def wire_to(connection: Connection, pool: Pool, wanted: Wanted) -> ProbeWire:
    """Return the wire to the server of an open connection. `wanted` is what it was opened with."""
    server = wanted.server
    url = None if server.url is None else wanted.fill(server.url)
    headers: Mapping[str, str] = {name: wanted.fill(value) for name, value in server.headers.items()}
    return ProbeWire(connection, url, headers, wanted.timeout, _handshakes(pool, wanted))


def _handshakes(pool: Pool, wanted: Wanted) -> Callable[[str], Awaitable[str]]:
    async def shake_hands(version: str) -> str:
        other = pool.beside(wanted, version)
        try:
            return (await pool.connection(other)).version
        except Unreachable as error:
            return f"failed: {str(error).splitlines()[0]}"
        finally:
            await pool.drop(other)

    return shake_hands
