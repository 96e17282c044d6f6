"""The attacks of a siege, each with the server it is laid to and what must hold of it, at full length and short."""

from dataclasses import dataclass, field

from siege.attacks.waiting import NESTED, TEXT, UNKNOWN
from siege.besieged import Options
from siege.judgement import Criterion, grows_at_most, happened, lets_go, never_happened

ATTACKER = "127.0.0.2"
HONEST = "127.0.0.1"
HEAD_BYTES = 64 * 1024
BODY_BYTES = 4 * 1024 * 1024
ALMOST_A_BODY = BODY_BYTES - 1024
WAITING_IN_A_SESSION = 32
WAITING_IN_ALL = 1024
WAITING_SHORT = 256
"""As many as may wait in all in the short form."""
BATCH = 100
FILES = 1024


@dataclass(frozen=True, slots=True)
class Case:
    """One attack."""

    name: str
    attack: str
    numbers: dict[str, int]
    criteria: tuple[Criterion, ...] = ()
    options: Options = field(default_factory=Options)
    attacker: tuple[str, str | None] = (ATTACKER, None)
    """The address the attacker comes from, and the one it forwards."""
    honest: tuple[str, str | None] = (HONEST, None)
    hold_seconds: float = 0.0
    """How long it goes on at least once everything is in place."""
    settle_seconds: float = 5.0
    """How long the server may take to let go when it is over."""
    elsewhere: bool = False
    """Whether another event loop uses the server meanwhile."""
    idle_session: bool = False
    """Whether an honest session that says nothing meanwhile has to survive."""


