"""What a shared store contains can be read by whoever reads its file: secrets are sealed, and keys are not in it (section 7)."""

from pathlib import Path
from typing import Annotated, Any

import pytest

from bespeak import Client, Elicit, MCPServer, RequestStateSecurity, Resolve
from bespeak.server.auth import AccessToken, AuthSettings
from tests.rules.raw_calls import accept, nobody, said, send
from tests.transports.http.legacy.older_client import Older, Served, call, request, served

KEY = "this is the state key of two workers"
NAME, ANSWER, RESULT, PERSON, TOKEN = (
    "Corner shop",
    "thought-better-of-it",
    "sent-to-Elm-Street",
    "ana-lovelace",
    "token-of-ana",
)
URI, RESOURCE = "shop://orders/of-ana", "http://127.0.0.1/mcp"


class Everybody:
    """Accepts one token."""

    async def verify_token(self, token: str) -> AccessToken | None:
        assert token == TOKEN
        return AccessToken(token=token, client_id="app", scopes=[], subject=PERSON, resource=RESOURCE)


def shop(folder: Path, **options: Any) -> MCPServer[Any]:
    security = RequestStateSecurity(keys=[KEY])
    mcp = MCPServer[Any](NAME, store=f"sqlite:{folder / 'shop.db'}", request_state_security=security, **options)

    async def why() -> Elicit[str]:
        return Elicit("Why?", str)

    @mcp.tool()
    async def refund(reason: Annotated[str, Resolve(why, key="why")]) -> str:
        return RESULT if reason == ANSWER else "wrong"

    @mcp.resource(URI)
    async def orders() -> str:
        return "none"

    return mcp


def content(folder: Path) -> bytes:
    """Return all that is in the files of the store, what was deleted included."""
    files = list(folder.glob("shop.db*"))
    assert len(files) == 3, "the file, its write-ahead log, and the index of that"
    found = b"".join(file.read_bytes() for file in files)
    assert b"b1." in found, "something is sealed"
    return found


async def test_results_and_answers_of_a_modern_call_are_not_readable(tmp_path: Path) -> None:
    async with Client(shop(tmp_path), elicitation_callback=nobody) as client:
        asked = await send(client, "refund")
        assert said(await send(client, "refund", {"why": accept(value=ANSWER)}, asked["requestState"])) == RESULT
        found = content(tmp_path)
    assert NAME.encode() in found, "the name of the server is"
    for secret in (KEY, ANSWER, RESULT, asked["requestState"], "Why?"):
        assert secret.encode() not in found


@pytest.mark.timing
async def test_sessions_and_mail_of_older_clients_are_not_readable(tmp_path: Path) -> None:
    auth = AuthSettings(issuer_url="https://auth.example.com", resource_server_url=RESOURCE)
    options: dict[str, Any] = {"auth": auth, "token_verifier": Everybody()}
    async with (
        served(shop(tmp_path, **options)) as one,
        served(shop(tmp_path, **options)) as other,
    ):
        client = Ana(one.port)
        await client.initialize("2025-11-25")
        assert (await client.post(request("resources/subscribe", {"uri": URI}))).status == 200
        async with client.open(call("refund")) as stream:
            question = await client.asked(stream)
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": accept(value=ANSWER)}
            assert (await at(client, other).post(answer)).status == 202
            assert (await stream.message())["result"]["content"][0]["text"] == RESULT
        found = content(tmp_path)
    assert NAME.encode() in found
    for secret in (KEY, ANSWER, RESULT, PERSON, TOKEN, URI, "an older client", client.session or "", "elicitation"):
        assert secret.encode() not in found


class Ana(Older):
    """A client that sends an access token."""

    def headers(self, **changed: str | None) -> dict[str, str]:
        return super().headers(**{"authorization": f"Bearer {TOKEN}", **changed})


def at(client: Older, worker: Served) -> Older:
    """Return the same client, whose requests reach another worker."""
    return Ana(worker.port, client.version, client.session)
