"""`JWTVerifier`: which signed tokens it accepts, what it reads in them, and what it refuses."""

import hmac
import logging
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OKPKey, RSAKey
from pydantic_core import to_json

from bespeak.server.auth import JWTVerifier
from bespeak.server.auth.jwt_verifier import MOST_CHARACTERS
from bespeak.transports.interfaces import MissingExtra
from tests.server.auth.issuers import ISSUER, OMIT, RESOURCE, Issuer, forged, settings, signed_with_secret

NOW = 1_800_000_000
ALICE = Issuer()
VERIFIER = JWTVerifier(settings(), ALICE.jwks, clock=lambda: NOW)
SECRET = "a secret of at least thirty-two bytes"


def signed(subject: Any = "alice", scope: Any = "", **claims: Any) -> str:
    claims = {"exp": NOW + 60, **claims}
    return ALICE.token(subject, scope, **claims)


async def refusal(token: str, caplog: pytest.LogCaptureFixture, verifier: JWTVerifier = VERIFIER) -> str:
    """Why a token is refused, according to the log."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "bespeak.auth"):
        assert await verifier.verify_token(token) is None
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    return record.getMessage().removeprefix("refused an access token: ")


# What is read


async def test_a_signed_token_is_accepted_and_read() -> None:
    token = signed("alice", "orders profile", extra=[1])
    found = await VERIFIER.verify_token(token)
    assert found is not None
    assert (found.token, found.client_id, found.subject) == (token, "agent", "alice")
    assert (found.scopes, found.expires_at, found.resource) == (["orders", "profile"], NOW + 60, RESOURCE)
    assert found.claims is not None
    assert found.claims["extra"] == [1]


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": "a b"}, ["a", "b"]),
        ({"scope": OMIT, "scp": "a b"}, ["a", "b"]),
        ({"scope": OMIT, "scp": ["a", "b", 7]}, ["a", "b"]),
        ({"scope": "a", "scp": ["b"]}, ["a"]),
        ({"scope": ["a"]}, ["a"]),
        ({"scope": OMIT}, []),
        ({"scope": {"a": 1}}, []),
    ],
)
async def test_scopes_are_read_as_issuers_write_them(claims: dict[str, Any], scopes: list[str]) -> None:
    found = await VERIFIER.verify_token(signed(**{"scope": "", **claims}))
    assert found is not None
    assert found.scopes == scopes


@pytest.mark.parametrize(
    ("claims", "client"),
    [
        ({"azp": "app"}, "agent"),
        ({"client_id": OMIT, "azp": "app"}, "app"),
        ({"client_id": OMIT}, ""),
        ({"client_id": 7}, ""),
    ],
)
async def test_the_client_is_read_from_either_claim(claims: dict[str, Any], client: str) -> None:
    found = await VERIFIER.verify_token(signed(**claims))
    assert found is not None
    assert found.client_id == client


@pytest.mark.parametrize("aud", [RESOURCE, [RESOURCE], ["https://other.example.com", RESOURCE]])
async def test_the_audience_must_contain_this_server(aud: Any) -> None:
    assert await VERIFIER.verify_token(signed(aud=aud)) is not None


async def test_a_root_url_may_end_with_a_slash() -> None:
    verifier = JWTVerifier(settings(resource_server_url="https://mcp.example.com"), ALICE.jwks, clock=lambda: NOW)
    for aud in ("https://mcp.example.com", "https://mcp.example.com/"):
        found = await verifier.verify_token(signed(aud=aud, iss=f"{ISSUER}/"))
        assert found is not None
        assert found.resource == "https://mcp.example.com"


@pytest.mark.parametrize("audience", ["api://shop", ["api://shop", "api://till"]])
async def test_an_audience_of_the_issuers_own_stands_for_this_server(
    audience: Any, caplog: pytest.LogCaptureFixture
) -> None:
    verifier = JWTVerifier(settings(), ALICE.jwks, audience=audience, clock=lambda: NOW)
    found = await verifier.verify_token(signed(aud="api://shop"))
    assert found is not None
    assert found.resource == RESOURCE
    assert "'aud'" in await refusal(signed(aud=RESOURCE), caplog, verifier)


async def test_the_audience_is_not_checked_if_that_is_turned_off() -> None:
    verifier = JWTVerifier(settings(validate_token_resource=False), ALICE.jwks, clock=lambda: NOW)
    found = await verifier.verify_token(signed(aud=OMIT))
    assert found is not None
    assert found.resource is None


KEYS = {
    "RS256": lambda: RSAKey.generate_key(2048),
    "PS256": lambda: RSAKey.generate_key(2048),
    "ES256": lambda: ECKey.generate_key("P-256"),
    "ES384": lambda: ECKey.generate_key("P-384"),
    "ES512": lambda: ECKey.generate_key("P-521"),
    "Ed25519": lambda: OKPKey.generate_key("Ed25519"),
}


@pytest.mark.parametrize("algorithm", KEYS)
async def test_asymmetric_algorithms_are_accepted(algorithm: str) -> None:
    issuer = Issuer("k1", KEYS[algorithm](), algorithm)
    assert await JWTVerifier(settings(), issuer.jwks).verify_token(issuer.token()) is not None


async def test_a_secret_is_accepted_if_it_is_configured_with_its_algorithm() -> None:
    verifier = JWTVerifier(settings(), secret=SECRET, algorithms=["HS256"])
    assert await verifier.verify_token(signed_with_secret(SECRET.encode(), {})) is not None
    assert await verifier.verify_token(signed_with_secret(b"x" * 40, {})) is None
    assert await verifier.verify_token(ALICE.token()) is None


# What is refused


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": NOW - 30}, "it has expired"),
        ({"exp": OMIT}, "the claim 'exp' is missing, or is not what it must be"),
        ({"exp": "never"}, "the claim 'exp' is missing, or is not what it must be"),
        ({"exp": True}, "the claim 'exp' is missing, or is not what it must be"),
        ({"exp": float("nan")}, "the claim 'exp' is missing, or is not what it must be"),
        ({"exp": float("inf")}, "the claim 'exp' is missing, or is not what it must be"),
        ({"nbf": NOW + 31}, "the claim 'nbf' is missing, or is not what it must be"),
        ({"iat": NOW + 31}, "the claim 'iat' is missing, or is not what it must be"),
        ({"iss": "https://evil.example.com"}, "the claim 'iss' is missing, or is not what it must be"),
        ({"iss": f"{ISSUER}/tenant"}, "the claim 'iss' is missing, or is not what it must be"),
        ({"iss": [ISSUER]}, "the claim 'iss' is missing, or is not what it must be"),
        ({"iss": OMIT}, "the claim 'iss' is missing, or is not what it must be"),
        ({"aud": "https://other.example.com/mcp"}, "the claim 'aud' is missing, or is not what it must be"),
        ({"aud": RESOURCE + "/"}, "the claim 'aud' is missing, or is not what it must be"),
        ({"aud": RESOURCE.upper()}, "the claim 'aud' is missing, or is not what it must be"),
        ({"aud": {RESOURCE: 1}}, "the claim 'aud' is missing, or is not what it must be"),
        ({"aud": []}, "the claim 'aud' is missing, or is not what it must be"),
        ({"aud": OMIT}, "the claim 'aud' is missing, or is not what it must be"),
        ({"subject": 7}, "the claim 'sub' is missing, or is not what it must be"),
    ],
    ids=str,
)
async def test_a_wrong_claim_is_refused(claims: dict[str, Any], reason: str, caplog: pytest.LogCaptureFixture) -> None:
    assert await refusal(signed(**claims), caplog) == reason


@pytest.mark.parametrize("claims", [{"exp": NOW - 29}, {"nbf": NOW + 30}, {"iat": NOW + 30}, {"exp": NOW + 0.5}])
async def test_clocks_may_differ_a_little(claims: dict[str, Any]) -> None:
    assert await VERIFIER.verify_token(signed(**claims)) is not None


ALGORITHMS = (
    "it is not signed with one of the algorithms RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, Ed25519"
)
NO_KEY = "the issuer has no such key, or the key does not fit the algorithm"
CLAIMS = {"iss": ISSUER, "aud": RESOURCE, "exp": NOW + 60, "sub": "alice"}


@pytest.mark.parametrize("alg", ["none", "None", "NONE", "HS256", "EdDSA", "ES256K", "made-up", ""])
async def test_an_algorithm_that_is_not_accepted_is_refused(alg: str, caplog: pytest.LogCaptureFixture) -> None:
    assert await refusal(forged({"alg": alg, "kid": "k1"}, CLAIMS), caplog) == ALGORITHMS


@pytest.mark.parametrize("kid", ["k1", None])
async def test_a_public_key_is_never_used_as_a_secret(kid: str | None, caplog: pytest.LogCaptureFixture) -> None:
    """The attack of algorithm confusion: the token is signed with the issuer's public key as if it were a secret."""
    key = RSAKey.generate_key(2048)
    jwks = Issuer("k1", key, "RS256").jwks
    verifier = JWTVerifier(settings(), jwks, clock=lambda: NOW)
    for public in (key.as_pem(private=False), key.as_der(private=False), to_json(jwks["keys"][0])):
        unsigned = forged({"alg": "HS256", "kid": kid}, CLAIMS).rstrip(".")
        mac = hmac.digest(public, unsigned.encode(), "sha256")
        token = f"{unsigned}.{urlsafe_b64encode(mac).rstrip(b'=').decode()}"
        assert await refusal(token, caplog, verifier) == ALGORITHMS


