"""The attacks by name. Each runs in the attacker's process until it has done its worst or is told to stop."""

from siege.attacks.connections import (
    half_heads,
    idle,
    slow,
    stay_connected,
    unfinished_bodies,
    unread,
)
from siege.attacks.edges import edges
from siege.attacks.sessions import initialize_only
from siege.attacks.settling import settle
from siege.attacks.waiting import arrive_together, leave_batches, leave_waiting
from siege.orders import Attack

ATTACKS: dict[str, Attack] = {
    "leave waiting": leave_waiting,
    "arrive together": arrive_together,
    "leave batches": leave_batches,
    "settle": settle,
    "half heads": half_heads,
    "idle": idle,
    "slow": slow,
    "unfinished bodies": unfinished_bodies,
    "stay connected": stay_connected,
    "unread": unread,
    "edges": edges,
    "initialize only": initialize_only,
}
