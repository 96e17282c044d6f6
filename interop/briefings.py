"""The briefing as a client must find it: a prompt and a resource template that ask two questions by hand.

Knows no SDK, like `checks`.
"""

from mcp_types import ElicitResult

from interop.checks import Connect, Expected, Person, at_revision, equal
from interop.trips import text_of

AUDIENCE = ("audience", "Who is the briefing for?")
TONE = ("tone", "Which tone do pilots like?")
ANSWERS = {
    "audience": ElicitResult(action="accept", content={"audience": "pilots"}),
    "tone": ElicitResult(action="accept", content={"tone": "calm"}),
}


async def check(connect: Connect, refusal: type[Exception], expected: Expected) -> None:
    """Go through all of it, saying what held. Raises `AssertionError` at the first thing that does not."""
    person = Person(**ANSWERS)
    async with at_revision(connect, expected.revision)(person) as desk:
        prompt = await desk.get_prompt("briefing", {"topic": "fog"})
        equal(text_of(prompt), "Write a calm briefing on fog for pilots.")
        equal(person.asked, [AUDIENCE, TONE])
        print("two questions of a prompt", flush=True)
        resource = await desk.read_resource("briefing://fog")
        equal(text_of(resource), "The calm briefing on fog for pilots.")
        equal(person.asked, [AUDIENCE, TONE] * 2)
        print("two questions of a template", flush=True)
