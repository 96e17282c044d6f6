"""The page in headless Chromium: the refund desk clicked through in both eras, every kind of field, and hostile text.

With BESPEAK_PICTURES=FOLDER the tests write the pictures that are shown in docs/how-to/dev.md.
"""

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.programs import end, free_port
from tests.dev.browser import Browser, browser, eventually, require_chromium

pytestmark = [pytest.mark.long, pytest.mark.timing]

ROOT = Path(__file__).parent.parent.parent
DESK = ROOT / "examples" / "refund_desk" / "server.py"
ASKING = Path(__file__).with_name("asking_shop.py")
NAMED = {"2026-07-28": "modern", "2025-11-25": "legacy"}
ERAS = pytest.mark.parametrize("era", ["2026-07-28", "2025-11-25"])


@pytest.fixture(scope="module")
def window() -> Generator[Browser]:
    require_chromium()
    with browser() as window:
        yield window


@contextmanager
def page_of(file: Path) -> Generator[str]:
    """Run `bespeak dev`, and return the URL of the page."""
    command = [sys.executable, "-m", "bespeak.cli", "dev", str(file), "--port", str(free_port())]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        page = next(line for line in process.stderr if " Page: " in line)
        yield page.split()[-1]
    finally:
        end(process)


@pytest.fixture(scope="module")
def shop_url() -> Generator[str]:
    require_chromium()
    with page_of(ASKING) as url:
        yield url


@pytest.fixture
def shop(window: Browser, shop_url: str) -> Generator[Browser]:
    window.open(shop_url)
    window.find("nav button")
    yield window
    assert window.errors() == []
    window.open("about:blank")


def select(window: Browser, name: str) -> None:
    """Select something in the list by its name."""
    window.find("nav button")
    found = window.run(
        "const one = [...document.querySelectorAll('nav button')].find((one) => one.firstChild.textContent === arguments[0]);"
        "one?.click(); return Boolean(one)",
        name,
    )
    assert found, name


def choose_era(window: Browser, era: str) -> None:
    """Choose the revision of the page's client, and wait until its lists are there."""
    window.choose("#era", era)
    window.find(f"#list[data-era='{era}']")


def fill(window: Browser, name: str, text: str, within: str = ".arguments") -> None:
    window.type(f"{within} [data-field='{name}'] :is(input, textarea)", text)


def say_yes(window: Browser, question: str) -> None:
    window.click(f"[data-question$='{question}'] [id^='yes']:not([id^='yes-no'])")


def answer(window: Browser, question: str, how: str) -> None:
    window.click(f"[data-question$='{question}'] [data-answer='{how}']")


def picture(window: Browser, name: str, css: str | None = None) -> None:
    folder = os.environ.get("BESPEAK_PICTURES")
    if folder:
        window.picture(Path(folder) / f"{name}.png", css)


# The refund desk


@ERAS
def test_the_refund_desk_is_clicked_through(window: Browser, era: str) -> None:
    with page_of(DESK) as url:
        window.open(url)
        choose_era(window, era)
        assert window.wait_for_text("#server-name", "Refund desk")
        assert "Refund an order, or one line of it." in window.text(".description")
        eventually(
            lambda: window.run("return document.querySelector('.graph img')?.naturalWidth > 100"),
            "the drawing of the graph",
        )
        assert window.texts("#list small") == ["Refund an order, or one line of it.", "may ask: at most 3 rounds"]
        picture(window, f"dev-list-{NAMED[era]}")
        fill(window, "order_id", "ORD-7002")
        fill(window, "reason", "changed my mind")
        window.click(".arguments .primary")
        assert "ORD-7002 has 2 lines" in window.text("[data-question$='refund_scope'] .message")
        say_yes(window, "refund_scope")
        picture(window, f"dev-question-{NAMED[era]}", ".round")
        answer(window, "refund_scope", "accept")
        say_yes(window, "ask_restock")
        answer(window, "ask_restock", "accept")
        assert '"cents": 5200' in window.wait_for_text(".result-text", "restocked")
        assert window.text(".state") == "The call is done."
        titles = window.texts(".timeline li:not(.handshake) .title")
        if era == "2026-07-28":
            assert titles[0] == "tools/call refund_order"
            assert titles[1] == "input required: 1 question"
            assert titles.count("tools/call refund_order, with answers") == 2
            assert "(sealed, " in "".join(window.texts(".timeline pre"))
        else:
            assert sum(title.startswith("elicitation/create") for title in titles) == 2
            assert "initialize" in window.texts(".timeline .handshake .title")
        assert titles[-1] == "result"
        window.click(".timeline li:nth-last-child(2) summary")
        picture(window, f"dev-timeline-{NAMED[era]}", ".wire")
        assert window.errors() == []


