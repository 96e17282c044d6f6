"""The screen of the prompt: what a person sees, and how it is wrapped.

The server's text is untrusted. It is shown to the right of a bar: cleaned, shortened and wrapped. Everything to the left of
the bar, and every line without a bar, is ours, so a server's text cannot imitate the prompt. Only a web address is not
wrapped, so that it can be copied: it is shown as ASCII without spaces.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from bespeak.terminal.form_fields import CHOICES, Field, as_typed
from bespeak.terminal.prompt_types import Asker, PromptQuestion
from bespeak.terminal.safe_text import LONG, SHORT, clean, columns, rows, text_at
from bespeak.terminal.web_addresses import Address

URL_CHARACTERS = 8_000
ROWS = 40
MESSAGES = 10
MARGIN = 9

Write = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Screen:
    """Shows questions, line by line."""

    write: Write

    def say(self, sentence: str) -> None:
        self.write(f"{sentence}\n")

    def show(self, label: str, text: str) -> None:
        """Show text of the server, to the right of the bar."""
        width = columns(sys.stderr) - MARGIN - 4
        lines = text[:LONG].splitlines() or [""]
        shown = [row for line in lines for row in rows(clean(line), width)]
        for number, row in enumerate(shown[:ROWS]):
            self.say(f"{'' if number else label:>{MARGIN}} | {row}")
        if len(text) > LONG or len(shown) > ROWS:
            self.say(f"{'':>{MARGIN}}   (cut: there are {len(text):,} characters)")

    def mention(self, label: str, name: str) -> None:
        """Show a name or a value of the server on one line."""
        self.show(label, clean(name, SHORT))

    def introduce(self, sentence: str, question: PromptQuestion, asker: Asker) -> None:
        self.say(f"\n{sentence}")
        for label, name in (("server", asker.server), ("tool", asker.tool)):
            if name:
                self.mention(label, name)
        for label, text in (("about", asker.description), ("progress", asker.progress)):
            if text:
                self.show(label, text)
        if question.message:
            self.show("message", question.message)
        self.mention("key", question.name)

    def show_field(self, field: Field, start: str) -> None:
        self.say(f"\n{field.wanted(start)}")
        self.show_about(field.name, field.shown)
        for number, choice in enumerate(field.choices.all[:CHOICES], 1):
            self.show(str(number) if field.choices.numbered else "value", str(choice))
        if (more := len(field.choices.all) - CHOICES) > 0:
            self.say(f"{'':>{MARGIN}}   (and {more:,} more; choose them by value)")
        if field.default is not None:
            self.mention("default", as_typed(field.default))

    def show_about(self, name: str, shown: Mapping[str, Any]) -> None:
        """Show what a schema says about a field."""
        self.mention("name", name)
        if title := text_at(shown.get("title")):
            self.mention("title", title)
        if description := text_at(shown.get("description")):
            self.show("about", description)

    def show_answer(self, values: Sequence[tuple[str, str]]) -> None:
        """Show once more what was typed: names and values."""
        self.say("\nYour answer:")
        for name, value in values:
            self.show("answer", f"{clean(name, SHORT)} = {clean(value)}" if name else value)

    def show_address(self, address: Address) -> None:
        self.say(f"{'url':>{MARGIN}} | {address.text[:URL_CHARACTERS]}")
        if len(address.text) > URL_CHARACTERS:
            self.say(f"{'':>{MARGIN}}   (cut: there are {len(address.text):,} characters)")
        if address.host:
            self.show("host", address.host)
        self.show_warnings(address)
        self.say("Bespeak does not open it for you.")

    def show_warnings(self, address: Address) -> None:
        for warning in address.warnings:
            self.say(f"Warning: {warning}.")

    def show_messages(self, params: Mapping[str, Any]) -> None:
        if system := text_at(params.get("systemPrompt")):
            self.show("system", system)
        found: Any = params.get("messages")
        messages = cast("list[Any]", found) if isinstance(found, list) else []
        if len(messages) > MESSAGES:
            self.say(f"{'':>{MARGIN}}   ({len(messages) - MESSAGES:,} earlier messages)")
        for message in messages[-MESSAGES:]:
            said = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
            role: Any = said.get("role")
            self.show(role if role in ("user", "assistant") else "message", _content(said.get("content")))


def to_stderr(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def _content(content: Any) -> str:
    """The text of a message for a model; for other content, its type."""
    if isinstance(content, str):
        return content
    blocks = cast("list[Any]", content) if isinstance(content, list) else [content]
    known = [cast("dict[str, Any]", block) if isinstance(block, dict) else {} for block in blocks]
    return "\n".join(text_at(block.get("text")) or f"({text_at(block.get('type')) or 'nothing'})" for block in known)
