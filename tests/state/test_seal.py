"""The seal of design section 7: keys and their ring, what a token binds, what it hides, and how large it may be."""

import json
import secrets
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any

import pytest

from bespeak import RequestStateSecurity
from bespeak.resolve.errors import BadAnswer
from bespeak.state.seal import (
    BUDGET,
    AESGCMRequestStateCodec,
    Binding,
    InvalidRequestState,
    Seal,
    State,
    new_call_id,
)

OLD, NEW = "old key " * 8, "new key " * 8
BINDING = Binding("tools/call", "refund", "digest", "shop", None)
START = 1_000.0


class Clock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> float:
        return self.now


def state(body: str = "[]", *, round_: int = 1, deadline: float = START + 3600) -> State:
    return State("call", round_, deadline, False, body)


def seal_of(clock: Callable[[], float] | None = None, *keys: str) -> Seal:
    return Seal(RequestStateSecurity(keys=keys or (NEW,), clock=clock or Clock()))


def close(seal: Seal, what: State | None = None, binding: Binding = BINDING) -> str:
    return seal.close(what or state(), binding, lambda: "the answer to 'x'")


# Keys


def test_the_first_key_of_a_ring_seals_and_all_of_them_open() -> None:
    before = AESGCMRequestStateCodec([OLD])
    ring = AESGCMRequestStateCodec([NEW, OLD])
    assert ring.unseal(before.seal(b"payload")) == b"payload"
    assert AESGCMRequestStateCodec([NEW]).unseal(ring.seal(b"payload")) == b"payload"


def test_a_key_taken_out_of_the_ring_opens_nothing() -> None:
    token = AESGCMRequestStateCodec([OLD]).seal(b"payload")
    with pytest.raises(InvalidRequestState, match="a key that is not in the ring"):
        AESGCMRequestStateCodec([NEW]).unseal(token)


def test_text_and_bytes_of_the_same_key_are_one_key() -> None:
    token = AESGCMRequestStateCodec([NEW]).seal(b"payload")
    assert AESGCMRequestStateCodec([NEW.encode()]).unseal(token) == b"payload"
    assert AESGCMRequestStateCodec([bytearray(NEW.encode())]).unseal(token) == b"payload"


@pytest.mark.parametrize("make", [lambda: RequestStateSecurity(keys=[]), lambda: AESGCMRequestStateCodec([])])
def test_an_empty_ring_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="list of state keys is empty; pass at least one key"):
        make()


@pytest.mark.parametrize("keys", [["x" * 31], [b"x" * 31], [NEW, ""]])
def test_a_key_that_is_too_short_is_refused_with_a_way_to_make_one(keys: list[str | bytes]) -> None:
    with pytest.raises(
        ValueError, match=r"needs at least 32 bytes, this one has (31|0); make one with `bespeak keys new`"
    ):
        RequestStateSecurity(keys=keys)


@pytest.mark.parametrize("key", [NEW, NEW.encode(), bytearray(NEW.encode())])
def test_a_single_key_in_place_of_a_list_is_refused(key: Any) -> None:
    # Iterating bytes gives integers, and bytes(97) is 97 zeros: a key that everybody knows.
    with pytest.raises((TypeError, ValueError)):
        RequestStateSecurity(keys=key)


def test_keys_and_a_codec_together_are_refused() -> None:
    with pytest.raises(ValueError, match="pass keys or a codec, not both"):
        RequestStateSecurity(keys=[NEW], codec=AESGCMRequestStateCodec([NEW]))


@pytest.mark.parametrize(("ttl", "deadline"), [(0, 3600), (-1, 3600), (600, 0), (600, -1)])
def test_times_must_be_positive(ttl: float, deadline: float) -> None:
    with pytest.raises(ValueError, match="ttl and deadline must be positive numbers of seconds"):
        RequestStateSecurity(ttl=ttl, deadline=deadline)


def test_the_defaults_are_ten_minutes_a_round_and_an_hour_a_call() -> None:
    security = RequestStateSecurity()
    assert (security.ttl, security.deadline) == (600.0, 3600.0)


def test_without_keys_each_process_makes_its_own() -> None:
    token = RequestStateSecurity().codec.seal(b"payload")
    with pytest.raises(InvalidRequestState, match="not in the ring"):
        RequestStateSecurity().codec.unseal(token)


@pytest.mark.parametrize("separator", [" ", ",", ", ", "\n"])
def test_keys_come_from_the_environment_as_a_ring(monkeypatch: pytest.MonkeyPatch, separator: str) -> None:
    old, new = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
    monkeypatch.setenv("BESPEAK_STATE_KEYS", f"{new}{separator}{old}")
    codec = RequestStateSecurity().codec
    assert codec.unseal(AESGCMRequestStateCodec([old]).seal(b"payload")) == b"payload"
    assert AESGCMRequestStateCodec([new]).unseal(codec.seal(b"payload")) == b"payload"


