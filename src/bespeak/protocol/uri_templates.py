"""URI templates (RFC 6570), read the other way round: which variables a URI stands for.

Matching takes time in proportion to the URI, whatever the template: a variable ends at the next occurrence of the literal that
follows it, and there is no second try. A template whose variables could not be told apart is refused when it is parsed.
"""

import re
from dataclasses import dataclass
from urllib.parse import unquote

_EXPRESSION = re.compile(r"\{([^{}]*)\}")
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\*?)")
_OPERATORS = "+#./;?&"
_NAMED = ";?&"
"""Operators whose expressions carry the names of their variables, so that their order does not matter."""
_LEADING = ("#", ".", "/")
"""Operators that stand before the first value."""
_SEPARATORS = {"": ",", "+": ",", "#": ",", ".": ".", "/": "/"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


class InvalidUriTemplate(ValueError):
    """A template that cannot be read, or whose URIs could not be told apart."""


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable of an expression."""

    name: str
    exploded: bool
    """`{/path*}`: it stands for any number of parts, and its value keeps the separators between them."""


@dataclass(frozen=True, slots=True)
class Expression:
    """What stands between braces."""

    operator: str
    variables: tuple[Variable, ...]

    @property
    def optional(self) -> bool:
        """Whether its variables may be left out."""
        return bool(self.operator) and self.operator in _NAMED

    @property
    def reaches_far(self) -> bool:
        """Whether its last variable may contain the characters that end other variables."""
        return self.operator == "+" or self.variables[-1].exploded


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """A parsed template."""

    template: str
    parts: tuple[str | Expression, ...]

    @classmethod
    def parse(cls, template: str) -> "UriTemplate":
        """Read a template. Raises `InvalidUriTemplate`."""
        if not _SCHEME.match(template):
            raise InvalidUriTemplate(f"{template!r} does not begin with a scheme such as 'file:' or 'orders:'")
        parts: list[str | Expression] = []
        end = 0
        for found in _EXPRESSION.finditer(template):
            _add_literal(parts, template, template[end : found.start()])
            parts.append(_expression(template, found[1]))
            end = found.end()
        _add_literal(parts, template, template[end:])
        _check(template, parts)
        return cls(template, tuple(parts))

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of its variables, in order."""
        return tuple(variable.name for one in self._expressions() for variable in one.variables)

    @property
    def optional(self) -> frozenset[str]:
        """The variables that a URI may leave out: those of a query."""
        return frozenset(v.name for one in self._expressions() if one.optional for v in one.variables)

    def _expressions(self) -> list[Expression]:
        return [part for part in self.parts if isinstance(part, Expression)]

    def match(self, uri: str) -> dict[str, str] | None:
        """Return the decoded variables of a URI; `None` if it does not fit the template."""
        first = self.parts[0]
        if isinstance(first, str) and not uri.startswith(first):
            return None  # at once: a server may have many templates, and looks at one after the other
        values: dict[str, str] = {}
        rest, parts = uri, list(self.parts)
        named = _take_named(parts)
        if named:
            rest, taken = _split_named(rest, named, parts)
            if taken is None:
                return None
            values |= taken
        while parts:
            part = parts.pop(0)
            if isinstance(part, str):
                if not rest.startswith(part):
                    return None
                rest = rest[len(part) :]
                continue
            raw, rest = _cut(rest, part, parts)
            taken = _read(part, raw)
            if taken is None:
                return None
            values |= taken
        return values if not rest else None


def _add_literal(parts: "list[str | Expression]", template: str, literal: str) -> None:
    if "{" in literal or "}" in literal:
        raise InvalidUriTemplate(f"{template!r} has a brace without its partner")
    if literal:
        parts.append(literal)


def _expression(template: str, inside: str) -> Expression:
    operator, names = (inside[0], inside[1:]) if inside[:1] and inside[0] in _OPERATORS else ("", inside)
    variables: list[Variable] = []
    for name in names.split(","):
        found = _VARIABLE.fullmatch(name)
        if found is None:
            raise InvalidUriTemplate(
                f"{template!r}: {{{inside}}} is not a list of variables; write {{name}}, {{+path}}, {{/path*}} or {{?a,b}}"
            )
        variables.append(Variable(found[1], bool(found[2])))
    return Expression(operator, tuple(variables))


def _check(template: str, parts: "list[str | Expression]") -> None:
    names: set[str] = set()
    before: str | Expression | None = None
    for index, part in enumerate(parts):
        if isinstance(part, Expression):
            for variable in part.variables:
                if variable.name in names:
                    raise InvalidUriTemplate(f"{template!r} names the variable {variable.name!r} twice")
                names.add(variable.name)
            if part.optional and any(not _is_named(later) for later in parts[index:]):
                raise InvalidUriTemplate(f"{template!r}: a query such as {{?a,b}} must come last")
            written = "".join(one for one in parts[:index] if isinstance(one, str))
            if part.operator in ("?", ";") and part.operator in written:
                raise InvalidUriTemplate(
                    f"{template!r}: the text before {{{part.operator}...}} contains {part.operator!r} already; "
                    "continue a query with {&a,b}"
                )
            if part.optional and before is not None and _is_named(before) and not _may_follow(before, part):
                raise InvalidUriTemplate(f"{template!r}: a query is written {{;a}}{{?b}}{{&c}}, in this order")
            if isinstance(before, Expression) and not part.operator.strip("+"):
                raise InvalidUriTemplate(f"{template!r} has two variables with nothing between them")
            if any(variable.exploded for variable in part.variables[:-1]):
                raise InvalidUriTemplate(f"{template!r}: a variable with '*' must be the last of its expression")
            if part.optional and part.variables[-1].exploded:
                raise InvalidUriTemplate(f"{template!r}: a variable of a query cannot have a '*'")
            if isinstance(before, Expression) and before.reaches_far and not part.optional:
                alone = len(part.variables) == 1 and not part.reaches_far
                if not alone or any(not _is_named(later) for later in parts[index + 1 :]):
                    raise InvalidUriTemplate(
                        f"{template!r}: after a variable with '+' or '*' comes text, a query, or one last variable"
                    )
        before = part


def _may_follow(before: "str | Expression", part: Expression) -> bool:
    """Return whether one named expression may follow another: those with `;` come first, then one with `?`, then `&`."""
    first = before.operator if isinstance(before, Expression) else ""
    return first + part.operator in (";;", ";?", "?&", "&&")


def _is_named(part: "str | Expression") -> bool:
    return isinstance(part, Expression) and part.optional


def _take_named(parts: "list[str | Expression]") -> list[Expression]:
    """Remove the expressions at the end that name their variables, and return them."""
    named = [part for part in parts if isinstance(part, Expression) and part.optional]
    del parts[len(parts) - len(named) :]
    return named


def _split_named(
    uri: str, named: list[Expression], before: "list[str | Expression]"
) -> tuple[str, dict[str, str] | None]:
    """Split a URI before its named variables, and read them. Names that the template does not have are ignored."""
    wanted = {variable.name for one in named for variable in one.variables}
    first = named[0].operator
    begins = [where for one in named if one.operator != "&" and (where := uri.find(one.operator)) >= 0]
    at = _continued_at(uri, before) if first == "&" else min(begins, default=-1)
    path, query = (uri, "") if at < 0 else (uri[:at], uri[at + 1 :])
    found: dict[str, str] = {}
    for pair in re.split("[;?&]", query) if first == ";" else query.split("&"):
        name, _, raw = pair.partition("=")
        if name not in wanted or name in found:
            continue
        value = _decoded(raw)
        if value is None:
            return path, None
        found[name] = value
    return path, found


def _continued_at(uri: str, before: "list[str | Expression]") -> int:
    """Where a query goes on that the template begins with text, such as "?kind=new&sort=up{&page}"."""
    written, mark, query = "".join(part for part in before if isinstance(part, str)).partition("?")
    at = uri.find("?") if mark else -1
    for _ in range((query if mark else written).count("&") + 1):
        at = uri.find("&", at + 1)
        if at < 0:
            break
    return at


def _cut(rest: str, part: Expression, after: "list[str | Expression]") -> tuple[str, str]:
    """Split what is left of a URI where an expression ends."""
    following = after[0] if after else None
    mark = following if isinstance(following, str) else following.operator if following is not None else ""
    if not mark:
        return rest, ""
    # A value is not empty, and what follows may look like the operator, or like what separates the variables.
    first = 2 if part.operator in _LEADING else 1
    for _ in part.variables[1:]:
        first = max(first, rest.find(_SEPARATORS[part.operator], first) + 2)
    if isinstance(following, Expression) and part.reaches_far:
        at = rest.rfind(mark, first)
    elif isinstance(following, str) and len(after) == 1 and rest.endswith(mark):
        at = len(rest) - len(mark)  # the last literal is matched at the end, so that "{name}.txt" takes "a.txt.txt"
    else:
        at = rest.find(mark, first)
    return (rest, "") if at < 0 else (rest[:at], rest[at:])


def _read(part: Expression, raw: str) -> dict[str, str] | None:
    """Return the variables of one expression; `None` if the text does not fit it."""
    if part.operator in _LEADING:
        if not raw.startswith(part.operator):
            return None
        raw = raw[1:]
    separator = _SEPARATORS[part.operator]
    last = part.variables[-1]
    pieces = raw.split(separator, len(part.variables) - 1) if len(part.variables) > 1 else [raw]
    if len(pieces) != len(part.variables):
        return None
    values: dict[str, str] = {}
    for variable, piece in zip(part.variables, pieces, strict=True):
        many = variable is last and variable.exploded
        if part.operator not in ("+", "#") and not _is_one(piece, separator, many=many):
            return None
        value = _decoded(piece)
        if value is None or not value:
            return None
        values[variable.name] = value
    return values


def _is_one(piece: str, separator: str, *, many: bool) -> bool:
    """Whether a piece can be the value of a variable that does not reach over parts of a URI."""
    stops = "?#" if many and separator == "/" else "/?#"
    return not any(stop in piece for stop in stops)


def _decoded(raw: str) -> str | None:
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return None
