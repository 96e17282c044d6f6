"""What a client may do to a server: altered states, lost responses, capabilities that were never declared.

testing.md section 2 (hostile tests; one that never reached its round fails) and protocol 6.3, S6 and S8 to S11.
"""

import json
from typing import Any, Literal

import pytest

from bespeak.conversation.call_rounds import Round
from bespeak.testing.altered_requests import NotReached
from bespeak.testing.attacks import Attack, advise_ignored, ignores_state, judge_tampered
from bespeak.testing.suite.attack_keys import Fault, Tamper
from tests.testing.canned import (
    TOKEN,
    Canned,
    Hold,
    Json,
    Pushing,
    asking,
    error,
    form,
    listing,
    messages,
    round_of,
    rules,
    told,
)
from tests.testing.canned import hold as hold

How = Literal["flip", "drop", "empty", "truncate", "other-arguments"]
STATE = "eyJhIjogMX0.c2lnbmF0dXJl"
CALL: Json = {"name": "pay", "arguments": {"cents": 5}, "requestState": STATE, "inputResponses": {"ok": 1}}
OTHER: Json = {"cents": 50_000}


def tamper(how: How, round_: int = 1) -> Tamper:
    more = {"arguments": OTHER} if how == "other-arguments" else {}
    return Tamper.model_validate({"round": round_, "requestState": how, **more})


# One request, altered


@pytest.mark.parametrize(
    ("how", "sent"),
    [
        ("flip", {**CALL, "requestState": "eyJhIjogMX0.A2lnbmF0dXJl"}),
        ("truncate", {**CALL, "requestState": "eyJhIjogMX0."}),
        ("empty", {**CALL, "requestState": ""}),
        ("drop", {"name": "pay", "arguments": {"cents": 5}, "inputResponses": {"ok": 1}}),
        ("other-arguments", {**CALL, "arguments": OTHER}),
    ],
)
def test_each_way_to_tamper_changes_one_thing(how: How, sent: Json) -> None:
    before = dict(CALL)
    assert Attack(tamper(how)).alter(1, CALL) == sent
    assert before == CALL  # what was not yet sent is not touched


def test_only_the_request_of_its_round_is_altered() -> None:
    attack = Attack(tamper("empty", 2))
    assert attack.alter(0, CALL) is CALL
    assert attack.alter(1, CALL) is CALL
    assert attack.alter(2, CALL) != CALL
    assert [attack.is_tampered(number) for number in range(4)] == [False, False, True, False]


def test_a_round_without_a_state_cannot_be_tampered_with() -> None:
    bare = {name: value for name, value in CALL.items() if name != "requestState"}
    with pytest.raises(NotReached, match="round 1 returned no requestState, so there is nothing to alter"):
        Attack(tamper("flip")).alter(1, bare)


@pytest.mark.parametrize("how", ["empty", "truncate"])
def test_an_empty_state_cannot_be_made_emptier(how: How) -> None:
    with pytest.raises(NotReached, match="the attack was not made"):
        Attack(tamper(how)).alter(1, {**CALL, "requestState": ""})


def test_tampering_with_arguments_needs_other_arguments_than_the_call_s() -> None:
    with pytest.raises(NotReached, match="the attack was not made"):
        Attack(tamper("other-arguments")).alter(1, {**CALL, "arguments": OTHER})


def test_only_the_request_of_its_round_loses_its_response() -> None:
    attack = Attack(fault=Fault(round=1, drop="response"), retry=3)
    assert [attack.loses(number) for number in (0, 1, 2)] == [0, 3, 0]


@pytest.mark.parametrize("attack", [Attack(tamper("flip", 3)), Attack(fault=Fault(round=3, drop="response"), retry=1)])
def test_an_attack_that_was_never_made_is_not_reached(attack: Attack) -> None:
    attack.alter(1, CALL)
    attack.loses(1)
    with pytest.raises(NotReached, match="the server never reached round 3, so the attack was not made"):
        attack.check_reached()


# What it comes to


ASKED = [Round({"ok": "Ok?"}, {"ok": {"action": "accept"}}, state=True)]

WHAT: dict[How, str] = {
    "flip": "a requestState with one character altered",
    "truncate": "a requestState cut in half",
    "empty": "an empty requestState",
    "drop": "answers without the requestState they belong to",
    "other-arguments": "a requestState that was issued for other arguments",
}


