"""Web addresses at the prompt: testing.md section 4. The host is shown as what it is, and the URL can be copied."""

import pytest

from bespeak.terminal.prompt_types import Action, Reply
from tests.terminal.people import Person, page, screen


@pytest.mark.parametrize(
    ("url", "host", "warning"),
    [
        ("https://bank.example@evil.example/", "evil.example", "the part before the @ is not the host"),
        ("https://evil.example\\@bank.example/", "evil.example", None),
        ("https:evil.example", "evil.example", None),
        (" h\nttps:///EVIL.example", "evil.example", None),
        ("https://%65vil.example", "evil.example", None),
        ("https://ev\u00adil\u3002example", "evil.example", None),
        (
            "https://\u0430pple.com/",
            "xn--pple-43d.com",
            "the host is an international name and may look like another one",
        ),
        ("https://fa\u00df.example/", "xn--fa-hia.example", "the host is an international name"),
        ("https://xn--pple-43d.com/", "xn--pple-43d.com", "the host is an international name"),
        ("http://[::1]:80/", "[::1]", None),
        ("https://a.example\uff0fb.example/", "a.example/b.example", "the host name is not valid"),
        (f"https://{'bank.example.' * 99}evil.example/", ".evil.example", "the host name is not valid"),
        (
            f"https://{''.join(map(chr, range(0x4E00, 0x8000)))}.evil.example/",
            ".evil.example",
            "the host name is not valid",
        ),
        ("javascript:alert(1)", None, "this is not an http or https address"),
        ("", None, "this is not an http or https address"),
    ],
)
async def test_the_host_is_shown_as_what_it_is(url: str, host: str | None, warning: str | None) -> None:
    seen = await screen(page(url))
    rows = [line.partition(" | ")[2] for line in seen.partition("     host")[2].splitlines() if " | " in line]
    assert "".join(rows).endswith(host) if host else "host |" not in seen
    assert f"Warning: {warning}" in seen if warning else "Warning" not in seen


async def test_a_url_is_one_unbroken_line_of_ascii() -> None:
    seen = await screen(page(f"https://x.example/ \x1b[2J\u202e\u2028{'y' * 500}"))
    shown = f"https://x.example/%20%1B[2J%E2%80%AE%E2%80%A8{'y' * 500}"
    assert f"      url | {shown}\n" in seen


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "file:///etc/passwd", "", "https://a.example\uff0fb.example/", "https://@/", "data:,x"],
)
async def test_an_address_that_is_not_safe_to_open_can_only_be_declined_or_cancelled(url: str) -> None:
    person = Person("a", "accept", "d")
    assert await person.answer(page(url)) == Reply(Action.DECLINE)
    assert "This question can only be declined or cancelled: its address is not safe to open.\n" in person.seen
    assert "d = decline, c = cancel: It must be d or c.\n" in person.seen
