"""Probes that do not apply, that find several things at once, or that a server does not survive."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bespeak import MCPServer
from bespeak.conversation.profiles.known_profiles import find_profile
from bespeak.testing.report.results import Result
from bespeak.testing.run_options import Options, make_options
from bespeak.testing.suite.loader import load_suite
from bespeak.testing.suite.plan import for_profile, items_of
from tests.conversation.probed_servers import ID, NO_METHOD, answering, guarded, probed, subscribed
from tests.conversation.raw_runs import held, target
from tests.conversation.raw_servers import NOVEMBER, Json, Raw, failed, log, result
from tests.testing.canned import run


def told(result_: Result) -> list[str]:
    return [one.message for one in result_.failures]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (probed("metadata", revision=NOVEMBER), "it is for revision 2026-07-28, and the server speaks 2025-11-25"),
        (probed("cursor", capabilities={}), "the server declares no tools, prompts or resources"),
        (probed("tool", capabilities={}), "the server does not declare the capability tools"),
        (probed("headers"), "only requests over HTTP have headers"),
        (probed("undeclared"), "the server declares all features"),
        (probed("handshake"), "the server lists no older revision"),
        (probed("origin"), "it is for servers that are reached over HTTP"),
        (guarded("get", "2024-11-05"), "revision 2024-11-05 has no sessions"),
        (guarded("version", "2025-03-26"), "revision 2025-03-26 has no header for the revision"),
        (probed("session", revision=NOVEMBER), "it is for servers that are reached over HTTP"),
        (guarded("session", NOVEMBER), "the server has no sessions"),
        (
            guarded("session", NOVEMBER, session="checked", delete=405),
            "the server does not let clients end their sessions",
        ),
        (probed("ping"), "revision 2026-07-28 has no ping"),
        (guarded("session"), "revision 2026-07-28 has no sessions"),
        (guarded("get"), ""),
        (probed("subscription", revision=NOVEMBER), "revision 2025-11-25 has no subscriptions"),
        (probed("subscription"), "the server declares no listChanged"),
        (guarded("token"), "the suite gives the server no Authorization header"),
    ],
)
async def test_a_probe_that_is_named_and_does_not_apply_fails_its_test_and_says_why(
    raw: Raw, why: str, tmp_path: Path
) -> None:
    name = raw.test.removeprefix("probe: ")
    expected = [f"not reached: the probe {name} was not sent: {why}"] if why else []
    assert told(await held(raw, tmp_path)) == expected


async def test_a_server_of_both_eras_may_answer_get_and_delete(tmp_path: Path) -> None:
    why = "the server also serves older revisions, which have GET and DELETE"
    both = Raw([[]], test="probe: get", http=True, gate={"get": 200})
    for one in (replace(both, older=[NOVEMBER]), replace(both, agreed=NOVEMBER)):
        assert told(await held(one, tmp_path)) == [f"not reached: the probe get was not sent: {why}"]


async def test_a_server_elsewhere_may_allow_every_origin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import re

    monkeypatch.setattr("bespeak.testing.probes.http_probes._LOOPBACK", re.compile("localhost"))
    why = "it is for servers on this machine; others may allow every origin"
    assert told(await held(guarded("origin"), tmp_path)) == [f"not reached: the probe origin was not sent: {why}"]


async def test_all_leaves_out_what_does_not_apply(tmp_path: Path) -> None:
    answers = {"ping": [result()], NO_METHOD: [failed(-32601)]}
    found = await held(probed("all", answers=answers, capabilities={}), tmp_path)
    rules = {one.rule for one in found.failures}
    assert rules == {"capability"}  # its lists are answered, whatever it declares


async def test_a_server_to_which_no_probe_applies_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bespeak.testing.probes.known_probes import PROBES, level

    monkeypatch.setattr("bespeak.testing.item_probe.PROBES", {"level": level})
    assert PROBES["level"] is level
    assert told(await held(probed("all", capabilities={}), tmp_path)) == [
        "not reached: no probe applies to this server"
    ]


async def test_each_feature_that_is_not_declared_is_tried(tmp_path: Path) -> None:
    refused = answering("undeclared", "prompts/list", failed(-32602), capabilities={"tools": {}, "resources": {}})
    assert told(await held(refused, tmp_path)) == [
        "prompts/list, whose capability prompts is not declared, was answered with the error -32602"
    ]


async def test_the_error_for_an_unknown_version_needs_its_data(tmp_path: Path) -> None:
    found = await held(answering("version", "tools/list", failed(-32022)), tmp_path)
    assert {one.rule for one in found.failures} == {"error-data"}


@pytest.mark.parametrize(
    ("name", "method", "rule"),
    [("tool", "tools/call", "unknown-tool"), ("prompt", "prompts/get", "unknown-prompt")],
)
async def test_what_does_not_exist_has_one_right_error(name: str, method: str, rule: str, tmp_path: Path) -> None:
    found = await held(answering(name, method, result(isError=True, content=[])), tmp_path)
    assert [(one.rule, one.text.rpartition(" was ")[2]) for one in found.advice] == [(rule, "answered with a result")]
    right = await held(answering(name, method, failed(-32602)), tmp_path)
    assert [right.failures, right.advice] == [[], []]


async def test_an_unknown_level_is_tried_at_older_revisions_too(tmp_path: Path) -> None:
    loud = answering("level", "logging/setLevel", result(), revision=NOVEMBER)
    assert [one.rule for one in (await held(loud, tmp_path)).advice] == ["unknown-level"]


@pytest.mark.parametrize(
    ("message", "told_"), [(result(x=1), "a result that is not empty"), (failed(-32601), "the error -32601")]
)
async def test_a_ping_has_an_empty_result(message: Json, told_: str, tmp_path: Path) -> None:
    found = await held(answering("ping", "ping", message, revision=NOVEMBER), tmp_path)
    assert told(found) == [f"a ping was answered with {told_}"]


@pytest.mark.parametrize(("status", "kind"), [(200, "application/json"), (404, "text/event-stream")])
async def test_get_opens_a_stream_or_is_not_allowed(status: int, kind: str, tmp_path: Path) -> None:
    found = await held(guarded("get", NOVEMBER, get=status, kind=kind), tmp_path)
    assert told(found) == [f"GET was answered with status {status} and no stream of events"]
    assert (await held(guarded("get", NOVEMBER, get=200, kind="text/event-stream"), tmp_path)).failures == []


async def test_tools_that_have_changed_have_no_order_to_compare(tmp_path: Path) -> None:
    assert (await held(probed("order", tools=[]), tmp_path)).failures == []


async def test_a_handshake_that_fails_is_told(tmp_path: Path) -> None:
    broken = probed("handshake", older=[NOVEMBER], answers={"initialize": [failed(-32603)]})
    assert told(await held(broken, tmp_path)) == [
        "the server lists 2025-11-25, but initialize with it failed: server 'raw' speaks 2026-07-28, not 2025-11-25"
    ]


async def test_a_subscription_that_is_refused_is_told(tmp_path: Path) -> None:
    assert told(await held(subscribed(failed(-32603)), tmp_path)) == ["subscriptions/listen failed: no"]


@pytest.mark.long
async def test_a_subscription_that_is_never_acknowledged_is_told(tmp_path: Path) -> None:
    silent = subscribed()
    object.__setattr__(silent, "test", "probe: subscription, timeout: 0.2")
    (found,) = told(await held(silent, tmp_path))
    assert found == "subscriptions/listen was not acknowledged within 0.2 s"


async def test_the_id_of_a_subscription_is_not_true(tmp_path: Path) -> None:
    first: Json = {
        "jsonrpc": "2.0",
        "method": "notifications/subscriptions/acknowledged",
        "params": {"notifications": {}},
    }
    (found,) = told(await held(subscribed(first), tmp_path))
    assert found.endswith(" carries the subscriptionId null")
    assert ID == "$id"


@pytest.mark.parametrize(
    ("status", "body", "rule"),
    [(200, b"", "accepted"), (200, b'{"jsonrpc": "2.0", "id": 5, "result": {}}', "notification"), (400, b"", None)],
)
async def test_a_notification_over_http_is_accepted_or_refused(
    status: int, body: bytes, rule: str | None, tmp_path: Path
) -> None:
    found = await held(guarded("notification", notified=[status, body.decode()]), tmp_path)
    assert [one.rule for one in found.failures] == ([] if rule is None else [rule])


async def test_a_challenge_without_a_document_and_one_elsewhere_are_left_alone(tmp_path: Path) -> None:
    for challenge in ("Bearer", 'Bearer resource_metadata="http://elsewhere.example/document"'):
        assert (await held(guarded("token", token=challenge), tmp_path)).failures == []


async def test_a_token_that_is_not_valid_is_refused_like_none(tmp_path: Path) -> None:
    lax = guarded("token", token="Bearer", also="Bearer bespeak-probe-that-is-not-valid")
    assert told(await held(lax, tmp_path)) == [
        "a request with a token that is not valid was answered with a result and status 200"
    ]


async def test_before_2025_11_25_an_origin_may_be_refused_with_any_status(tmp_path: Path) -> None:
    assert (await held(guarded("origin", "2025-06-18", origin=421), tmp_path)).failures == []
    assert told(await held(guarded("origin", NOVEMBER, origin=421), tmp_path)) == [
        "a request from a page of another site was answered with status 421"
    ]


async def test_each_wrong_header_is_tried(tmp_path: Path) -> None:
    ignored = " was answered with a result and status 200"
    assert told(await held(guarded("headers"), tmp_path)) == [
        f"a request without the header Mcp-Method{ignored}",
        f"a request with another method in the header Mcp-Method{ignored}",
        f"a request with another revision in the header MCP-Protocol-Version{ignored}",
        f"a request without the header MCP-Protocol-Version{ignored}",
        f"a request without the header Mcp-Name{ignored}",
        f"a request with another name in the header Mcp-Name{ignored}",
        f"a request with invalid base64 in the header Mcp-Name{ignored}",
    ]


async def test_a_server_of_old_clients_may_take_a_request_without_the_header_for_the_revision(tmp_path: Path) -> None:
    lax = {"headers": "of the revision may be left out"}
    old = Raw([[]], test="probe: headers", http=True, gate=lax, agreed="2025-03-26")
    assert told(await held(old, tmp_path)) == []
    new = Raw([[]], test="probe: headers", http=True, gate=lax, agreed=NOVEMBER)
    assert told(await held(new, tmp_path)) == [
        "a request without the header MCP-Protocol-Version was answered with a result and status 200"
    ]


async def test_a_session_that_a_probe_began_is_ended(tmp_path: Path) -> None:
    lax = guarded("origin", NOVEMBER, session="checked")
    assert told(await held(lax, tmp_path)) == [
        "a request from a page of another site was answered with a result and status 200"
    ]
    old = Raw([[]], test="probe: headers", http=True, gate={"headers": True, "session": "checked"}, agreed=NOVEMBER)
    assert told(await held(old, tmp_path)) == []


async def test_a_server_without_tools_gets_no_wrong_names(tmp_path: Path) -> None:
    few = Raw([[]], test="probe: headers", http=True, gate={"session": ""}, capabilities={"prompts": {}})
    assert not any("Mcp-Name" in one for one in told(await held(few, tmp_path)))


async def test_a_server_may_look_at_the_revision_in_the_header_first(tmp_path: Path) -> None:
    first = Raw([[]], test="probe: headers", http=True, gate={"headers": True, "versions": -32022})
    assert told(await held(first, tmp_path)) == []


@pytest.mark.parametrize("name", ["token", "origin"])
async def test_a_request_of_an_older_revision_names_the_revision_and_the_session(name: str, tmp_path: Path) -> None:
    server = guarded(name, NOVEMBER, session="needed", ignores_token=True)
    (found,) = told(await held(server, tmp_path))
    assert found.endswith(" was answered with a result and status 200")


async def test_an_answer_in_a_stream_is_read(tmp_path: Path) -> None:
    streamed = guarded("metadata")
    streamed.answers["tools/list"] = [log(), failed(-32602)]
    found = await held(streamed, tmp_path)
    assert told(found) == ["a request without clientCapabilities was answered with the error -32602 and status 200"]


async def test_a_server_that_dies_of_a_probe_is_told_and_not_used_again(tmp_path: Path) -> None:
    (only,) = told(await held(answering("tool", "tools/call", "$exit"), tmp_path))
    assert only.startswith("the probe tool: the server broke off: ")


@pytest.mark.long
async def test_a_server_that_never_answers_a_probe_is_told(tmp_path: Path) -> None:
    mute = answering("tool", "tools/call")
    object.__setattr__(mute, "test", "probe: tool, timeout: 0.2")
    assert told(await held(mute, tmp_path)) == ["the probe tool: the server did not respond"]


# In a suite


async def suite(folder: Path, options: Options, more: str = "") -> list[Result]:
    path = folder / "raw.bespeak.yaml"
    async with target(probed("notification"), folder) as server:
        path.write_text(
            f"version: 1\nservers: {{raw: {{{server}}}}}\n{more}tests:\n  - {{name: a, probe: notification}}\n"
        )
        return await run(path, options)


def options(**more: Any) -> Options:
    given: dict[str, Any] = {"record": "none", "verify": False, "cassettes": None, "servers": [], "era": None}
    return make_options(**{**given, **more})


async def test_a_probe_is_skipped_where_conversations_are_replayed_and_sent_where_they_are_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    (replayed,) = await suite(tmp_path, options(), "cassettes: tapes\n")
    assert replayed.skipped == "a probe needs the live server, and conversations are replayed"
    (recorded,) = await suite(tmp_path, options(record="once"), "cassettes: tapes\n")
    assert (recorded.skipped, recorded.failures) == (None, [])
    assert not (tmp_path / "tapes").exists()


async def test_a_profile_plays_a_client_and_sends_no_probes(tmp_path: Path) -> None:
    await suite(tmp_path, options())
    items = items_of(load_suite(tmp_path / "raw.bespeak.yaml"))
    assert for_profile(items, None) == items
    assert for_profile(items, find_profile("lossy")) == []


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_a_server_of_ours_passes_all_probes(era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"ours_{era[:4]}.py").write_text("from tests.testing.probes.test_known_probes import mcp\n")
    path = tmp_path / "a.bespeak.yaml"
    path.write_text(
        f"version: 1\nservers: {{ours: {{python: 'ours_{era[:4]}.py:mcp'}}}}\neras: [{era}]\ntests: [{{name: a, probe: all}}]\n"
    )
    (found,) = await run(path, options())
    assert (found.failures, found.advice) == ([], [])


mcp = MCPServer("Ours")


@mcp.tool()
def add(number: int) -> int:
    """Add."""
    return number


@mcp.resource("note://a")
def note_() -> str:
    """Note."""
    return "a"