@pytest.mark.parametrize("how", [how for how in WHAT if how != "drop"])
def test_a_server_that_takes_an_altered_state_breaks_a_rule(how: How) -> None:
    (failure,) = judge_tampered(tamper(how), {"result": told("Paid.")}, ASKED)
    assert failure.message == f"the server accepted {WHAT[how]}; it must answer with an error"
    assert str(failure).endswith(
        "(state-verified: a server must reject a requestState that was altered, or that belongs to another request, "
        "if it relies on it; see basic/patterns/mrtr)"
    )


def test_a_server_that_takes_answers_without_their_state_fails_the_test_but_breaks_no_rule() -> None:
    (failure,) = judge_tampered(tamper("drop"), {"result": told("Paid.")}, ASKED)
    assert failure.rule is None
    assert str(failure) == (
        "the server accepted answers without the requestState they belong to; it should ask again or answer with an error"
    )


PAID: Json = {"result": {**told("Paid."), "_meta": {"x": 1}, "requestState": "s"}}


@pytest.mark.parametrize(
    ("envelope", "unstated", "ignored"),
    [
        (PAID, {"result": told("Paid.")}, True),
        (PAID, {"result": told("Paid twice.")}, False),
        (PAID, {"result": asking("ok")}, False),
        (PAID, error(), False),
        (PAID, None, False),
        (PAID, [], False),
        ({"result": asking("ok", state="1")}, {"result": asking("ok", state="2")}, True),
    ],
)
def test_a_server_that_does_the_same_without_a_state_does_not_rely_on_it(
    envelope: Any, unstated: Any, ignored: bool
) -> None:
    assert ignores_state(envelope, unstated) is ignored


@pytest.mark.parametrize("how", ["flip", "truncate", "empty"])
def test_a_state_that_the_server_does_not_rely_on_may_be_altered(how: How) -> None:
    assert judge_tampered(tamper(how), PAID, ASKED, ignored=True) == []
    (advice,) = advise_ignored(tamper(how))
    assert advice.is_advice
    assert advice.text == f"the server accepted {WHAT[how]}, and does the same without any requestState"


@pytest.mark.parametrize("how", ["drop", "other-arguments"])
def test_answers_that_count_for_other_arguments_fail_the_test_even_if_no_state_says_what_they_are_for(how: How) -> None:
    (failure,) = judge_tampered(tamper(how), PAID, ASKED, ignored=True)
    assert failure.message == f"the server accepted {WHAT[how]}; it should ask again or answer with an error"
    assert failure.rule is None
    assert advise_ignored(tamper(how)) == []


@pytest.mark.parametrize("how", list(WHAT))
def test_a_server_that_answers_with_an_error_is_right(how: How) -> None:
    assert judge_tampered(tamper(how), error("invalid state"), ASKED) == []


@pytest.mark.parametrize("asked", [asking("ok"), listing("ok")])
def test_to_ask_again_is_right_only_when_the_state_was_left_out(asked: Json) -> None:
    assert judge_tampered(tamper("drop"), {"result": asked}, ASKED) == []
    (failure,) = judge_tampered(tamper("flip"), {"result": asked}, ASKED)
    assert failure.message.startswith(
        "the server asked again after receiving a requestState with one character altered;"
    )


BOUND: dict[str, Json] = {
    "other-tool": {"tool": "refund"},
    "other-caller": {"headers": {"x": "y"}},
    "older-round": {"round": 2},
    "expired": {"after": 1},
}
SENT = {
    "other-tool": "a requestState that was issued for another tool",
    "other-caller": "a requestState that was issued to another caller",
    "older-round": "answers with the requestState of an earlier round",
    "expired": "a requestState that should have expired",
}
RULE = {how: "state-verified" if how == "other-tool" else "state-bound" for how in BOUND}


def sent_elsewhere(how: str) -> Tamper:
    return Tamper.model_validate({"round": 1, "requestState": how, **BOUND[how]})