def test_the_authors_keys_go_before_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_STATE_KEYS", OLD.replace(" ", "-"))
    token = RequestStateSecurity(keys=[NEW]).codec.seal(b"payload")
    assert AESGCMRequestStateCodec([NEW]).unseal(token) == b"payload"


def test_a_short_key_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BESPEAK_STATE_KEYS", "short")
    with pytest.raises(ValueError, match="needs at least 32 bytes, this one has 5"):
        _ = RequestStateSecurity().codec


def test_ephemeral_keys_ignore_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    key = secrets.token_urlsafe(32)
    monkeypatch.setenv("BESPEAK_STATE_KEYS", key)
    security = RequestStateSecurity.ephemeral(ttl=5.0, audience="shop")
    assert (security.ttl, security.audience) == (5.0, "shop")
    with pytest.raises(InvalidRequestState, match="not in the ring"):
        AESGCMRequestStateCodec([key]).unseal(security.codec.seal(b"payload"))


def test_ephemeral_keys_are_shared_with_nobody() -> None:
    assert not RequestStateSecurity.ephemeral().shared


def test_given_keys_and_a_codec_are_shared_and_none_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert RequestStateSecurity(keys=[NEW]).shared
    assert RequestStateSecurity(codec=AESGCMRequestStateCodec([NEW])).shared
    assert not RequestStateSecurity().shared
    monkeypatch.setenv("BESPEAK_STATE_KEYS", secrets.token_urlsafe(32))
    assert RequestStateSecurity().shared


# Tokens


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "not a token of this format"),
        ("b1", "not in the ring"),
        ("b1.", "not in the ring"),
        ("b0.KEY.BODY", "not a token of this format"),
        ("b1.nokey.BODY", "not in the ring"),
        ("b1.KEY.", "authentication failed"),
        ("b1.KEY.A", "not base64url"),
        ("b1.KEY.AAAA", "authentication failed"),
        ("b1.KEY.BODY=", "base64url"),
        ("b1.KEY.BODY.", "base64url"),
        ("b1.KEY. BODY", "base64url"),
        ("b1.KEY.BODY\n", "base64url"),
        ("B1.KEY.BODY", "not a token of this format"),
    ],
)
def test_a_token_has_one_spelling(token: str, reason: str) -> None:
    codec = AESGCMRequestStateCodec([NEW])
    _, key_id, body = codec.seal(b"payload").split(".")
    with pytest.raises(InvalidRequestState, match=reason):
        codec.unseal(token.replace("nokey", "0" * 12).replace("KEY", key_id).replace("BODY", body))


def test_bits_that_decode_to_nothing_may_not_be_changed() -> None:
    codec = AESGCMRequestStateCodec([NEW])
    token = codec.seal(b"")  # 28 bytes: the last character has four spare bits, all zero
    assert token[-1] in "AQgw"
    twin = token[:-1] + chr(ord(token[-1]) + 1)
    assert urlsafe_b64decode(twin.split(".")[2] + "==") == urlsafe_b64decode(token.split(".")[2] + "==")
    with pytest.raises(InvalidRequestState, match="not canonical base64url"):
        codec.unseal(twin)


def test_changing_any_one_character_of_a_token_spoils_it() -> None:
    codec = AESGCMRequestStateCodec([NEW, OLD])
    token = codec.seal(b"payload")
    for index, old in enumerate(token):
        for new in {"A", "b", "1", "-", "."} - {old}:
            with pytest.raises(InvalidRequestState):
                codec.unseal(token[:index] + new + token[index + 1 :])


def test_cutting_a_token_anywhere_spoils_it() -> None:
    codec = AESGCMRequestStateCodec([NEW])
    token = codec.seal(b"payload")
    for length in range(len(token)):
        with pytest.raises(InvalidRequestState):
            codec.unseal(token[:length])


def test_a_body_under_another_key_id_of_the_ring_is_refused() -> None:
    ring = AESGCMRequestStateCodec([NEW, OLD])
    other = AESGCMRequestStateCodec([OLD]).seal(b"x").split(".")[1]
    prefix, _, body = ring.seal(b"payload").split(".")
    with pytest.raises(InvalidRequestState, match="authentication failed"):
        ring.unseal(f"{prefix}.{other}.{body}")


def test_the_same_state_never_gives_the_same_token() -> None:
    seal = seal_of()
    assert len({close(seal) for _ in range(100)}) == 100


def test_nothing_in_a_token_can_be_read() -> None:
    token = close(seal_of(), state("the secret answer"))
    raw = urlsafe_b64decode(token.split(".")[2] + "==")
    for secret in (b"secret", b"refund", b"tools/call"):
        assert secret not in raw
        assert secret not in token.encode()


def test_the_length_of_a_token_tells_nothing_but_the_length_of_its_content() -> None:
    seal = seal_of()
    assert len(close(seal, state("a" * 3000))) == len(close(seal, state(secrets.token_hex(1500))))