@ERAS
def test_the_scope_of_a_refund_can_be_declined(window: Browser, era: str) -> None:
    with page_of(DESK) as url:
        window.open(url)
        choose_era(window, era)
        fill(window, "order_id", "ORD-7002")
        fill(window, "reason", "changed my mind")
        window.click(".arguments .primary")
        answer(window, "refund_scope", "decline")
        assert "elicitation was decline" in window.wait_for_text(".result.failed .result-text", "elicitation")
        assert window.text(".state") == "The call failed."
        assert window.text(".question.over .outcome") == "declined"


# Fields and questions


def test_everything_that_the_server_has_is_in_the_list(shop: Browser) -> None:
    assert shop.texts("nav h2") == ["Tools", "Prompts", "Resources", "Resource templates"]
    names = shop.run("return [...document.querySelectorAll('nav button')].map((one) => one.firstChild.textContent)")
    assert names == [
        *("order", "pay", "praise", "index", "break_down", "letter"),
        *("shop://opening", "shop://book/{title}"),
    ]
    select(shop, "shop://opening")
    assert shop.text(".none") == "It has no arguments."
    shop.click(".arguments .primary")
    assert shop.wait_for_text(".result-text", "nine") == "nine to five"


@ERAS
def test_each_kind_of_field_has_its_control_with_defaults_and_bounds(shop: Browser, era: str) -> None:
    choose_era(shop, era)
    fill(shop, "title", "Dune")
    shop.click(".arguments .primary")
    wish = "[data-question$='wish']"
    shop.find(f"{wish} form")
    told = shop.run(
        "const field = (name) => document.querySelector(`[data-question$='wish'] [data-field='${name}']`);"
        "const input = (name) => field(name).querySelector('input, select');"
        "return {copies: [input('copies').type, input('copies').min, input('copies').max, input('copies').step],"
        " label: field('copies').querySelector('label').textContent, hint: field('copies').querySelector('small').textContent,"
        " cover: [...input('cover').options].map((one) => one.textContent), chosen: input('cover').selectedOptions[0].textContent,"
        " extras: [...field('extras').querySelectorAll('input')].map((one) => one.type),"
        " price: input('price').value, gift: [...field('gift').querySelectorAll('input')].map((one) => one.checked),"
        " email: input('email').maxLength}"
    )
    assert told == {
        "copies": ["number", "1", "5", "1"],
        "label": "How many copies? (required)",
        "hint": "at least 1, at most 5",
        "cover": ["Choose one", "hard", "soft"],
        "chosen": "soft",
        "extras": ["checkbox", "checkbox"],
        "price": "1.5",
        "gift": [False, True],
        "email": 40,
    }
    fill(shop, "copies", "9", wish)
    answer(shop, "wish", "accept")
    assert shop.run("return document.querySelector(arguments[0]).validity.rangeOverflow", f"{wish} input[type=number]")
    fill(shop, "copies", "3", wish)
    shop.choose(f"{wish} select", "0")
    shop.click(f"{wish} [data-field='extras'] span:last-child input")
    answer(shop, "wish", "accept")
    say_yes(shop, "sure")
    answer(shop, "sure", "accept")
    result = shop.wait_for_text(".result-text", "Dune")
    assert '"copies":3,"cover":"hard","extras":["wrap"],"price":1.5,"gift":false' in result


