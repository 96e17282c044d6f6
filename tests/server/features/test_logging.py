"""Log entries: which ones a client gets, and which levels there are."""

import json
from typing import Any

import pytest

from bespeak import MCPError
from bespeak.server.features.logging import log_entry, read_level


@pytest.mark.parametrize(
    ("wanted", "level", "sent"),
    [(None, "emergency", False), ("warning", "info", False), ("warning", "warning", True), ("debug", "alert", True)],
)
def test_a_client_gets_entries_of_the_level_it_wants_and_above(wanted: str | None, level: str, sent: bool) -> None:
    assert (log_entry(wanted, level, "x", None) is not None) == sent


def test_an_entry_has_its_level_its_data_and_the_name_of_its_logger_if_there_is_one() -> None:
    def params(logger_name: str | None) -> Any:
        entry = log_entry("info", "error", {"a": 1}, logger_name)
        assert entry is not None
        return json.loads(entry)["params"]

    assert params("till") == {"level": "error", "logger": "till", "data": {"a": 1}}
    assert params(None) == {"level": "error", "data": {"a": 1}}


def test_a_level_that_does_not_exist_is_an_error_even_if_nothing_would_be_sent() -> None:
    with pytest.raises(ValueError, match="unknown log level 'loud'; use one of debug, info, notice"):
        log_entry(None, "loud", "x", None)


@pytest.mark.parametrize("params", [{}, {"level": None}, {"level": "loud"}, {"level": []}])
def test_a_client_cannot_set_a_level_that_does_not_exist(params: dict[str, Any]) -> None:
    with pytest.raises(MCPError, match="level must be one of debug, info") as refused:
        read_level(params)
    assert refused.value.code == -32602
    assert read_level({"level": "notice"}) == "notice"