@pytest.mark.parametrize("how", BOUND)
def test_a_state_where_it_does_not_belong_is_refused_with_an_error(how: str) -> None:
    assert judge_tampered(sent_elsewhere(how), error("invalid state"), ASKED) == []
    for reply in (told("Paid."), asking("next")):
        (failure,) = judge_tampered(sent_elsewhere(how), {"result": reply}, ASKED)
        assert failure.message == f"the server accepted {SENT[how]}; it must answer with an error"
        assert failure.rule == RULE[how]


@pytest.mark.parametrize("asked", ["x", "y"])
def test_after_an_older_state_the_questions_of_any_round_so_far_may_be_asked_again(asked: str) -> None:
    rounds = [asked_of("x"), asked_of("y")]
    assert judge_tampered(sent_elsewhere("older-round"), {"result": asking(asked)}, rounds) == []


MALFORMED = {
    "text": "inputResponses that are a string",
    "list": "inputResponses that are an array",
    "nothing": "inputResponses that are null",
    "no-action": "an answer without an action",
    "unknown-action": "an answer with an unknown action",
    "no-content": "an accepted form without content",
    "wrong-type": "values that do not have the types of their form",
}


@pytest.mark.parametrize("how", MALFORMED)
def test_malformed_answers_are_refused_fail_or_are_asked_for_again(how: str) -> None:
    attack = Tamper.model_validate({"round": 1, "inputResponses": how})
    for envelope in (error(), {"result": told("no", isError=True)}, {"result": asking("ok")}):
        assert judge_tampered(attack, envelope, ASKED) == []
    for reply in (told("Paid."), asking("next")):
        (failure,) = judge_tampered(attack, {"result": reply}, ASKED)
        assert failure.message == (
            f"the server accepted {MALFORMED[how]}; it must answer with an error, fail, or ask again"
        )
        assert failure.rule == "answers-checked"


@pytest.mark.parametrize("reply", [error(), {"result": told("Paid.")}, {"result": asking("next")}])
def test_after_an_oversized_answer_any_response_will_do(reply: Json) -> None:
    assert judge_tampered(Tamper(round=1, inputResponses="oversized"), reply, ASKED) == []


@pytest.mark.parametrize("envelope", [None, [], {}, {"result": told("no", isError=True)}])
def test_whatever_is_no_error_is_not_taken_for_one(envelope: Any) -> None:
    assert len(judge_tampered(tamper("flip"), envelope, ASKED)) == 1


@pytest.mark.parametrize("asked", [asking("more"), listing("more")])
def test_asking_the_next_question_means_that_the_answer_was_accepted_without_its_state(asked: Json) -> None:
    (failure,) = judge_tampered(tamper("drop"), {"result": asked}, ASKED)
    assert failure.message.startswith("the server accepted answers without the requestState they belong to;")


# In a suite


PAY = "  - {{name: a, tool: pay, arguments: {{cents: 5}}, inputResponses: {{ok: x}}, {more}}}\n"
REFUSED = error("invalid or expired requestState")


def pay(more: str) -> str:
    return PAY.format(more=more)


def asked_of(*keys: str) -> Round:
    return Round(dict.fromkeys(keys, "Sure?"), {}, state=True)


@pytest.mark.parametrize(
    ("rounds", "asked"),
    [
        ([asked_of("pay~1a2b3c4d")], ["pay~1a2b3c4d"]),
        ([asked_of("pay~1a2b3c4d")], ["pay~5e6f7a8b"]),  # a price that has moved
        ([asked_of("x~1a2b3c4d", "y~1a2b3c4d"), asked_of("z~1a2b3c4d")], ["y~5e6f7a8b", "x~1a2b3c4d"]),
        ([asked_of("x~1a2b3c4d"), asked_of("z~1a2b3c4d")], ["z~5e6f7a8b"]),
        ([asked_of("x~1a2b3c4d", "x~5e6f7a8b")], ["x~1a2b3c4d", "x~00000000"]),
    ],
)
def test_who_asks_the_same_names_again_has_taken_nothing_for_granted(rounds: list[Round], asked: list[str]) -> None:
    assert judge_tampered(tamper("drop"), {"result": asking(*asked)}, rounds) == []


