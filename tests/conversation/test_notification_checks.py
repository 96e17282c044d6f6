"""Which notifications are allowed: protocol.md sections 16 to 19."""

from typing import Any

import pytest

from bespeak.conversation.notification_checks import LEVELS, NotificationChecks

Json = dict[str, Any]
MODERN, NOVEMBER = "2026-07-28", "2025-11-25"


def checks(version: str = MODERN, log_level: str | None = "info") -> NotificationChecks:
    return NotificationChecks(log_level, version, logs=True, finished={1})


def progress(value: Any, token: Any = 2) -> Json:
    return {"method": "notifications/progress", "params": {"progressToken": token, "progress": value}}


def log(level: Any = "info") -> Json:
    return {"method": "notifications/message", "params": {"level": level, "data": None}}


def texts(found: Any) -> list[str]:
    return [one.text for one in found]


@pytest.mark.parametrize("values", [[], [0], [-1, 0, 0.5, 10], [1, 2]])
def test_progress_that_grows_is_allowed(values: list[Any]) -> None:
    assert checks().of_request(2, list(map(progress, values))) == []


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, 1], ["progress went from 1 to 1"]),
        ([2, 1, 3], ["progress went from 2 to 1"]),
        ([None], ["progress is null, not a number"]),
        ([True], ["progress is a boolean, not a number"]),
    ],
)
def test_progress_that_does_not_grow_is_found(values: list[Any], found: list[str]) -> None:
    assert texts(checks().of_request(2, list(map(progress, values)))) == found


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (1, "the server sent progress of request 1 after its response"),
        (3, "the server sent progress for the token 3"),
        ("2", 'the server sent progress for the token "2"'),
        (True, "the server sent progress for the token true"),
        (None, "the server sent progress for the token null"),
        ([2], "the server sent progress for the token [2]"),
    ],
)
@pytest.mark.parametrize("version", [MODERN, NOVEMBER])
def test_progress_of_another_request_is_found(token: Any, text: str, version: str) -> None:
    assert texts(checks(version).of_request(2, [progress(1, token)])) == [text]


@pytest.mark.parametrize("asked", LEVELS)
def test_a_log_is_at_or_above_the_level_that_was_asked_for(asked: str) -> None:
    found = checks(log_level=asked).of_request(2, list(map(log, LEVELS)))
    assert texts(found) == [
        f"the server sent a log of level {level}, but the request asked for {asked} and above"
        for level in LEVELS[: LEVELS.index(asked)]
    ]


def test_no_log_is_allowed_if_none_was_asked_for() -> None:
    assert texts(checks(log_level=None).of_request(2, [log("error")])) == [
        "the server sent a log of level error, but the request asked for none"
    ]


@pytest.mark.parametrize("log_level", [None, "error"])
def test_an_older_server_decides_itself_what_it_logs(log_level: str | None) -> None:
    assert checks(NOVEMBER, log_level).of_request(2, [log("debug")]) == []


@pytest.mark.parametrize("idle", [True, False])
def test_a_log_outside_of_any_request_is_found_at_the_newest_revision(idle: bool) -> None:
    found = ["the server sent a log while no request was under way"] if idle else []
    assert texts(checks().of_none(log(), idle=idle)) == found
    assert checks(NOVEMBER).of_none(log(), idle=idle) == []


@pytest.mark.parametrize("params", [None, [], "x", {}])
def test_a_log_without_level_and_data_is_found(params: Any) -> None:
    note = {"method": "notifications/message", "params": params}
    assert texts(checks().of_request(2, [note])) == ["a log has the level null", "a log has no data"]


@pytest.mark.parametrize(
    "method",
    [
        "tools/list_changed",
        "prompts/list_changed",
        "resources/list_changed",
        "resources/updated",
        "subscriptions/acknowledged",
    ],
)
def test_what_belongs_to_a_subscription_is_found_elsewhere(method: str) -> None:
    note: Json = {"method": f"notifications/{method}"}
    text = f"the server sent notifications/{method}, but the client opened no subscription"
    assert texts(checks().of_request(2, [note])) == texts(checks().of_none(note, idle=True)) == [text]
    assert checks(NOVEMBER).of_request(2, [note]) == []


def test_notifications_that_the_protocol_does_not_know_are_left_alone() -> None:
    assert checks().of_request(2, [{"method": "notifications/example.com/x"}, {"method": ["x"]}]) == []