async def test_a_key_is_not_used_for_an_algorithm_of_another_type(caplog: pytest.LogCaptureFixture) -> None:
    rsa = Issuer("k1", RSAKey.generate_key(2048), "RS256")
    assert await refusal(rsa.token(), caplog) == NO_KEY


@pytest.mark.parametrize(
    "kid", ["k2", "../../dev/null", "k1' OR '1'='1", "", "https://evil.example.com/k", "K1", "\u0000"]
)
async def test_an_unknown_key_is_refused_whatever_its_name(kid: str, caplog: pytest.LogCaptureFixture) -> None:
    assert await refusal(ALICE.token(header={"kid": kid}), caplog) == NO_KEY


@pytest.mark.parametrize("kid", [7, ["k1"], {"k1": 1}, True])
async def test_the_name_of_a_key_is_text(kid: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert await refusal(forged({"alg": "ES256", "kid": kid}, CLAIMS), caplog) == "it is not a signed JSON Web Token"


async def test_keys_that_a_token_brings_along_are_not_used(caplog: pytest.LogCaptureFixture) -> None:
    thief = Issuer("k1")
    header = {"jwk": thief.jwk, "jku": "https://evil.example.com/jwks.json", "x5u": "https://evil.example.com/cert"}
    assert await refusal(thief.token(header=header), caplog) == "the signature is wrong"


async def test_a_header_that_must_be_understood_and_is_not_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    header = {"alg": "ES256", "kid": "k1", "crit": ["exp"], "exp": 1}
    assert await refusal(forged(header, CLAIMS), caplog) in (
        "it is not a signed JSON Web Token",
        "the signature is wrong",
    )


async def test_a_header_that_is_not_known_is_ignored() -> None:
    assert await VERIFIER.verify_token(ALICE.token(header={"nonce": "x"}, exp=NOW + 60)) is not None


async def test_a_changed_token_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    head, _, signature = signed().split(".")
    _, other, _ = signed("bob").split(".")
    assert await refusal(f"{head}.{other}.{signature}", caplog) == "the signature is wrong"


@pytest.mark.parametrize("signature", [b"", b"\0" * 64, b"x"])
async def test_a_signature_that_cannot_be_one_is_refused(signature: bytes, caplog: pytest.LogCaptureFixture) -> None:
    token = forged({"alg": "ES256", "kid": "k1"}, CLAIMS, signature)
    assert await refusal(token, caplog) == "the signature is wrong"


@pytest.mark.parametrize(
    "token",
    ["", ".", "..", "a.b", "a.b.c", "a.b.c.d.e", "bnVsbA.e30.", "WyJhbGciXQ.e30.", "ImFsZyI.e30.", "e30.e30.", "ä.b.c"],
)
async def test_what_is_not_a_token_is_refused(token: str, caplog: pytest.LogCaptureFixture) -> None:
    assert "it is not" in await refusal(token, caplog)


async def test_a_token_has_a_longest_length(caplog: pytest.LogCaptureFixture) -> None:
    reason = f"it is not ASCII, or has more than {MOST_CHARACTERS} characters"
    assert await refusal(signed(pad="x" * MOST_CHARACTERS), caplog) == reason


@pytest.mark.parametrize("payload", [b"[]", b"7", b'"exp"', b"{", b"\xff", b"[" * 9000, b""])
async def test_signed_claims_that_are_not_an_object_are_refused(
    payload: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    from joserfc import jws

    token = jws.serialize_compact({"alg": "ES256", "kid": "k1"}, payload, ALICE.key)
    assert await refusal(token, caplog) in ("its claims are not an object", "its claims are not valid JSON")


@given(st.text(alphabet=st.characters(max_codepoint=0x17F), max_size=200))
@example("eyJhbGciOiJub25lIn0.e30.")
async def test_no_text_crashes_the_verifier(token: str) -> None:
    assert await VERIFIER.verify_token(token) is None


_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("alg", "kid", "typ", "crit", "b64", "jwk", "zip"), _JSON)))
async def test_no_header_crashes_the_verifier(header: dict[str, Any]) -> None:
    assert await VERIFIER.verify_token(forged({"alg": "ES256", "kid": "k1", **header}, CLAIMS, b"x" * 64)) is None


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("sub", "scope", "scp", "azp", "nbf", "iat", "jti"), _JSON)))
async def test_no_signed_claims_crash_the_verifier(claims: dict[str, Any]) -> None:
    found = await VERIFIER.verify_token(signed(**{"subject": claims.pop("sub", "alice"), **claims}))
    assert found is None or all(isinstance(name, str) for name in found.scopes)


