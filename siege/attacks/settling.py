"""Calls that ask and are settled at once: each leaves a claim in the ledger."""

import json
from typing import Any

from siege.orders import Orders
from siege.pipeline import Exchange, Response, flood
from siege.wire import parse_head, reason

_STATE = b'"requestState":"'
_ASKED = b'"inputRequests":{"'


async def settle(orders: Orders) -> None:
    """Ask and decline, or accept, over and over. `addresses` forwards them as that many."""
    accept = bool(orders.number("accept"))
    answer: dict[str, Any] = {"action": "accept", "content": {"yes": True}} if accept else {"action": "decline"}
    place = orders.place
    first = place.modern("asked", {"a": 1, "b": 2})
    body = first.partition(b"\r\n\r\n")[2]
    written = json.loads(body)["params"]
    whole = place.modern("asked", written["arguments"], inputResponses={"@": answer}, requestState="@")
    before, between, after = whole.partition(b"\r\n\r\n")[2].split(b'"@"')
    head = (place.head(*place.modern_head("asked")) + "Content-Length: ").encode()

    def exchange(_: int) -> Exchange:
        response = yield first
        state = response[1].partition(_STATE)[2].partition(b'"')[0]
        if not state:
            orders.refused(said(response))
            return
        key = response[1].partition(_ASKED)[2].partition(b'"')[0]
        body = b'%s"%s"%s"%s"%s' % (before, key, between, state, after)
        response = yield b"%s%d\r\n\r\n%s" % (head, len(body), body)
        if (b'"text":"3"' if accept else b"elicitation was decline") in response[1]:
            orders.tally["settled"] += 1
        else:
            orders.refused(said(response))

    await flood(orders, exchange)


def said(response: Response) -> str:
    """Why it was no success."""
    try:
        content = json.loads(response[1])
    except ValueError:
        content = None
    return reason(parse_head(response[0]), content)
