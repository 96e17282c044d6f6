"""Valid requests of every method in both eras, to a server that has one of everything."""

from collections.abc import Awaitable, Callable
from typing import Any

from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, LOG_LEVEL_META_KEY, PROTOCOL_VERSION_META_KEY

from tests.mutations import Seed

Json = dict[str, Any]
Ask = Callable[[Json], Awaitable[Json]]
"""Sends one modern request and returns its response."""

MODERN, NOVEMBER, JUNE, MARCH, FIRST = "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"
OLDER = (FIRST, MARCH, JUNE, NOVEMBER)
ABLE: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}, "context": {}}, "roots": {}}
SIZE: Json = {"width": 3, "height": 1.5, "tags": ["old"]}
ANSWERS: Json = {
    "approve": {"action": "accept", "content": {"value": True}},
    "size": {"action": "accept", "content": SIZE},
    "model": {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"},
    "one": {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"},
    "roots": {"roots": [{"uri": "file:///home", "name": "home"}]},
    "account": {"action": "decline"},
}
"""By the names of questions. The page of the account is never opened: that would be waited for."""


def accepted(id_: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "result": {"action": "accept", "content": {"value": True}}}


def request(method: str, params: Json | None = None, id_: Any = 7) -> Json:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


def modern(method: str, params: Json | None = None, id_: Any = 7) -> Json:
    meta: Json = {
        PROTOCOL_VERSION_META_KEY: MODERN,
        CLIENT_CAPABILITIES_META_KEY: ABLE,
        CLIENT_INFO_META_KEY: {"name": "attacker", "version": "1"},
        LOG_LEVEL_META_KEY: "info",
        "progressToken": "p-1",
    }
    return request(method, {**(params or {}), "_meta": meta}, id_)


def hello(version: str) -> Json:
    info = {"name": "attacker", "version": "1"}
    return request("initialize", {"protocolVersion": version, "capabilities": ABLE, "clientInfo": info})


LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
CALLS: list[tuple[str, Json]] = [
    ("tools/call", {"name": "echo", "arguments": {"value": {"a": [1, "b", None]}}}),
    ("tools/call", {"name": "shop_echo", "arguments": {"value": "text"}}),
    (
        "tools/call",
        {
            "name": "order",
            "arguments": {
                "title": "Dune",
                "copies": 2,
                "price": "9.50",
                "day": "2026-07-28",
                "key": "12345678-1234-5678-1234-567812345678",
                "size": SIZE,
                "names": {"a": 1},
            },
        },
    ),
    ("tools/call", {"name": "place", "arguments": {"region": "eu", "count": 2}}),
    ("prompts/get", {"name": "greeting", "arguments": {"language": "English", "times": "2", "loud": "true"}}),
    ("prompts/get", {"name": "shop_greeting", "arguments": {"language": "English"}}),
    ("resources/read", {"uri": "shop://hours"}),
    ("resources/read", {"uri": "shop://7/shelves/a%20b"}),
    ("resources/read", {"uri": "files://a/b.txt"}),
    ("resources/read", {"uri": "files://shop/a.txt"}),
    ("resources/read", {"uri": "search://books?title=Dune&year=1965"}),
]
ASKING: list[tuple[str, Json]] = [
    ("tools/call", {"name": "pay", "arguments": {"cents": 5}}),
    ("tools/call", {"name": "shop_pay", "arguments": {"cents": 5}}),
    ("tools/call", {"name": "think", "arguments": {}}),
    ("tools/call", {"name": "look", "arguments": {}}),
    ("tools/call", {"name": "connect", "arguments": {}}),
    ("tools/call", {"name": "by_hand", "arguments": {"text": "x"}}),
    ("prompts/get", {"name": "apology", "arguments": {"name": "Ann"}}),
    ("prompts/get", {"name": "visit"}),
    ("resources/read", {"uri": "shop://secret"}),
    ("resources/read", {"uri": "locked://5"}),
    ("resources/read", {"uri": "locked://shop/5"}),
]
COMPLETIONS: list[Json] = [
    {
        "ref": {"type": "ref/prompt", "name": "greeting"},
        "argument": {"name": "language", "value": "E"},
        "context": {"arguments": {"times": "2"}},
    },
    {
        "ref": {"type": "ref/resource", "uri": "shop://{number}/shelves/{shelf}"},
        "argument": {"name": "shelf", "value": "a"},
        "context": {"arguments": {"number": "2"}},
    },
    {"ref": {"type": "ref/prompt", "name": "shop_apology"}, "argument": {"name": "name", "value": "A"}},
    {"ref": {"type": "ref/resource", "uri": "files://a/b"}, "argument": {"name": "path", "value": "A"}},
]
SCOPED: list[tuple[str, Json]] = [
    ("tools/call", {"name": "refund"}),
    ("prompts/get", {"name": "reprimand", "arguments": {"name": "Ann"}}),
    ("resources/read", {"uri": "staff://all"}),
    ("resources/read", {"uri": "staff://ann/file"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "reprimand"}, "argument": {"name": "name", "value": "E"}},
    ),
]
NOTIFICATIONS: list[Json] = [
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99, "reason": "x"}},
    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}},
]
FILTER: Json = {"toolsListChanged": True, "promptsListChanged": False, "resourceSubscriptions": ["shop://hours"]}


async def modern_seeds(ask: Ask, *, scoped: bool = False) -> list[Seed]:
    """Requests of 2026-07-28; those of later rounds carry states of the server."""
    sent = [*CALLS, *ASKING, *(("completion/complete", one) for one in COMPLETIONS), *(SCOPED if scoped else ())]
    sent += [("server/discover", {}), ("subscriptions/listen", {"notifications": FILTER})]
    for method in LISTS:
        first = await ask(modern(method))
        cursor = first["result"].get("nextCursor")
        sent += [(method, {}), *([(method, {"cursor": cursor})] if cursor else [])]
    sent += [(method, await _answered(ask, method, params)) for method, params in ASKING]
    return [*(Seed(MODERN, modern(*one)) for one in sent), *(Seed(MODERN, one) for one in NOTIFICATIONS)]


async def _answered(ask: Ask, method: str, params: Json) -> Json:
    """The second round of a call: its state, and answers to all it asked."""
    result = (await ask(modern(method, params)))["result"]
    answers = {key: next(one for name, one in ANSWERS.items() if name in key) for key in result["inputRequests"]}
    return {**params, "requestState": result["requestState"], "inputResponses": answers}


def older_seeds(version: str, *, scoped: bool = False) -> list[Seed]:
    """Requests of an older revision, after the handshake, and the handshake itself."""
    sent = [request(*one) for one in [*CALLS, *ASKING, *(SCOPED if scoped else ())]]
    sent += [request("completion/complete", one) for one in COMPLETIONS]
    sent += [request(method, {"_meta": {"progressToken": 5}}) for method in (*LISTS, "ping")]
    sent += [
        request("resources/subscribe", {"uri": "shop://hours"}),
        request("resources/unsubscribe", {"uri": "shop://hours"}),
        request("logging/setLevel", {"level": "debug"}),
        hello(version),
        accepted("q-1"),
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}},
        *NOTIFICATIONS,
    ]
    batches: list[Any] = [[request("ping", id_=1), sent[0], *NOTIFICATIONS]] if version <= MARCH else []
    return [Seed(version, one) for one in [*sent, *batches]]