@pytest.mark.parametrize(
    ("rounds", "asked"),
    [
        ([asked_of("x~1a2b3c4d", "x~5e6f7a8b")], ["x~5e6f7a8b"]),
        ([asked_of("x~1a2b3c4d", "y~1a2b3c4d")], ["y~1a2b3c4d"]),
        ([asked_of("x~1a2b3c4d")], ["y~1a2b3c4d"]),
    ],
)
def test_who_asks_only_some_of_the_names_again_has_taken_answers_without_their_state(
    rounds: list[Round], asked: list[str]
) -> None:
    (failure,) = judge_tampered(tamper("drop"), {"result": asking(*asked)}, rounds)
    assert failure.message.startswith("the server accepted answers without the requestState they belong to;")


@pytest.mark.parametrize("how", ["flip", "truncate", "empty", "drop", "other-arguments, arguments: {cents: 6}"])
async def test_a_refused_state_passes_without_further_expectations(hold: Hold, how: str) -> None:
    server = Canned(asking("ok"), REFUSED)
    (result,) = await hold(server, pay(f"tamper: {{round: 1, requestState: {how}}}"))
    assert result.passed
    assert len(server.sent) == 2
    assert len(result.rounds) == 1


async def test_who_expects_an_altered_state_to_be_accepted_has_the_last_word(hold: Hold) -> None:
    accepts = pay("tamper: {round: 1, requestState: flip}, expect: {text: Paid.}")
    assert messages(await hold(Canned(asking("ok"), told("Paid.")), accepts)) == []
    results = await hold(Canned(asking("ok"), REFUSED), accepts)
    assert messages(results) == ["the call ended with an error: invalid or expired requestState (-32602)"]


@pytest.mark.parametrize("expect", ["{rounds: 1}", "{asked: [ok], notifications: []}"])
async def test_an_expectation_that_does_not_name_the_outcome_leaves_the_rule_in_force(hold: Hold, expect: str) -> None:
    tests = pay(f"tamper: {{round: 1, requestState: flip}}, expect: {expect}")
    assert rules(await hold(Canned(asking("ok"), told("Paid."), asking("ok")), tests)) == ["state-verified"]
    assert messages(await hold(Canned(asking("ok"), REFUSED), tests)) == []


async def test_the_rule_and_an_expected_error_are_both_reported(hold: Hold) -> None:
    tests = pay("tamper: {round: 1, requestState: flip}, expect: {error: {code: -32602}}")
    results = await hold(Canned(asking("ok"), told("Paid."), asking("ok")), tests)
    assert rules(results) == ["state-verified", None]
    assert messages(results)[1] == "the call did not end with an error, but with: Paid."


async def test_a_result_that_is_an_error_can_be_expected(hold: Hold) -> None:
    tests = pay("tamper: {round: 1, requestState: flip}, expect: {isError: true, text: Start again.}")
    assert messages(await hold(Canned(asking("ok"), told("Start again.", isError=True)), tests)) == []


