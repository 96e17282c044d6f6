"""What a storm at the refund desk must not bring."""

from dataclasses import replace

from storm.desk_storm import DeskStorm, judge
from storm.desk_visits import Visits

GOOD = Visits(calls=3, refunded=3)


def test_every_call_refunded_once_and_asked_is_as_it_should_be() -> None:
    assert judge("ours", GOOD) == []


def test_what_went_wrong_is_named() -> None:
    lost = replace(GOOD, refunded=2)
    failed = replace(lost, failures=["ours 2: MCPError: invalid or expired requestState"])
    found = [*judge("ours", lost), *judge("ours", failed)]
    found += [*judge("ours", replace(GOOD, doubled=1)), *judge("ours", replace(GOOD, unasked=1))]
    assert [one.example for one in found] == [
        "ours: 2 of 3",
        "ours: ours 2: MCPError: invalid or expired requestState",
        "ours: 1 times twice",
        "ours: 1 calls were not",
    ]


def test_a_client_that_made_no_call_shows_nothing() -> None:
    assert [one.example for one in judge("ours", Visits())] == ["ours: 0 of 0"]


def test_refused_states_and_bad_ends_of_the_server_are_found() -> None:
    log = "INFO:     Started\nrefused the requestState of 'refund_order', request 1: expired\n"
    found = DeskStorm({"ours": GOOD}, 1.0, log, status=1).violations()
    assert [one.example for one in found] == [
        "status 1",
        "refused the requestState of 'refund_order', request 1: expired",
    ]
    assert DeskStorm({"ours": GOOD}, 1.0, "INFO:     Started\n", status=0).violations() == []