async def test_neither_tokens_nor_claims_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    token = signed("alice-the-subject", "scope-of-alice", iss="https://evil.example.com", email="alice@example.com")
    await refusal(token, caplog)
    await refusal(forged({"alg": "leaky-alg", "kid": "leaky-kid"}, CLAIMS), caplog)
    await refusal(ALICE.token(header={"kid": "leaky-kid"}), caplog)
    for word in (*token.split("."), "alice", "evil", "scope-of", "leaky"):
        assert word not in caplog.text


# Configuration


@pytest.mark.parametrize("algorithms", [["none"], ["HS256"], ["RS256", "HS256"], [], "RS256", ["ES256K"]])
def test_with_public_keys_only_their_algorithms_are_accepted(algorithms: Any) -> None:
    with pytest.raises(ValueError, match="with public keys, algorithms must be a list of some of these: RS256, "):
        JWTVerifier(settings(), ALICE.jwks, algorithms=algorithms)


@pytest.mark.parametrize("algorithms", [None, ["none"], ["RS256"], ["RS256", "HS256"]])
def test_with_a_secret_its_algorithm_must_be_named(algorithms: Any) -> None:
    with pytest.raises(
        ValueError, match="with a secret, algorithms must be a list of some of these: HS256, HS384, HS512"
    ):
        JWTVerifier(settings(), secret=SECRET, algorithms=algorithms)


