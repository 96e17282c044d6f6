"""Mistakes that are found when a file is loaded and its functions are registered, by their headings in docs/reference/errors.md."""

from tests.mistakes.mistake import Mistake, called, checked

MISTAKES: dict[str, Mistake] = {
    "`Resolve` as the annotation, or as the default": checked(
        "@mcp.tool()\ndef order_book(title: str, copies: Resolve(copies_left)) -> str: ...\n"
    ),
    "`Resolve` without the function": checked(
        "@mcp.tool()\ndef order_book(title: str, copies: Annotated[int, Resolve]) -> str: ...\n"
    ),
    "The function without `Resolve`": checked(
        "@mcp.tool()\ndef order_book(title: str, copies: Annotated[int, copies_left]) -> str: ...\n"
    ),
    "The marker of another framework, or a function as the default": checked(
        "@mcp.tool()\ndef order_book(title: str, copies: int = copies_left) -> str: ...\n"
    ),
    "`Resolve` with a call": checked(
        "def price() -> int:\n    return 20\n"
        "@mcp.tool()\ndef order_book(title: str, price: Annotated[int, Resolve(price())]) -> str: ...\n"
    ),
    "`Resolve` with a call that lacks arguments": checked(
        "@mcp.tool()\ndef order_book(title: str, sure: Annotated[bool, Resolve(confirm())]) -> str: ...\n"
    ),
    "A parameter of a resolver that nothing fills": checked(
        "def shipping(titel: str) -> int: ...\n"
        "@mcp.tool()\ndef order_book(title: str, cost: Annotated[int, Resolve(shipping)]) -> str: ...\n"
    ),
    "A context without its annotation": checked(
        "def shipping(title: str, ctx) -> int: ...\n"
        "@mcp.tool()\ndef order_book(title: str, cost: Annotated[int, Resolve(shipping)]) -> str: ...\n"
        "@mcp.tool()\ndef count_books(ctx) -> int: ...\n"
    ),
    "A resolver and a parameter of different types": checked(
        "@mcp.tool()\ndef order_book(title: str, copies: Annotated[str, Resolve(copies_left)]) -> str: ...\n"
    ),
    "An outcome without `Resolve`": checked(
        "@mcp.tool()\ndef order_book(title: str, sure: ElicitationResult[bool]) -> str: ...\n"
    ),
    "A parameter that a resolver fills elsewhere": checked(
        "@mcp.tool()\ndef count_copies(title: str, copies: Annotated[int, Resolve(copies_left)]) -> str: ...\n"
        "@mcp.tool()\ndef sell_book(title: str, copies: int) -> str: ...\n"
    ),
    "A resolver that nothing uses": checked("@mcp.tool()\nasync def order_book(title: str, sure: bool) -> str: ...\n"),
    "A tool that returns a question": checked("@mcp.tool()\ndef order_book(title: str) -> str | Elicit[bool]: ...\n"),
    "A form that is not flat": checked(
        "class Order(BaseModel):\n    stock: Stock\n"
        "def ask() -> Elicit[Order]: ...\n"
        "@mcp.tool()\ndef order_book(order: Annotated[Order, Resolve(ask)]) -> str: ...\n"
    ),
    "A default that means yes": checked(
        "class Consent(BaseModel):\n    confirm: bool = True\n"
        "def ask() -> Elicit[Consent]: ...\n"
        "@mcp.tool()\ndef order_book(consent: Annotated[Consent, Resolve(ask)]) -> str: ...\n"
    ),
    "Two questions in one resolver": checked(
        "def ask() -> Elicit[bool] | Elicit[str]: ...\n"
        "@mcp.tool()\ndef order_book(answer: Annotated[object, Resolve(ask)]) -> str: ...\n"
    ),
    "A guard that asks": checked(
        "@mcp.tool()\ndef order_book(title: str, sure: Annotated[bool, Resolve(confirm, guard=True)]) -> str: ...\n"
    ),
    "`once=True` on a resolver that asks": checked(
        "@mcp.tool()\ndef order_book(title: str, sure: Annotated[bool, Resolve(confirm, once=True)]) -> str: ...\n"
    ),
    "Different options for one resolver": checked(
        "def price(copies: Annotated[int, Resolve(copies_left, once=True)]) -> int: ...\n"
        "@mcp.tool()\ndef order_book(\n"
        "    title: str, copies: Annotated[int, Resolve(copies_left)], price: Annotated[int, Resolve(price)]\n) -> str: ...\n"
    ),
    "Resolvers in a circle": checked(
        "class Circle:\n"
        "    def __call__(self, other: 'Annotated[int, Resolve(circle)]') -> int: ...\n"
        "circle = Circle()\n"
        "@mcp.tool()\ndef order_book(copies: Annotated[int, Resolve(circle)]) -> str: ...\n"
    ),
    "`*args` and `**kwargs`": checked(
        "def logged(fn):\n    def inner(**kwargs):\n        return fn(**kwargs)\n    return inner\n"
        "@mcp.tool()\n@logged\ndef order_book(title: str) -> str: ...\n"
    ),
    "A method": checked("class Desk:\n    @mcp.tool()\n    def order_book(self, title: str) -> str: ...\n"),
    "A call instead of a function": checked("def order_book() -> str:\n    return ''\nmcp.add_tool(order_book())\n"),
    "A type that is imported for type checkers only": checked(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from decimal import Decimal\n"
        "@mcp.tool()\ndef order_book(title: str, price: 'Decimal') -> str: ...\n"
    ),
    "A type variable of a generic class": checked(
        "import typing\nT = typing.TypeVar('T')\nclass Desk(typing.Generic[T]):\n"
        "    def order_book(self, title: str, copies: T): ...\n"
        "mcp.add_tool(Desk().order_book)\n"
    ),
    "A type that JSON cannot represent": checked(
        "class Book: ...\n@mcp.tool()\ndef order_book(book: Book) -> str: ...\n"
    ),
    "Two tools of one name": checked(
        "@mcp.tool()\ndef order_book(title: str) -> str: ...\n@mcp.tool()\ndef order_book(isbn: int) -> str: ...\n"
    ),
    "A URI whose variables are not the parameters": checked(
        "@mcp.resource('stock://{titel}')\ndef stock(title: str) -> str: ...\n"
    ),
    "A URI without a scheme": checked("@mcp.resource('stock')\ndef stock() -> str: ...\n"),
    "`@mcp.resource` without a URI": checked("@mcp.resource\ndef stock() -> str: ...\n"),
    "A name that `bespeak` does not have": checked("from bespeak import FastMCP\n"),
    "A wire type": checked("from bespeak import TextContent\n"),
    "A module that is not there": checked("import reqeusts\n"),
    "A file without a server": Mistake("def make():\n    ...\n", ("check", "server.py")),
    "A server that runs while the file is loaded": checked("mcp.run()\n"),
    "A program that runs while the file is loaded": called("async def main() -> None: ...\nasyncio.run(main())\n"),
}