def cases(*, short: bool) -> list[Case]:
    """All attacks: at full length, or so that all of them take little more than a minute."""

    def pick(full: int, less: int) -> int:
        return less if short else full

    waiting_options = Options(server={"disconnect_grace": 1.0, "max_waiting_calls": WAITING_SHORT} if short else {})

    def left_waiting(name: str, numbers: dict[str, int], *criteria: Criterion, attack: str = "leave waiting") -> Case:
        return Case(name, attack, numbers, criteria, waiting_options, settle_seconds=pick(45, 15))

    large = {"count": 20, "size": ALMOST_A_BODY, "sessions": 1, "at_once": 4, "keep": 0, "sort": TEXT}
    small = {**large, "count": pick(20_000, 2_000), "size": 10}
    bounded = (grows_at_most("memory", 256), lets_go("waiting", 0), lets_go("tasks", 5), never_happened("cut off"))
    # A call counts as waiting here from a moment before its question on, so those about to be refused are seen too.
    refused = large["at_once"]
    in_a_session = (
        grows_at_most("waiting", WAITING_IN_A_SESSION + refused),
        grows_at_most("tasks", 400),
        happened("refused"),
    )
    in_all = (
        grows_at_most("waiting", pick(WAITING_IN_ALL, WAITING_SHORT) + refused),
        grows_at_most("tasks", 4000),
        happened("refused"),
    )
    in_batches = (
        grows_at_most("waiting", WAITING_IN_A_SESSION + BATCH),
        grows_at_most("tasks", 600),
        happened("refused"),
    )
    # An event loop serves connections in turn: an honest request waits for one of each. Two keep a core busy.
    flood = {"connections": 2, "depth": 16, "accept": 0}
    # A tenth of it has to be enough for the honest client's own calls.
    small_ledger = {"max_claims": pick(20_000, 5_000)}
    quick = {"request_head_timeout": 1.5, "response_read_timeout": 1.5} if short else {}
    few_files = Options(files=FILES, run=quick, app={"request_body_timeout": 1.5} if short else {})
    ended = (happened("answered"), never_happened("reset by the server"), never_happened("closed without a word"))
    # Those that are let in make room for one another and are closed, or those that come later are told that there is none.
    idle = (happened("answered 429"), never_happened("reset by the server"))
    in_time = (
        happened("answered 408", 200),
        never_happened("reset by the server"),
        never_happened("closed without a word"),
    )
    hold = pick(40, 4)
    return [
        left_waiting("1a large calls, connected", {**large, "keep": 1}, *bounded),
        left_waiting("1a large calls, hung up", large, *bounded),
        left_waiting("1a large, unknown arguments", {**large, "sort": UNKNOWN}, *bounded),
        left_waiting("1a large, nested arguments", {**large, "sort": NESTED}, *bounded),
        left_waiting("1a large, unknown, together", {**large, "sort": UNKNOWN}, *bounded, attack="arrive together"),
        left_waiting("1b small calls, one session", small, *in_a_session, *bounded),
        left_waiting("1b small calls, many sessions", {**small, "sessions": pick(625, 63)}, *in_all, *bounded),
        left_waiting(
            "1b small calls, batches",
            {"count": small["count"], "batch": BATCH},
            *in_batches,
            *bounded,
            attack="leave batches",
        ),
        Case(
            "2a declined calls",
            "settle",
            {**flood, "count": pick(300_000, 5_000)},
            (happened("settled"), never_happened("exchanges cut off")),
            Options(store={"max_claims": 16_000} if short else {}),
        ),
        Case(
            "2a more than the ledger holds",
            "settle",
            {**flood, "count": pick(3, 2) * small_ledger["max_claims"]},
            (happened("refused"), never_happened("exchanges cut off")),
            Options(store=small_ledger),
        ),
        Case(
            "2b one busy gateway",
            "settle",
            {**flood, "accept": 1, "count": pick(60_000, 2_000), "most": 1_000_000},
            (happened("settled"), never_happened("refused"), never_happened("exchanges cut off")),
            hold_seconds=pick(30, 0),
        ),
        Case(
            "3 declined calls through a proxy",
            "settle",
            {**flood, "count": pick(3, 2) * small_ledger["max_claims"]},
            (happened("refused"), never_happened("exchanges cut off")),
            Options(store=small_ledger, app={"trusted_proxies": [ATTACKER]}),
            attacker=(ATTACKER, "10.0.0.1"),
            honest=(ATTACKER, "10.0.0.2"),
        ),
        Case(
            "3 many connections of a proxy",
            "stay connected",
            {"count": 500},
            (happened("served", 500), never_happened("refused")),
            Options(files=FILES, app={"trusted_proxies": [ATTACKER]}),
            attacker=(ATTACKER, "10.0.0.1"),
            honest=(ATTACKER, "10.0.0.2"),
        ),
        Case("4a half-sent heads", "half heads", {"count": 1100}, ended, few_files, hold_seconds=hold),
        Case("4b idle connections", "idle", {"count": 1100}, idle, few_files, hold_seconds=hold),
        Case("4c slow heads and bodies", "slow", {"count": 300}, in_time, few_files, hold_seconds=hold),
        Case(
            "4c large bodies, unfinished",
            "unfinished bodies",
            {"count": pick(200, 40), "size": BODY_BYTES},
            # Those that are let in run out of time; those that find no room for so long are told that.
            (
                grows_at_most("memory", 256),
                happened("answered", pick(200, 40)),
                never_happened("reset by the server"),
                never_happened("closed without a word"),
            ),
            few_files,
            hold_seconds=hold,
        ),
        Case(
            "4d answers nobody reads",
            "unread",
            {"count": 40, "size": BODY_BYTES},
            (happened("answers given up by the server", 40), grows_at_most("memory", 256), lets_go("files", 2)),
            Options(run=quick),
            hold_seconds=hold,
        ),
        Case(
            "4e heads and bodies at the limit",
            "edges",
            {"head": HEAD_BYTES, "body": BODY_BYTES},
            (happened("as it should be"), never_happened("a "), never_happened("an ")),
        ),
        Case(
            "5 sessions never used",
            "initialize only",
            {**flood, "count": pick(10_050, 1_050), "most": pick(40_000, 4_000)},
            (grows_at_most("sessions", pick(5_000, 500) + 10), happened("refused")),
            Options(app={"max_sessions": pick(10_000, 1_000)}),
            idle_session=True,
        ),
        Case(
            "6 another event loop",
            "settle",
            {**flood, "accept": 1, "count": pick(10_000, 1_000)},
            (happened("settled"), never_happened("refused"), never_happened("exchanges cut off")),
            elsewhere=True,
        ),
    ]