def test_the_questions_of_a_round_are_sent_together_and_an_answer_can_be_changed_before(shop: Browser) -> None:
    fill(shop, "title", "Dune")
    shop.click(".arguments .primary")
    answer(shop, "sure", "decline")
    assert shop.text("[data-question$='sure'] .outcome") == "declined"
    shop.click("[data-question$='sure'] .quiet")
    say_yes(shop, "sure")
    answer(shop, "sure", "accept")
    fill(shop, "copies", "1", "[data-question$='wish']")
    answer(shop, "wish", "accept")
    assert shop.wait_for_text(".result-text", "Dune").endswith("True")
    assert shop.count(".round") == 1


@ERAS
def test_a_web_address_is_shown_and_not_opened(shop: Browser, era: str) -> None:
    choose_era(shop, era)
    select(shop, "pay")
    fill(shop, "title", "Dune")
    shop.click(".arguments .primary")
    assert shop.text(".url code") == "https://pay.example.com/here"
    link = shop.run(
        "const link = document.querySelector('.url a'); return [link.textContent, link.href, link.target, link.rel]"
    )
    assert link == [
        "Open pay.example.com in a new tab",
        "https://pay.example.com/here",
        "_blank",
        "noopener noreferrer",
    ]
    answer(shop, "card", "cancel")
    assert "elicitation was cancel" in shop.wait_for_text(".result-text", "elicitation")


@ERAS
def test_a_model_s_reply_and_folders_are_typed(shop: Browser, era: str) -> None:
    choose_era(shop, era)
    select(shop, "praise")
    fill(shop, "title", "Dune")
    shop.click(".arguments .primary")
    assert "Praise Dune" in shop.text(".question details[open] pre")
    shop.type(".question textarea", "Sandy.")
    answer(shop, "blurb", "accept")
    assert "Sandy." in shop.wait_for_text(".result-text", "Sandy")
    select(shop, "index")
    shop.click(".arguments .primary")
    shop.type(".question textarea", "file:///a\nfile:///b")
    answer(shop, "folders", "accept")
    assert shop.wait_for_text(".result-text", "file:") == "file:///a, file:///b"


def test_an_answer_that_the_form_does_not_allow_is_explained(shop: Browser) -> None:
    select(shop, "index")
    shop.click(".arguments .primary")
    shop.type(".question textarea", "x")
    shop.run("document.querySelector('.question form').noValidate = true")
    answer(shop, "folders", "decline")
    assert "there is no answer that declines it" in shop.wait_for_text(".question .problem", "declines")
    shop.click(".call-head button")
    assert shop.wait_for_text(".state", "stopped") == "You stopped the call."


def test_arguments_can_be_written_as_json(shop: Browser) -> None:
    select(shop, "letter")
    fill(shop, "title", "Emma")
    shop.click(".arguments .quiet")
    assert (
        shop.run("return document.querySelector('.arguments .json:not([hidden])').value") == '{\n  "title": "Emma"\n}'
    )
    shop.type(".arguments textarea", "{")
    shop.click(".arguments .primary")
    assert "This is not valid JSON" in shop.text(".arguments .problem")
    shop.type(".arguments textarea", '{"title": "Dune"}')
    shop.click(".arguments .primary")
    say_yes(shop, "sure")
    answer(shop, "sure", "accept")
    assert shop.wait_for_text(".result-text", "Dear") == "Dear reader of Dune, True"


def test_a_template_gets_its_variables(shop: Browser) -> None:
    select(shop, "shop://book/{title}")
    fill(shop, "title", "War & Peace")
    shop.click(".arguments .primary")
    say_yes(shop, "sure")
    answer(shop, "sure", "accept")
    assert shop.wait_for_text(".result-text", "War") == "War & Peace True"
    assert "resources/read shop://book/War%20%26%20Peace" in shop.texts(".timeline .title")


def test_every_control_has_a_label(shop: Browser) -> None:
    fill(shop, "title", "Dune")
    shop.click(".arguments .primary")
    shop.find(".question")
    nameless = shop.run(
        "return [...document.querySelectorAll('input, select, textarea')].filter((one) => !one.labels.length"
        " && !one.getAttribute('aria-label') && !one.getAttribute('aria-labelledby')).map((one) => one.outerHTML)"
    )
    assert nameless == []
    assert shop.run("return document.activeElement.closest('.question') !== null"), "the first field has the focus"