def test_a_secret_must_be_long() -> None:
    with pytest.raises(ValueError, match="the secret needs at least 32 bytes") as caught:
        JWTVerifier(settings(), secret=b"short-secret", algorithms=["HS256"])
    assert "short-secret" not in str(caught.value)


@pytest.mark.parametrize("given", [{}, {"keys": ALICE.jwks, "secret": SECRET, "algorithms": ["HS256"]}])
def test_keys_or_a_secret_must_be_given(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="pass the issuer's keys or its secret, not both"):
        JWTVerifier(settings(), **given)


def test_an_audience_must_not_be_empty() -> None:
    with pytest.raises(ValueError, match="audience must not be empty"):
        JWTVerifier(settings(), ALICE.jwks, audience=[])


async def test_a_deprecated_algorithm_is_accepted_if_it_is_named() -> None:
    issuer = Issuer("k1", OKPKey.generate_key("Ed25519"), "EdDSA")
    verifier = JWTVerifier(settings(), issuer.jwks, algorithms=["EdDSA"])
    with pytest.warns(Warning, match="EdDSA is deprecated"):
        token = issuer.token()
    with pytest.warns(Warning, match="EdDSA is deprecated"):
        assert await verifier.verify_token(token) is not None


def test_without_joserfc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        return None

    monkeypatch.setattr("importlib.util.find_spec", nothing)
    with pytest.raises(MissingExtra, match=r"JWTVerifier needs joserfc: pip install 'bespeak\[auth\]'"):
        JWTVerifier(settings(), ALICE.jwks)
