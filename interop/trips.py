"""The trip desk as a client must find it: a prompt, a resource and a resource template that ask two questions each.

Knows no SDK, like `checks`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from mcp_types import ElicitResult, GetPromptResult, ReadResourceResult, TextContent, TextResourceContents

from interop.checks import DECLINE, Connect, Desk, Expected, Person, at_revision, equal, error_of, lacks_forms

CITY = ("city", "Which city do you visit?")
DISTRICT = ("district", "Which district of Lisbon?")
ANSWERS = {
    "city": ElicitResult(action="accept", content={"city": "Lisbon"}),
    "district": ElicitResult(action="accept", content={"district": "Alfama"}),
}
DECLINED = "could not resolve: elicitation was decline"

Result = GetPromptResult | ReadResourceResult


@dataclass(frozen=True, slots=True)
class Asking:
    """Something that asks twice, and the text that comes of it."""

    request: Callable[[Desk], Awaitable[Result]]
    text: str


ASKING = {
    "prompt": Asking(lambda desk: desk.get_prompt("plan", {"days": "3"}), "Plan 3 days in Alfama, Lisbon."),
    "resource": Asking(lambda desk: desk.read_resource("trip://today"), "Today: Alfama, Lisbon."),
    "template": Asking(lambda desk: desk.read_resource("trip://days/2"), "Day 2: Alfama, Lisbon."),
}


async def check(connect: Connect, refusal: type[Exception], expected: Expected) -> None:
    """Go through all of it, saying what held. Raises `AssertionError` at the first thing that does not."""
    connected = at_revision(connect, expected.revision)
    async with connected(None) as desk:
        (prompt,) = (await desk.list_prompts()).prompts
        equal([(one.name, one.required) for one in prompt.arguments or []], [("days", True)])
        equal([one.uri for one in (await desk.list_resources()).resources], ["trip://today"])
        templates = (await desk.list_resource_templates()).resource_templates
        equal([one.uri_template for one in templates], ["trip://days/{day}"])
    print("lists", flush=True)
    for what, asking in ASKING.items():
        person = Person(**ANSWERS)
        async with connected(person) as desk:
            equal(text_of(await asking.request(desk)), asking.text)
            equal(person.asked, [CITY, DISTRICT])
            # A result that needed answers is not cached: whoever asks again is asked again.
            equal(text_of(await asking.request(desk)), asking.text)
            equal(person.asked, [CITY, DISTRICT] * 2)
        print(f"two questions of a {what}", flush=True)
        for declined, asked in (("city", [CITY]), ("district", [CITY, DISTRICT])):
            person = Person(**{**ANSWERS, declined: DECLINE})
            async with connected(person) as desk:
                error = await error_of(asking.request(desk), refusal)
            assert error is not None, f"{what} was served though the {declined} was declined"
            assert DECLINED in error.message, error.message
            equal(person.asked, asked)
        print(f"{what} declined", flush=True)
        async with connected(None) as desk:
            lacks_forms(await error_of(asking.request(desk), refusal))
    print("capability missing", flush=True)


def text_of(result: Result) -> str:
    """The text of a result that has one."""
    if isinstance(result, GetPromptResult):
        (message,) = result.messages
        assert isinstance(message.content, TextContent), f"not a text: {message!r}"
        return message.content.text
    (contents,) = result.contents
    assert isinstance(contents, TextResourceContents), f"not a text: {contents!r}"
    return contents.text
