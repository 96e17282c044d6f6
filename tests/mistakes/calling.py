"""Mistakes that are found when a tool is called, by their headings in docs/reference/errors.md."""

from tests.mistakes.mistake import Mistake, called

_ASKS = "@mcp.tool()\ndef order_book(title: str, sure: Annotated[object, Resolve(ask)]) -> str:\n    return 'ordered'\n"

MISTAKES: dict[str, Mistake] = {
    "A tool returns something else than it says": called(
        "@mcp.tool()\ndef order_book(title: str) -> int:\n    return 'seven'\n"
    ),
    "A tool returns a dict that does not fit its model": called(
        "@mcp.tool()\ndef order_book(title: str) -> Stock:\n    return {'title': title}\n"
    ),
    "A tool returns an object that is no text": called(
        "class Book: ...\n@mcp.tool()\ndef order_book(title: str):\n    return Book()\n"
    ),
    "A tool forgets `await`": called(
        "@mcp.tool()\nasync def order_book(title: str) -> int:\n    return copies_left(title)\n"
    ),
    "A tool returns a question": called(
        "@mcp.tool()\nasync def order_book(title: str):\n    return Elicit('Sure?', bool)\n"
    ),
    "A question in the body of a tool": called(
        "@mcp.tool()\ndef order_book(title: str) -> str:\n    return 'ordered' if Elicit('Sure?', bool) else 'not ordered'\n"
    ),
    "A tool raises": called("@mcp.tool()\ndef order_book(title: str) -> int:\n    return {}[title]\n"),
    "A resolver raises": called(
        "def price() -> int:\n    return {}['price']\n"
        "@mcp.tool()\ndef order_book(title: str, price: Annotated[int, Resolve(price)]) -> int: ...\n"
    ),
    "A resolver returns something else than it says": called(
        "def price() -> int:\n    return 'seven'\n"
        "@mcp.tool()\ndef order_book(title: str, price: Annotated[int, Resolve(price)]) -> int: ...\n"
    ),
    "A resolver returns the text of a question": called(
        "def ask():\n    return 'Sure?'\n"
        "@mcp.tool()\ndef order_book(title: str, sure: Annotated[bool, Resolve(ask)]) -> str: ...\n"
    ),
    "A resolver asks and does not say so": called(f"def ask() -> bool:\n    return Elicit('Sure?', bool)\n{_ASKS}"),
    "A resolver asks for something else than it says": called(
        f"class Sure(BaseModel):\n    sure: bool\ndef ask() -> Elicit[bool]:\n    return Elicit('Sure?', Sure)\n{_ASKS}"
    ),
    "`Elicit` without a schema": called(f"def ask() -> Elicit[bool]:\n    return Elicit('Sure?')\n{_ASKS}"),
    "`Elicit` with the schema first": called(f"def ask() -> Elicit[bool]:\n    return Elicit(bool, 'Sure?')\n{_ASKS}"),
    "`Sample` with a text": called(f"def ask() -> Sample:\n    return Sample('Why?', max_tokens=100)\n{_ASKS}"),
    "`ctx.elicit()` in a tool": called(
        "@mcp.tool()\nasync def order_book(title: str, ctx: Context) -> str:\n    await ctx.elicit('Sure?', Stock)\n"
    ),
    "A question that the person declines": called(
        f"def ask() -> Elicit[bool]:\n    return Elicit('Sure?', bool)\n{_ASKS}",
        "title=Dune",
        "--answer",
        "server:ask=decline",
    ),
    "A question that the person dismisses": called(
        f"def ask() -> Elicit[bool]:\n    return Elicit('Sure?', bool)\n{_ASKS}",
        "title=Dune",
        "--answer",
        "server:ask=cancel",
    ),
    "An argument that does not fit": called(
        "@mcp.tool()\ndef order_book(title: str, copies: int) -> str: ...\n", "title=Dune", "copies=many"
    ),
}