async def test_a_state_that_is_only_cosmetic_is_advice_and_the_test_passes(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."))
    (result,) = await hold(server, pay("tamper: {round: 1, requestState: flip}"))
    assert result.passed
    assert [one.rule for one in result.advice] == ["state-ignored"]
    assert [params.get("requestState") for params in server.params][2] is None
    assert server.params[1]["inputResponses"] == server.params[2]["inputResponses"]


async def test_a_refusal_can_be_expected_in_full(hold: Hold) -> None:
    expect = "expect: {error: {code: -32602, message: nope}}"
    results = await hold(Canned(asking("ok"), REFUSED), pay(f"tamper: {{round: 1, requestState: flip}}, {expect}"))
    assert messages(results) == ['error.message: expected "nope", got "invalid or expired requestState"']


async def test_the_state_of_a_later_round_can_be_altered(hold: Hold) -> None:
    server = Canned(asking("ok", state="one"), asking("ok", state="two"), REFUSED)
    (result,) = await hold(server, pay("tamper: {round: 2, requestState: empty}"))
    assert result.passed
    assert [params.get("requestState") for params in server.params] == [None, "one", ""]


@pytest.mark.parametrize("more", ["maxRounds: 1, ", ""])
async def test_a_server_that_begins_again_without_a_state_is_right_at_any_cap(hold: Hold, more: str) -> None:
    (result,) = await hold(Canned(asking("ok")), pay(f"{more}tamper: {{round: 1, requestState: drop}}"))
    assert result.failures == []


async def test_who_begins_again_without_a_state_has_not_asked_again_after_a_decline(hold: Hold) -> None:
    tests = "  - {name: a, tool: pay, inputResponses: {ok: decline}, tamper: {round: 1, requestState: drop}}"
    (result,) = await hold(Canned(asking("ok")), tests)
    assert result.failures == []


@pytest.mark.parametrize(
    ("replies", "attack", "message"),
    [
        (
            [told()],
            "tamper: {round: 1, requestState: flip}",
            "the server never reached round 1, so the attack was not made",
        ),
        ([asking("ok"), told()], "tamper: {round: 2, requestState: flip}", "the server never reached round 2"),
        ([asking("ok", state=None), told()], "tamper: {round: 1, requestState: flip}", "returned no requestState"),
        ([asking("ok", state=""), told()], "tamper: {round: 1, requestState: empty}", "the attack was not made"),
        ([asking("ok"), told()], "fault: {round: 2, drop: response}, retry: 1", "the server never reached round 2"),
    ],
)
async def test_a_hostile_test_that_never_reached_its_round_fails(
    hold: Hold, replies: list[Json], attack: str, message: str
) -> None:
    results = await hold(Canned(*replies), pay(attack))
    assert message in messages(results)[0]
    assert messages(results)[0].startswith("not reached: ")


async def test_what_kept_a_round_from_coming_is_reported(hold: Hold) -> None:
    results = await hold(Canned(error("there is no such tool")), pay("tamper: {round: 1, requestState: flip}"))
    assert "there is no such tool" in "\n".join(messages(results))


@pytest.mark.parametrize(
    "attack", ["tamper: {round: 1, requestState: flip}", "fault: {round: 1, drop: response}, retry: 1"]
)
async def test_at_an_older_revision_there_is_nothing_to_reach(hold: Hold, attack: str) -> None:
    results = await hold(Pushing(form()), pay(attack))
    assert messages(results) == ["not reached: revision 2025-11-25 has no rounds to tamper with"]


# States where they do not belong, and malformed answers, in a suite


async def test_a_state_is_sent_with_another_tool(hold: Hold) -> None:
    server = Canned(asking("ok"), REFUSED)
    (result,) = await hold(
        server, pay("tamper: {round: 1, requestState: other-tool, tool: refund, arguments: {id: 1}}")
    )
    assert result.passed
    assert (server.params[1]["name"], server.params[1]["arguments"]) == ("refund", {"id": 1})
    assert server.params[1]["requestState"] == TOKEN


async def test_the_state_of_an_earlier_round_is_sent_in_a_later_one(hold: Hold) -> None:
    server = Canned(asking("ok", state="one"), asking("next", state="two"), asking("ok", state="one"))
    tests = "  - {name: a, tool: pay, inputResponses: {ok: x, next: y}, tamper: {round: 2, requestState: older-round}}"
    (result,) = await hold(server, tests)
    assert result.passed
    assert [params.get("requestState") for params in server.params] == [None, "one", "one"]
    assert list(server.params[2]["inputResponses"]) == ["next"]


async def test_a_state_is_sent_when_it_should_have_expired(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."))
    results = await hold(server, pay("tamper: {round: 1, requestState: expired, after: 0.01}"))
    assert rules(results) == ["state-bound"]


async def test_malformed_answers_are_sent_with_their_state(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."))
    results = await hold(server, pay("tamper: {round: 1, inputResponses: list}"))
    assert rules(results) == ["answers-checked"]
    assert server.params[1]["inputResponses"] == [{"action": "accept", "content": {"value": "x"}}]
    assert "requestState" in server.params[1]


async def test_an_answer_that_nobody_asked_for_should_be_ignored_and_the_call_goes_on(hold: Hold) -> None:
    tests = pay("tamper: {round: 1, inputResponses: unknown-key}, expect: {text: Paid., rounds: 2}")
    server = Canned(asking("ok"), asking("ok"), told("Paid."))
    assert messages(await hold(server, tests)) == []
    assert [len(params.get("inputResponses", ())) for params in server.params] == [0, 2, 1]
    refused = await hold(Canned(asking("ok"), error("unknown key")), tests)
    assert messages(refused) == [
        "the server failed because of an answer to a question that it did not ask; it should ignore it"
    ]
    assert rules(refused) == ["unknown-answer"]
    assert refused[0].ended == "the call ended with an error: unknown key (-32602)"


async def test_a_test_may_expect_that_an_answer_that_nobody_asked_for_is_refused(hold: Hold) -> None:
    tests = pay("tamper: {round: 1, inputResponses: unknown-key}, expect: {error: {code: -32602}}")
    assert messages(await hold(Canned(asking("ok"), error("unknown key")), tests)) == []


async def test_a_failure_of_a_later_round_is_not_blamed_on_the_answer_that_nobody_asked_for(hold: Hold) -> None:
    tests = pay("tamper: {round: 1, inputResponses: unknown-key}")
    server = Canned(asking("ok"), asking("ok"), error("broke"))
    assert messages(await hold(server, tests)) == ["the call ended with an error: broke (-32602)"]


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        ("tamper: {round: 2, requestState: older-round}", "the server never reached round 2"),
        ("tamper: {round: 2, inputResponses: list}", "the server never reached round 2"),
        ("tamper: {round: 2, inputResponses: unknown-key}", "the server never reached round 2"),
        ("tamper: {round: 1, requestState: other-tool, tool: pay}", "equals the original one"),
        ("fault: {round: 2, restart: true}", "the server never reached round 2"),
    ],
)
async def test_a_new_attack_that_never_reached_its_round_fails_too(hold: Hold, attack: str, message: str) -> None:
    results = await hold(Canned(asking("ok"), told()), pay(attack))
    assert messages(results)[0].startswith("not reached: ")
    assert message in messages(results)[0]


# A lost response


LOST = "fault: {round: 1, drop: response}, retry: 2, verify: [{tool: balance, expect: {structuredContent: {paid: 1}}}]"


async def test_a_lost_response_is_followed_by_the_same_request_with_another_id(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."), told("Paid."), told("Paid."), told(structuredContent={"paid": 1}))
    (result,) = await hold(server, pay(LOST))
    assert result.passed
    assert server.params[1] == server.params[2] == server.params[3]
    assert len({sent["id"] for sent in server.sent}) == 5
    assert server.params[4] == {"name": "balance", "arguments": {}}


async def test_what_was_done_twice_breaks_a_rule(hold: Hold) -> None:
    paid = told("Paid.")
    server = Canned(asking("ok"), paid, paid, paid, told(structuredContent={"paid": 3}))
    ((failure,),) = [result.failures for result in await hold(server, pay(LOST))]
    assert failure.rule == "single-use"
    assert failure.message.startswith(
        "after a response was lost and the request was sent again: structuredContent.paid"
    )
    assert (failure.expected, failure.actual) == (1, 3)


async def test_what_comes_for_the_last_of_the_requests_is_judged(hold: Hold) -> None:
    server = Canned(asking("ok"), told("Paid."), error("already settled"))
    results = await hold(server, pay("fault: {round: 1, drop: response}, retry: 1, expect: {text: Paid.}"))
    assert messages(results) == ["the call ended with an error: already settled (-32602)"]


async def test_the_call_itself_can_be_lost(hold: Hold) -> None:
    server = Canned(asking("ok", state="one"), asking("ok", state="two"), told())
    (result,) = await hold(server, pay("fault: {round: 0, drop: response}, retry: 1"))
    assert result.passed
    assert server.params[0] == server.params[1]
    assert server.params[2]["requestState"] == "two"
    assert len(result.rounds) == 1


# What was not declared


async def test_what_is_declared_goes_with_every_request_of_its_test(hold: Hold) -> None:
    server = Canned(asking("ok"), told())
    await hold(server, pay("declare: {elicitation: {form: {}}}"))
    declared = [sent["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] for sent in server.sent]
    assert declared == [{"elicitation": {"form": {}}}] * 2


@pytest.mark.parametrize(
    ("declare", "question", "needed"),
    [
        ("{}", form(), "elicitation.form"),
        ("{elicitation: {url: {}}}", form(), "elicitation.form"),
        ("{elicitation: {form: {}}}", {"method": "roots/list"}, "roots"),
        (
            "{elicitation: {}}",
            {"method": "elicitation/create", "params": {"mode": "url", "message": "?", "url": "https://x.example"}},
            "elicitation.url",
        ),
    ],
)
async def test_who_asks_what_was_not_declared_is_found_and_not_answered(
    hold: Hold, declare: str, question: Json, needed: str
) -> None:
    server = Canned(asking(ok=question), told())
    results = await hold(server, f"  - {{name: a, tool: pay, declare: {declare}, inputResponses: {{ok: x}}}}")
    assert rules(results) == ["undeclared"]
    assert messages(results) == [f"'ok' asks for {needed}, which the client did not declare"]
    assert len(server.sent) == 1


async def test_who_pushes_what_was_not_declared_is_found_and_not_answered(hold: Hold) -> None:
    server = Pushing(form())
    results = await hold(server, "  - {name: a, tool: pay, declare: {}, inputResponses: {value: x}}")
    assert rules(results) == ["undeclared"]
    assert "error" in server.answered[0]


# What a server must not do, whoever asks it


OK = f'"ok": {json.dumps(form())}'
TWO_OKS = '{"resultType": "input_required", "inputRequests": {' + f"{OK}, {OK}" + "}}"
RAW = ('{"jsonrpc": "2.0", "id": 2, "result": ' + TWO_OKS + "}").encode()
FIELD: Json = {"id": "ok", "kind": "string", "description": "?"}
BROKEN: dict[str, tuple[Json | bytes, str]] = {
    "one id twice": ({"inputRequests": [FIELD, FIELD], "requestState": "s"}, "duplicate-key"),
    "one key twice": (RAW, "duplicate-key"),
    "neither questions nor a state": ({"resultType": "input_required"}, "empty"),
    "a resultType of null": ({"resultType": None}, "result-type"),
    "another resultType": ({"resultType": "task"}, "result-type"),
    "a state that is no text": ({**asking("ok", state=None), "requestState": 5}, "shape"),
    "a state of null": ({**asking("ok", state=None), "requestState": None}, "shape"),
    "an array that says input_required": ({"resultType": "input_required", "inputRequests": [FIELD]}, "shape"),
    "an array without a state": ({"inputRequests": [FIELD]}, "shape"),
    "an array with an empty state": ({"inputRequests": [FIELD], "requestState": ""}, "shape"),
    "an empty array with a state": ({"inputRequests": [], "requestState": "s"}, "shape"),
    "an entry that is no object": (round_of({"ok": "?"}), "question"),
    "an entry of null": (round_of({"ok": None}), "question"),
    "an entry without a method": (round_of({"ok": {"params": {}}}), "question"),
    "an entry of another method": (round_of({"ok": {"method": "tools/call"}}), "question"),
}


@pytest.mark.parametrize("what", BROKEN)
async def test_each_rule_that_a_server_breaks_is_named(hold: Hold, what: str) -> None:
    reply, rule = BROKEN[what]
    results = await hold(Canned(reply, told()), "  - {name: a, tool: x, wire: any, inputResponses: [{otherwise: y}]}")
    assert rules(results) == [rule]
    assert messages(results)[0].isprintable()


async def test_a_question_that_comes_again_after_a_decline_is_found(hold: Hold) -> None:
    results = await hold(
        Canned(asking("ok"), asking("ok"), told()), "  - {name: a, tool: x, inputResponses: {ok: decline}}"
    )
    assert messages(results) == []
    assert [(one.rule, one.text) for one in results[0].advice] == [
        ("declined", "'ok' was declined, but the server asked it again")
    ]


@pytest.mark.parametrize("key", ["", "a\u200d", "a\x1b[2J"])
async def test_a_key_may_be_any_text(hold: Hold, key: str) -> None:
    results = await hold(
        Canned(round_of({key: form()}), told()), "  - {name: a, tool: x, inputResponses: [{otherwise: y}]}"
    )
    assert messages(results) == []


async def test_a_complete_result_that_asks_is_advice(hold: Hold) -> None:
    (result,) = await hold(Canned(told(inputRequests={"ok": form()})), "  - {name: a, tool: x}")
    assert result.passed
    assert [one.rule for one in result.advice] == ["complete-asks"]


async def test_all_that_is_wrong_is_reported_each_once(hold: Hold) -> None:
    odd = listing("a", "a", "b", "b")
    results = await hold(Canned(odd, odd, told()), "  - {name: a, tool: x, inputResponses: [{otherwise: y}]}")
    assert rules(results) == ["dialect", "duplicate-key", "duplicate-key"]
