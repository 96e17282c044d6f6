"""Mistakes in programs that use a client, by their headings in docs/reference/errors.md."""

from tests.mistakes.mistake import Mistake, client, program

_DUNE = "{'title': 'Dune'}"


def _answering(answer: str) -> Mistake:
    """A client whose callback returns something."""
    return client(
        f"await client.call_tool('order_book', {_DUNE})",
        connected=f"mcp, elicitation_callback=lambda context, params: {answer}",
    )


MISTAKES: dict[str, Mistake] = {
    "A client without `async with`": program("asyncio.run(Client(mcp).call_tool('order_book'))\n"),
    "A client without a callback": client(f"await client.call_tool('order_book', {_DUNE})"),
    "A callback that returns a dict, or nothing": _answering("{'value': True}"),
    "A callback that fills in other fields": _answering("ElicitResult(action='accept', content={'sure': True})"),
    "A callback that accepts without content": _answering("ElicitResult(action='accept')"),
    "A callback that raises": _answering("{}['person']"),
    "A tool that does not exist": client(f"await client.call_tool('order_bok', {_DUNE})"),
    "Arguments that are not a dict": client("await client.call_tool('count_copies', 'Dune')"),
    "An argument that JSON cannot carry": client("await client.call_tool('count_copies', {'title': {'Dune'}})"),
    "A file instead of a server": program("Client('server.py')\n"),
    "A URL that is not one": program("Client('127.0.0.1:8000/mcp')\n"),
    "A list instead of a command": program("Client(['python', 'server.py'])\n"),
    "`call_tool` of a server, and the tool asks": program(f"asyncio.run(mcp.call_tool('order_book', {_DUNE}))\n"),
}
