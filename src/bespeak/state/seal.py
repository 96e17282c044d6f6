"""`requestState`: progress that is encrypted, authenticated and bound to one call of one client to one server.

A token is `b1.KEYID.BODY`. The body is a nonce and AES-256-GCM ciphertext in base64url. The ciphertext contains the
progress and everything it is bound to. The client sees the same error for every refusal; only the log has the reason.
"""

import os
import secrets
import time
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple, Protocol

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from bespeak.resolve.errors import BadAnswer
from bespeak.state.forks import OfOneProcess

FORMAT = 2
BUDGET = 64 * 1024
"""The longest token, in characters."""
SHORTEST_KEY = 32
KEYS_VARIABLE = "BESPEAK_STATE_KEYS"
_PREFIX = "b1"
_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_+/=", b"+/***")
"""The two alphabets of Base64, and what neither of them has in place of what belongs to the other one."""
_NONCE = 12


class InvalidRequestState(Exception):
    """A state was not issued by this server, belongs to another call, or has expired. The message is for the log."""


class ExpiredRequestState(InvalidRequestState):
    """A state was valid for this call, and its time has run out."""

    def __init__(self, reason: str, call_id: str, round: int) -> None:
        super().__init__(reason)
        self.call_id = call_id
        self.round = round


class RequestStateCodec(Protocol):
    """Turns a payload into a token and back. It must keep the payload secret and reject tokens that it did not seal."""

    def seal(self, payload: bytes) -> str:
        """Return the token for a payload."""
        ...

    def unseal(self, token: str) -> bytes:
        """Return the payload of a token. Raises `InvalidRequestState` for any other string."""
        ...


class AESGCMRequestStateCodec:
    """AES-256-GCM with a list of keys: the first one seals, and each of them can open."""

    def __init__(self, keys: Sequence[bytes | bytearray | str]) -> None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._invalid = InvalidTag
        ring = _ring(keys)
        self._ring = {_derive(key, b"id")[:6].hex(): AESGCM(_derive(key, b"seal")) for key in ring}
        self._first = next(iter(self._ring))

    def seal(self, payload: bytes) -> str:
        nonce = os.urandom(_NONCE)
        head = f"{_PREFIX}.{self._first}."
        sealed = nonce + self._ring[self._first].encrypt(nonce, payload, head.encode())
        return head + _pack(sealed)

    def unseal(self, token: str) -> bytes:
        prefix, _, rest = token.partition(".")
        key_id, _, body = rest.partition(".")
        if prefix != _PREFIX:
            raise InvalidRequestState("not a token of this format")
        key = self._ring.get(key_id)
        if key is None:
            raise InvalidRequestState(f"sealed with a key that is not in the ring ({key_id[:16]!r})")
        sealed = _unpack(body)
        try:
            return key.decrypt(sealed[:_NONCE], sealed[_NONCE:], f"{_PREFIX}.{key_id}.".encode())
        except (self._invalid, ValueError):
            raise InvalidRequestState("authentication failed: tampered with, or cut off") from None


def _ring(keys: Sequence[bytes | bytearray | str]) -> list[bytes]:
    """Return the keys as bytes. Raises an error that says what is wrong with them, but does not contain them."""
    if isinstance(keys, (str, bytes, bytearray)):
        raise TypeError("keys must be a list of keys, the first of which seals; write keys=[key]")
    if not keys:
        raise ValueError("the list of state keys is empty; pass at least one key")
    return [_key_bytes(key) for key in keys]


def _key_bytes(key: bytes | bytearray | str) -> bytes:
    raw = key.encode() if isinstance(key, str) else bytes(key)
    if len(raw) < SHORTEST_KEY:
        raise ValueError(
            f"a state key needs at least {SHORTEST_KEY} bytes, this one has {len(raw)}; make one with `bespeak keys new`"
        )
    return raw


def _derive(key: bytes, purpose: bytes) -> bytes:
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    return HKDF(algorithm=SHA256(), length=32, salt=None, info=b"bespeak request state v1 " + purpose).derive(key)


def _pack(sealed: bytes) -> str:
    return b2a_base64(sealed, newline=False).translate(_TO_URL, b"=").decode()


def _unpack(body: str) -> bytes:
    """The bytes in a body, which have one spelling only: otherwise a token could be altered unnoticed."""
    spelt = body.encode().translate(_FROM_URL)
    try:
        sealed = a2b_base64(spelt + b"=" * (-len(spelt) % 4), strict_mode=True)
    except ValueError:
        raise InvalidRequestState("the body is not base64url") from None
    # The last character may have bits that decode to nothing.
    tail = len(sealed) % 3
    if tail and not body.endswith(_pack(sealed[-tail:])):
        raise InvalidRequestState("the body is not canonical base64url")
    return sealed


def authenticated_principal(context: Any) -> str | None:
    """Return the caller according to the request's authentication; `None` without authentication."""
    return context.principal


class RequestStateSecurity(OfOneProcess):
    """How `requestState` is protected. Without keys here or in the environment, keys are made for this process.

    A forked process makes keys of its own: it cannot know which approvals were spent under those of its parent.
    """

    def __init__(
        self,
        *,
        keys: Sequence[bytes | bytearray | str] | None = None,
        codec: RequestStateCodec | None = None,
        ttl: float = 600.0,
        bind_principal: Callable[[Any], str | None] | None = authenticated_principal,
        audience: str | None = None,
        deadline: float = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if keys is not None and codec is not None:
            raise ValueError("pass keys or a codec, not both")
        if ttl <= 0 or deadline <= 0:
            raise ValueError("ttl and deadline must be positive numbers of seconds")
        if keys is None and codec is None:
            keys = environment_keys() or None
        if keys is not None:
            _ring(keys)
        self.ttl = ttl
        self.deadline = deadline
        self.bind_principal = bind_principal
        self.audience = audience
        self.clock = clock
        self._keys = keys
        self._codec = codec
        self._making = Lock()
        self.shared = keys is not None or codec is not None
        """Whether another process could hold the same keys."""
        super().__init__()

    @classmethod
    def ephemeral(cls, *, ttl: float = 600.0, audience: str | None = None) -> "RequestStateSecurity":
        """Return settings with new keys for this process only. Keys in the environment are ignored."""
        security = cls(keys=[secrets.token_bytes(32)], ttl=ttl, audience=audience)
        security._keys, security.shared = None, False  # so they are made when they are needed
        return security

    def begin_anew(self) -> None:
        self._making = Lock()
        if not self.shared:
            self._codec = None

    @property
    def codec(self) -> RequestStateCodec:
        if self._codec is None:
            with self._making:  # if two threads made different keys, they could not read each other's states
                self._codec = self._codec or AESGCMRequestStateCodec(self._keys or [secrets.token_bytes(32)])
        return self._codec


def environment_keys() -> list[str]:
    """Return the state keys in the environment, in their order."""
    return os.environ.get(KEYS_VARIABLE, "").replace(",", " ").split()


class Binding(NamedTuple):
    """The call, the client and the server that a state belongs to."""

    method: str
    target: str
    arguments: str
    """Digest of the arguments."""
    audience: str
    principal: str | None


class State(NamedTuple):
    """The content of a state."""

    call_id: str
    round: int
    deadline: float
    by_hand: bool
    body: str
    """Encoded progress, or the author's own state."""
    incarnation: str | None = None
    """Under which incarnation of a shared store the call began; `None` without a shared store."""


class Opened(NamedTuple):
    """A state, with the times when it was issued and when it expires."""

    state: State
    issued: float
    expiry: float


_Payload = tuple[int, str, str, str, str, str | None, float, float, float, int, str, bool, str | None]
_read_payload = TypeAdapter[_Payload](_Payload).validator.validate_json
_STATE, _RESULT, _SHARED = b"s", b"r", b"w"


class Seal:
    """Seals and opens the states and stored results of one server."""

    def __init__(self, security: RequestStateSecurity) -> None:
        self._security = security

    def close(self, state: State, binding: Binding, heaviest: Callable[[], str]) -> str:
        """Return the token for a state. If it is too large, raises `BadAnswer`, which names the largest part."""
        now = self._security.clock()
        payload: _Payload = (
            FORMAT,
            binding.method,
            binding.target,
            binding.arguments,
            binding.audience,
            binding.principal,
            now,
            min(now + self._security.ttl, state.deadline),
            state.deadline,
            state.round,
            state.call_id,
            state.by_hand,
            state.incarnation,
        )
        token = self._security.codec.seal(b"%b%b\n%b" % (_STATE, to_json(payload), state.body.encode()))
        if len(token) > BUDGET:
            raise BadAnswer(
                f"the call's progress is too large to send ({len(token)} bytes, {BUDGET} at most): {heaviest()} is the "
                "largest part; make it smaller"
            )
        return token

    def open(self, token: str, binding: Binding) -> Opened:
        """Return the state in a token. Raises `InvalidRequestState` unless it is valid for exactly this call, now."""
        if len(token) > BUDGET:
            raise InvalidRequestState(f"longer than any state that this server issues ({len(token)} characters)")
        if not token.isascii():
            raise InvalidRequestState("not ASCII")
        opened = self._unseal(token)
        try:
            if not opened.startswith(_STATE):
                raise ValueError
            payload, _, body = opened[1:].partition(b"\n")  # which no JSON has in it
            version, *sealed, issued, expiry, deadline, round_, call_id, by_hand, incarnation = _read_payload(payload)
        except (ValidationError, ValueError):
            raise InvalidRequestState("not a state of this version") from None
        if version != FORMAT:
            raise InvalidRequestState(f"format {version}, this is format {FORMAT}")
        if sealed != [*binding]:
            name = next(
                name for name, theirs, ours in zip(Binding._fields, sealed, binding, strict=True) if theirs != ours
            )
            raise InvalidRequestState(f"the {name} of the state and of the request differ")
        now = self._security.clock()
        if now >= deadline:
            raise ExpiredRequestState("past the deadline of the call", call_id, round_)
        if now >= expiry:
            raise ExpiredRequestState("expired", call_id, round_)
        return Opened(State(call_id, round_, deadline, by_hand, body.decode(), incarnation), issued, expiry)

    def close_result(self, call: str, result: bytes) -> bytes:
        """Return a result sealed for the ledger. It can only be opened for the same call."""
        return self._security.codec.seal(_RESULT + call.encode() + b"\n" + result).encode()

    def open_result(self, call: str, stored: bytes) -> bytes:
        """Return a call's stored result. Raises `InvalidRequestState` if it is not valid for this call and these keys."""
        opened = self._unseal(stored.decode())
        head = _RESULT + call.encode() + b"\n"
        if not opened.startswith(head):
            raise InvalidRequestState("not a stored result of this call")
        return opened[len(head) :]

    def close_shared(self, purpose: str, content: bytes) -> bytes:
        """Return what workers share, sealed for a store. It can only be opened for the same purpose."""
        return self._security.codec.seal(_SHARED + purpose.encode() + b"\n" + content).encode()

    def open_shared(self, purpose: str, sealed: bytes) -> bytes:
        """Return what another worker has sealed. Raises `InvalidRequestState` if it is not valid for this purpose."""
        opened = self._unseal(sealed.decode("latin-1"))
        head = _SHARED + purpose.encode() + b"\n"
        if not opened.startswith(head):
            raise InvalidRequestState(f"not sealed as {purpose.partition(' ')[0]}")
        return opened[len(head) :]

    def _unseal(self, token: str) -> bytes:
        try:
            return self._security.codec.unseal(token)
        except InvalidRequestState:
            raise
        except Exception as error:
            raise InvalidRequestState(f"the codec failed with {type(error).__name__}") from error


def new_call_id() -> str:
    """Return a random id for one call, which can be used as an idempotency key."""
    return _pack(os.urandom(16))