def test_what_is_typed_stays_when_the_revision_is_changed(shop: Browser) -> None:
    fill(shop, "title", "Dune")
    choose_era(shop, "2025-11-25")
    assert shop.run("return document.querySelector('.arguments input').value") == "Dune"
    shop.click(".arguments .primary")
    assert shop.text(".call h3") == "Call at 2025-11-25"


# A hostile server

HOSTILE = r"""
from typing import Annotated
from pydantic import BaseModel, Field
from bespeak import Elicit, MCPServer, Resolve

EVIL = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'><b id='evil'>bold</b>"
mcp = MCPServer("shop " + EVIL)

class Form(BaseModel):
    evil: str = Field(title=EVIL, description=EVIL, default="</textarea>" + EVIL)

async def ask(text: str) -> Elicit[Form]:
    return Elicit(EVIL, Form)

async def tool(text: Annotated[str, Field(description=EVIL)], form: Annotated[Form, Resolve(ask)]) -> str:
    return EVIL + form.evil

mcp.tool(name="tool", title=EVIL, description=EVIL)(tool)

@mcp.prompt(name="prompt", title=EVIL, description=EVIL)
async def prompt() -> str:
    raise ValueError(EVIL)
"""


@ERAS
def test_text_of_the_server_stays_text(window: Browser, tmp_path: Path, era: str) -> None:
    file = tmp_path / "hostile_shop.py"
    file.write_text(HOSTILE)
    with page_of(file) as url:
        window.open(url)
        choose_era(window, era)
        select(window, "tool")
        evil = "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'><b id='evil'>bold</b>"
        assert window.text("#server-name") == f"shop {evil}"
        assert window.text(".description") == evil
        fill(window, "text", evil)
        window.click(".arguments .primary")
        assert window.text(".question .message") == evil
        answer(window, "ask", "accept")
        assert window.wait_for_text(".result-text", "pwned").startswith(evil)
        select(window, "prompt")
        window.click(".arguments .primary")
        window.find(".result.failed")
        assert window.run("return window.pwned") is None
        assert window.count("#evil") == 0
        assert window.count("img:not(.graph img)") == 0
        assert window.run("return document.scripts.length") == 1
        assert window.errors() == []


# The source changes


def test_a_broken_file_is_shown_on_the_page_and_goes_away_when_it_is_mended(window: Browser, tmp_path: Path) -> None:
    file = tmp_path / "mended_shop.py"
    source = "from bespeak import MCPServer\nmcp = MCPServer('NAME')\n@mcp.tool()\nasync def look() -> str:\n    return 'x'\n"
    file.write_text(source.replace("NAME", "first"))
    with page_of(file) as url:
        window.open(url)
        window.wait_for_text("#server-name", "first")
        file.write_text("def (")
        assert "mended_shop.py cannot be loaded: SyntaxError" in window.wait_for_text("#trouble", "SyntaxError")
        file.write_text(source.replace("NAME", "second"))
        window.wait_for_text("#server-name", "second")
        eventually(lambda: not window.run("return document.querySelector('#trouble').checkVisibility()"), "no trouble")
        assert window.text("#status").startswith("Reloaded at ")


def test_a_server_that_is_gone_is_said_to_be(window: Browser) -> None:
    with page_of(DESK) as url:
        window.open(url)
        window.find("nav button")
    assert "The server does not answer" in window.wait_for_text("#trouble", "does not answer")
    window.errors()


def test_it_is_readable_in_the_dark(window: Browser) -> None:
    with page_of(DESK) as url:
        window.prefer("dark")
        try:
            window.open(url)
            window.find(".graph img")
            ground, ink = window.run(
                "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
            )
            assert (ground, ink) == ("rgb(20, 23, 29)", "rgb(232, 235, 242)")
            picture(window, "dev-list-dark")
        finally:
            window.prefer("light")
