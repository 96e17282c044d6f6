"""Print every message of the package in one listing, so that somebody can read them in one go: `make messages`.

A message is a string that may reach a user: the text of an exception, a warning or a log line, help texts, reports, and docstrings
of public names. The listing leaves out too little rather than too much: every string literal with two or more words counts, except
docstrings of private names, and types.
"""

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "bespeak"
_TWO_WORDS = re.compile(r"\S\s+\S")
_LETTERS = re.compile(r"[A-Za-z]{2}")

Scope = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Message:
    """A string of the source, and the place where it begins."""

    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        first, *more = self.text.splitlines()
        return "\n".join([f"{self.file.as_posix()}:{self.line}: {first}", *(f"    {line}".rstrip() for line in more)])


def messages_of(file: Path) -> list[Message]:
    """Return the messages of a module, in the order of its lines."""
    tree = ast.parse(file.read_text())
    name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    found = {
        (node.lineno, node.col_offset): Message(name, node.lineno, inspect.cleandoc(text))
        for node, text in [*_docstrings(tree), *_literals(tree)]
        if _TWO_WORDS.search(text) and _LETTERS.search(text)
    }
    return [found[place] for place in sorted(found)]


def all_messages(source: Path = SOURCE) -> list[Message]:
    """Return the messages of all modules below a folder."""
    return [message for file in sorted(source.rglob("*.py")) for message in messages_of(file)]


def _docstrings(scope: Scope) -> Iterator[tuple[ast.expr, str]]:
    """Yield the docstrings of a public module, class or function, of its public members, and of its public variables."""
    for before, node in zip([None, *scope.body], scope.body, strict=False):
        if _is_text(node) and (before is None or _is_public_assignment(before)):
            yield node.value, _text_of(node.value)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and _is_public(node.name):
            inner = ast.Module(node.body[:1], []) if not isinstance(node, ast.ClassDef) else node
            yield from _docstrings(inner)


def _literals(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield the string literals below a node that are not docstrings."""
    if isinstance(node, ast.expr) and _is_string(node):
        yield node, _text_of(node)
        return
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "cast":
        yield from _literals(node.args[1])  # the first is a type
        return
    types = (getattr(node, "annotation", None), getattr(node, "returns", None))
    for child in ast.iter_child_nodes(node):
        if child in types:
            for call in ast.walk(child):
                if isinstance(call, ast.Call):  # Annotated[str, typer.Option(help=...)]
                    yield from _literals(call)
        elif not _is_text(child):
            yield from _literals(child)


def _is_text(node: ast.AST) -> TypeGuard[ast.Expr]:
    """Return whether a statement is nothing but a string, as docstrings are."""
    return isinstance(node, ast.Expr) and _is_string(node.value)


def _is_string(node: ast.expr) -> bool:
    """Return whether an expression is a string literal, an f-string, or several of them added up."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _is_string(node.left) or _is_string(node.right)
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _text_of(node: ast.expr) -> str:
    """Return the text of a string as a reader would see it, with `{...}` for what is filled in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text_of(value) for value in values)
        case ast.FormattedValue(value=value):
            return f"{{{ast.unparse(value)}}}"
        case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_string(node):
            return _text_of(left) + _text_of(right)
        case _:
            return f"{{{ast.unparse(node)}}}"


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _is_public_assignment(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(isinstance(target, ast.Name) and _is_public(target.id) for target in targets)


def main() -> None:
    for message in all_messages():
        print(message)


if __name__ == "__main__":
    main()