def test_a_token_over_the_budget_names_what_is_largest() -> None:
    seal = seal_of()
    with pytest.raises(
        BadAnswer, match=r"too large to send \(\d+ bytes, 65536 at most\): the answer to 'x' is the largest"
    ):
        close(seal, state("x" * BUDGET))
    assert len(close(seal, state("x" * (BUDGET // 2)))) <= BUDGET


# States


def test_what_was_sealed_is_what_is_opened() -> None:
    seal = seal_of()
    sealed = State("id", 7, START + 50, True, '"by hand"')
    assert seal.open(close(seal, sealed), BINDING) == (sealed, START, START + 50)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("method", "prompts/get"),
        ("target", "other"),
        ("arguments", "other"),
        ("audience", "other"),
        ("principal", "someone"),
    ],
)
def test_a_state_is_bound_to_every_part_of_its_call(field: str, value: str) -> None:
    seal = seal_of()
    token = close(seal)
    with pytest.raises(InvalidRequestState, match=f"the {field} of the state and of the request differ"):
        seal.open(token, BINDING._replace(**{field: value}))


@pytest.mark.parametrize(("sealed", "asking"), [(None, "x"), ("x", None), ("x", "y"), ("", None), (None, "")])
def test_no_principal_never_equals_a_principal(sealed: str | None, asking: str | None) -> None:
    seal = seal_of()
    token = close(seal, binding=BINDING._replace(principal=sealed))
    with pytest.raises(InvalidRequestState, match="the principal of the state and of the request differ"):
        seal.open(token, BINDING._replace(principal=asking))


def test_a_round_expires_after_its_ttl() -> None:
    clock = Clock()
    seal = seal_of(clock)
    token = close(seal)
    clock.now = START + 599.9
    seal.open(token, BINDING)
    clock.now = START + 600
    with pytest.raises(InvalidRequestState, match="expired"):
        seal.open(token, BINDING)


def test_a_fresh_round_does_not_outlive_the_deadline_of_its_call() -> None:
    clock = Clock()
    seal = seal_of(clock)
    clock.now = START + 3599
    token = close(seal, state(round_=9))
    seal.open(token, BINDING)
    clock.now = START + 3600
    with pytest.raises(InvalidRequestState, match="past the deadline of the call"):
        seal.open(token, BINDING)


@pytest.mark.parametrize("version", [0, 1, 99])
def test_another_format_is_refused(version: int) -> None:
    security = RequestStateSecurity(keys=[NEW], clock=Clock())
    seal = Seal(security)
    payload, _, body = security.codec.unseal(close(seal))[1:].partition(b"\n")
    other = json.dumps([version, *json.loads(payload)[1:]]).encode()
    token = security.codec.seal(b"s" + other + b"\n" + body)
    with pytest.raises(InvalidRequestState, match=f"format {version}, this is format 2"):
        seal.open(token, BINDING)


@pytest.mark.parametrize("payload", [b"", b"s", b"s[]", b"s[1]", b"snull", b"s{}", b"s\xff\xfe", b"x[1]", b"s[1,2"])
def test_a_payload_that_is_no_state_is_refused(payload: bytes) -> None:
    security = RequestStateSecurity(keys=[NEW])
    with pytest.raises(InvalidRequestState, match="not a state of this version"):
        Seal(security).open(security.codec.seal(payload), BINDING)


def test_a_stored_result_is_no_state_and_a_state_is_no_stored_result() -> None:
    seal = seal_of()
    stored = seal.close_result("call", b"result")
    with pytest.raises(InvalidRequestState, match="not a state of this version"):
        seal.open(stored.decode(), BINDING)
    with pytest.raises(InvalidRequestState, match="not a stored result"):
        seal.open_result("call", close(seal).encode())


def test_a_result_is_stored_sealed_and_read_back() -> None:
    seal = seal_of()
    stored = seal.close_result("call", b"the result")
    assert b"result" not in stored
    assert seal.open_result("call", stored) == b"the result"
    with pytest.raises(InvalidRequestState, match="not in the ring"):
        seal_of(None, OLD).open_result("call", stored)


@pytest.mark.parametrize(
    ("token", "reason"),
    [("x" * (BUDGET + 1), "longer than any state that this server issues"), ("b1.ключ.тело", "not ASCII")],
)
def test_a_token_that_cannot_be_ours_is_refused_unopened(token: str, reason: str) -> None:
    class Untouched:
        def seal(self, payload: bytes) -> str:
            raise AssertionError

        def unseal(self, token: str) -> bytes:
            raise AssertionError("the codec was given what it should never see")

    with pytest.raises(InvalidRequestState, match=reason):
        Seal(RequestStateSecurity(codec=Untouched())).open(token, BINDING)


def test_a_call_id_is_random_and_long_enough_for_an_idempotency_key() -> None:
    ids = {new_call_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(len(one) >= 22 and one.isascii() for one in ids)


def test_a_stored_result_is_for_its_own_call_only() -> None:
    seal = seal_of(None, NEW)
    stored = seal.close_result("call", b"the result")
    with pytest.raises(InvalidRequestState, match="not a stored result of this call"):
        seal.open_result("another call", stored)
