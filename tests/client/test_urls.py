"""Which URLs of a server's questions reach a callback, in both eras (protocol sections 7.1, 7.6 and 25.2)."""

from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, ElicitResult

from bespeak import Client
from bespeak.client import ClientRequestContext, InvalidServerResponse
from tests.answering import accept
from tests.client.older_server import OldServer, asking_tool
from tests.client.sample_questions import FORM, URL
from tests.client.scripted_transport import (
    COMPLETE,
    Fake,
    asking,
)

FAULTS = "the question 'q0' sends people to a URL that is not valid: "


CHARACTERS = f"{FAULTS}it contains characters that are not allowed in a URL"


HOST = f"{FAULTS}it has no valid host"


def page(url: str) -> dict[str, Any]:
    return {**URL, "params": {**URL["params"], "url": url}}


def told(scheme: str, allowed: str = "http, https") -> str:
    return (
        f"the question 'q0' sends people to a URL with the scheme {scheme!r}; this client allows {allowed}"
        " (elicitation_url_schemes)"
    )


class Opened:
    """A callback that opens every page, and remembers which."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    async def __call__(self, context: ClientRequestContext, params: Any) -> ElicitResult:
        self.urls.append(params.url if hasattr(params, "url") else params.message)
        return accept(sure=True)


REFUSED = {
    "javascript": ("javascript:alert(1)", told("javascript")),
    "data": ("data:text/html,<b>", CHARACTERS),
    "an app": ("ms-msdt:/id", told("ms-msdt")),
    "capitals": ("JavaScript://a.example/%0aalert(1)", told("javascript")),
    "no scheme": ("a.example/pay", f"{FAULTS}it has no scheme"),
    "empty": ("", f"{FAULTS}it has no scheme"),
    "no host": ("https:///pay", HOST),
    "no slashes": ("https:a.example", HOST),
    "only a user": ("https://bank.example@/pay", HOST),
    "a bad port": ("https://a.example:99999/", HOST),
    "a port of letters": ("https://a.example:x/", HOST),
    "half an address": ("https://[::1/", HOST),
    "a backslash": ("https://evil.example\\@bank.example/", CHARACTERS),
    "a space": ("https://a.example/ b", CHARACTERS),
    "a line break": ("https://a.example/\nbespeak: paid", CHARACTERS),
    "a tab": ("java\tscript:alert(1)", CHARACTERS),
    "an escape": ("https://a.example/\x1b[2J", CHARACTERS),
    "a bidi override": ("https://a.example/\u202egpj.exe", CHARACTERS),
    "a soft hyphen": ("https://a\u00ad.example/", CHARACTERS),
    "a quote": ('https://a.example/"onclick=', CHARACTERS),
}


@pytest.mark.parametrize(("url", "said"), REFUSED.values(), ids=REFUSED)
async def test_a_url_that_is_not_safe_to_open_ends_the_call_before_anybody_is_asked(url: str, said: str) -> None:
    opened = Opened()
    fake = Fake(asking({"form": FORM, "q0": page(url)}), COMPLETE)
    async with Client(fake, elicitation_callback=opened) as client:
        with pytest.raises(InvalidServerResponse) as caught:
            await client.call_tool("tool")
    assert (str(caught.value), opened.urls, len(fake.requests)) == (said, [], 1)


async def test_an_older_server_gets_an_error_for_such_a_url() -> None:
    url, said = REFUSED["javascript"]
    opened = Opened()
    server = OldServer(tool=asking_tool(page(url)))
    async with Client(server, elicitation_callback=opened) as client:
        with pytest.raises(InvalidServerResponse) as caught:
            await client.call_tool("tool")
    assert (str(caught.value), opened.urls) == (said, [])
    assert [reply["error"] for reply in server.replies] == [{"code": -32602, "message": said}]


ALLOWED = [
    "https://a.example/pay?t=x#y",
    "HTTPS://A.example",
    "http://[::1]:80/",
    "https://b\u00fccher.example/\u00e9",
    "https://bank.example@evil.example/",  # whoever asks for consent shows the host
    "https://a.example?x",
    "https://a.example:/",
]


async def test_an_ordinary_web_address_reaches_the_callback_unchanged() -> None:
    opened = Opened()
    questions = {str(number): page(url) for number, url in enumerate(ALLOWED)}
    async with Client(Fake(asking(questions), COMPLETE), elicitation_callback=opened) as client:
        await client.call_tool("tool")
    assert sorted(opened.urls) == sorted(ALLOWED)


async def test_the_allowed_schemes_can_be_others() -> None:
    opened = Opened()
    questions = {url: page(url) for url in ("myapp:pay/1", "MyApp://pay", "https://a.example/")}
    fake = Fake(asking(questions), COMPLETE, asking({"q0": page("http://a.example/")}))
    async with Client(fake, elicitation_callback=opened, elicitation_url_schemes=("https", "MYAPP")) as client:
        await client.call_tool("tool")
        assert sorted(opened.urls) == sorted(questions)
        with pytest.raises(InvalidServerResponse) as caught:
            await client.call_tool("tool")
    assert str(caught.value) == told("http", "https, myapp")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_that_allows_no_scheme_does_not_declare_url_questions(mode: str) -> None:
    server = OldServer(tool=asking_tool(page("https://a.example/"))) if mode == "legacy" else Fake(COMPLETE)
    async with Client(server, elicitation_callback=Opened(), elicitation_url_schemes=()) as client:
        if isinstance(server, Fake):
            await client.call_tool("tool")
            declared = server.params[0]["_meta"][CLIENT_CAPABILITIES_META_KEY]
        else:
            (handshake,) = server.told("initialize")
            declared = handshake["params"]["capabilities"]
    assert declared["elicitation"] == {"form": {}}


@pytest.mark.parametrize("schemes", ["https", ("https:",), ("",), (5,), ("ht tp",)])
def test_schemes_are_a_collection_of_names(schemes: Any) -> None:
    with pytest.raises(ValueError, match=r"elicitation_url_schemes must be a collection of URL schemes, such as"):
        Client(Fake(COMPLETE), elicitation_url_schemes=schemes)


async def test_a_long_scheme_is_cut_in_the_message() -> None:
    async with Client(
        Fake(asking({"q0": page(f"{'x' * 10_000}:y")}), COMPLETE), elicitation_callback=Opened()
    ) as client:
        with pytest.raises(InvalidServerResponse) as caught:
            await client.call_tool("tool")
    assert len(str(caught.value)) < 300
