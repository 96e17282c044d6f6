"""URI templates, read the other way round: which variables a URI stands for."""

import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bespeak.protocol.uri_templates import Expression, InvalidUriTemplate, UriTemplate


def match(template: str, uri: str) -> dict[str, str] | None:
    return UriTemplate.parse(template).match(uri)


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [
        ("orders://today", "orders://today", {}),
        ("orders://today", "orders://today/", None),
        ("orders://{number}", "orders://7", {"number": "7"}),
        ("orders://{number}", "orders://", None),
        ("orders://{number}", "orders://7/8", None),
        ("orders://{number}", "orders://7?x=1", None),
        ("orders://{number}", "orders://7#x", None),
        ("orders://{number}", "ORDERS://7", None),
        ("orders://{number}", "orders://a%20b%2Fc", {"number": "a b/c"}),
        ("orders://{number}", "orders://%E2%82%AC", {"number": "\N{EURO SIGN}"}),
        ("orders://{number}", "orders://\N{EURO SIGN}", {"number": "\N{EURO SIGN}"}),
        ("orders://{number}", "orders://%ff", None),
        ("orders://{number}", "orders://%zz", {"number": "%zz"}),
        ("orders://{year}/{month}", "orders://2026/07", {"year": "2026", "month": "07"}),
        ("orders://{year}-{month}", "orders://2026-07-28", {"year": "2026", "month": "07-28"}),
        ("orders://{year}-{month}", "orders://2026", None),
        ("orders://{year,month}", "orders://2026,07", {"year": "2026", "month": "07"}),
        ("orders://{year,month}", "orders://2026", None),
        ("orders://{year,month}", "orders://2026,", None),
        ("orders://{list*}", "orders://a,b", {"list": "a,b"}),
        ("orders://{list*}", "orders://a/b", None),
        ("notes://{name}.txt", "notes://a.txt.txt", {"name": "a.txt"}),
        ("notes://{name}.txt", "notes://a.md", None),
        ("notes://{name}.txt", "notes://.txt", None),
        ("notes://{name}{.ext}", "notes://a.md", {"name": "a", "ext": "md"}),
        ("notes://{name}{.ext}", "notes://a", None),
        ("notes://{name}{.kind,ext}", "notes://a.tar.gz", {"name": "a", "kind": "tar", "ext": "gz"}),
        ("file:///{+path}", "file:///a/b.txt", {"path": "a/b.txt"}),
        ("file:///{+path}", "file:///a?b#c", {"path": "a?b#c"}),
        ("file:///{+path}/raw", "file:///a/b/raw", {"path": "a/b"}),
        ("file:///{+path}/raw", "file:///a/raw/b/raw", {"path": "a/raw/b"}),
        ("file:///{+path}/raw/{name}", "file:///a/raw/b", {"path": "a", "name": "b"}),
        ("file:///{+path}{.ext}", "file:///v1.2/a.md", {"path": "v1.2/a", "ext": "md"}),
        ("file:///{+path}{#part}", "file:///a/b#c", {"path": "a/b", "part": "c"}),
        ("file:///{+a,b}", "file:///x,y/z", {"a": "x", "b": "y/z"}),
        ("file://{/path*}", "file:///a/b", {"path": "a/b"}),
        ("file://{/path*}", "file://a/b", None),
        ("file://{/path*}", "file:///a?b", None),
        ("file://{/path*}{/name}", "file:///a/b/c", {"path": "a/b", "name": "c"}),
        ("file://{/path*}{.ext}", "file:///v1.2/a.md", {"path": "v1.2/a", "ext": "md"}),
        ("file://{/folder,name}", "file:///a/b", {"folder": "a", "name": "b"}),
        ("file://{/folder,name}", "file:///a/b/c", None),
        ("file://{/folder}{/name}", "file:///a/b", {"folder": "a", "name": "b"}),
        ("file://{/folder}{/name}", "file:///a", None),
        ("page:{#part}", "page:#a/b", {"part": "a/b"}),
        ("page:{#part}", "page:a", None),
        ("books://search{?q,page}", "books://search", {}),
        ("books://search{?q,page}", "books://search?q=dune&page=2", {"q": "dune", "page": "2"}),
        ("books://search{?q,page}", "books://search?page=2&q=dune", {"q": "dune", "page": "2"}),
        ("books://search{?q,page}", "books://search?page=2&other=3", {"page": "2"}),
        ("books://search{?q,page}", "books://search?q=a%26b", {"q": "a&b"}),
        ("books://search{?q,page}", "books://search?q=", {"q": ""}),
        ("books://search{?q,page}", "books://search?q", {"q": ""}),
        ("books://search{?q,page}", "books://search?q=one&q=two", {"q": "one"}),
        ("books://search{?q,page}", "books://search?q=%ff", None),
        ("books://search{?q,page}", "books://search?q=what?", {"q": "what?"}),
        ("books://search{?q,page}", "books://search?q=a;b", {"q": "a;b"}),
        ("books://search{?q,page}", "books://other?q=dune", None),
        ("books://{shelf}{?q}", "books://a?q=dune", {"shelf": "a", "q": "dune"}),
        ("books://list?kind=new{&page}", "books://list?kind=new", {}),
        ("books://list?kind=new{&page}", "books://list?kind=new&page=2", {"page": "2"}),
        ("books://list?kind=new&sort=up{&page}", "books://list?kind=new&sort=up&page=2", {"page": "2"}),
        ("books://list?kind=new&sort=up{&page}", "books://list?kind=new&page=2", None),
        ("books://list{&page}", "books://list&page=2", {"page": "2"}),
        ("books://search{?q}{&page}", "books://search?q=a&page=2", {"q": "a", "page": "2"}),
        ("map://point{;x,y}", "map://point;x=1;y=2", {"x": "1", "y": "2"}),
        ("map://point{;x}{?zoom}", "map://point;x=1?zoom=3", {"x": "1", "zoom": "3"}),
        ("map://point{;x}", "map://point", {}),
    ],
)
def test_a_uri_stands_for_variables(template: str, uri: str, variables: dict[str, str] | None) -> None:
    assert match(template, uri) == variables


def test_variables_are_listed_in_order() -> None:
    template = UriTemplate.parse("books://{shelf}{/path*}{?q,page}")
    assert template.variables == ("shelf", "path", "q", "page")
    assert template.optional == {"q", "page"}


LIST = "is not a list of variables; write {name}, {+path}, {/path*} or {?a,b}"
FAR = "after a variable with '+' or '*' comes text, a query, or one last variable"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("orders", "'orders' does not begin with a scheme such as 'file:' or 'orders:'"),
        ("", "'' does not begin with a scheme such as 'file:' or 'orders:'"),
        ("{a}://b", "'{a}://b' does not begin with a scheme such as 'file:' or 'orders:'"),
        ("a:{b", "'a:{b' has a brace without its partner"),
        ("a:b}", "'a:b}' has a brace without its partner"),
        ("a:{b{c}}", "'a:{b{c}}' has a brace without its partner"),
        ("a:{}", "'a:{}': {} " + LIST),
        ("a:{+}", "'a:{+}': {+} " + LIST),
        ("a:{b:3}", "'a:{b:3}': {b:3} " + LIST),
        ("a:{b, c}", "'a:{b, c}': {b, c} " + LIST),
        ("a:{1b}", "'a:{1b}': {1b} " + LIST),
        ("a:{!b}", "'a:{!b}': {!b} " + LIST),
        ("a:{b}/{b}", "'a:{b}/{b}' names the variable 'b' twice"),
        ("a:{b,b}", "'a:{b,b}' names the variable 'b' twice"),
        ("a:{b}{c}", "'a:{b}{c}' has two variables with nothing between them"),
        ("a:{b}{+c}", "'a:{b}{+c}' has two variables with nothing between them"),
        ("a:{?b}c", "'a:{?b}c': a query such as {?a,b} must come last"),
        ("a:{?b}{/c}", "'a:{?b}{/c}': a query such as {?a,b} must come last"),
        (
            "a:?k=1{?b}",
            "'a:?k=1{?b}': the text before {?...} contains '?' already; continue a query with {&a,b}",
        ),
        ("a:b;c{;d}", "'a:b;c{;d}': the text before {;...} contains ';' already; continue a query with {&a,b}"),
        ("a:{?b}{;c}", "'a:{?b}{;c}': a query is written {;a}{?b}{&c}, in this order"),
        ("a:{?b}{?c}", "'a:{?b}{?c}': a query is written {;a}{?b}{&c}, in this order"),
        ("a:{b*,c}", "'a:{b*,c}': a variable with '*' must be the last of its expression"),
        ("a:{?b*}", "'a:{?b*}': a variable of a query cannot have a '*'"),
        ("a:{/b*}{/c,d}", "'a:{/b*}{/c,d}': " + FAR),
        ("a:{/b*}{/c*}", "'a:{/b*}{/c*}': " + FAR),
        ("a:{/b*}{/c}/d", "'a:{/b*}{/c}/d': " + FAR),
    ],
)
def test_a_template_that_cannot_be_read_is_refused(template: str, message: str) -> None:
    with pytest.raises(InvalidUriTemplate) as caught:
        UriTemplate.parse(template)
    assert str(caught.value) == message


def test_parameters_and_a_query_may_each_be_left_out() -> None:
    template = UriTemplate.parse("a:x{;p}{?q}{&r}")
    assert template.match("a:x?q=1&r=2") == {"q": "1", "r": "2"}
    assert template.match("a:x;p=3") == {"p": "3"}
    assert template.match("a:x;p=3?q=1") == {"p": "3", "q": "1"}
    assert template.match("a:x") == {}


# Properties

OPERATORS = ["", "+", "#", ".", "/", ";", "?", "&"]
HOSTILE = st.text(st.sampled_from("ab/?#&;,.=%{}+-:2f0\0\\\ud800\N{EURO SIGN}"), max_size=40)


@st.composite
def templates(draw: st.DrawFn) -> str:
    """Templates with braces, operators and literals in any order; most can be parsed."""
    written = "x:"
    for number in range(draw(st.integers(0, 4))):
        written += draw(st.sampled_from(["", "a", "/", "-", ".b", "?k=1", "&"]))
        operator = draw(st.sampled_from(OPERATORS))
        names = [f"v{number}{end}" for end in "ab"[: draw(st.integers(1, 2))]]
        written += f"{{{operator}{','.join(names)}{draw(st.sampled_from(['', '*']))}}}"
    return written + draw(st.sampled_from(["", "a", ".txt"]))


@given(templates(), HOSTILE)
def test_matching_never_raises_and_gives_only_texts_of_its_variables(template: str, rest: str) -> None:
    try:
        parsed = UriTemplate.parse(template)
    except InvalidUriTemplate:
        return
    for uri in (f"x:{rest}", rest, template + rest, expanded(parsed, dict.fromkeys(parsed.variables, rest))):
        found = parsed.match(uri)
        if found is not None:
            assert found.keys() <= set(parsed.variables)
            assert set(parsed.variables) - parsed.optional <= found.keys()


@given(templates(), st.data())
def test_what_was_expanded_is_matched(template: str, data: st.DataObject) -> None:
    try:
        parsed = UriTemplate.parse(template)
    except InvalidUriTemplate:
        return
    # Letters and what is encoded: anything else may be what separates variables.
    plain = st.text(st.sampled_from("xyz \N{EURO SIGN}%"), min_size=1, max_size=5)
    values = {name: data.draw(plain) for name in parsed.variables}
    assert parsed.match(expanded(parsed, values)) == values


TEXT = st.text(st.characters(codec="utf-8"), min_size=1)


@given(TEXT, TEXT)
def test_any_text_is_a_value_of_a_plain_variable(first: str, second: str) -> None:
    parsed = UriTemplate.parse("x:{a}/{b}{?c}")
    values = {"a": first, "b": second, "c": first}
    assert parsed.match(expanded(parsed, values)) == values


def expanded(template: UriTemplate, values: dict[str, str]) -> str:
    """The URI of a template: RFC 6570 for variables that are texts."""
    return "".join(part if isinstance(part, str) else _expanded(part, values) for part in template.parts)


def _expanded(part: Expression, values: dict[str, str]) -> str:
    operator = part.operator
    safe = ":/?#[]@!$&'()*+,;=" if operator in ("+", "#") else ""
    encoded = [(one.name, quote(values[one.name], safe=safe, errors="ignore")) for one in part.variables]
    pieces = (
        [f"{name}={value}" for name, value in encoded] if operator and operator in ";?&" else [v for _, v in encoded]
    )
    separator = {"?": "&", "+": ",", "#": ",", "": ","}.get(operator, operator)
    return ("" if operator == "+" else operator) + separator.join(pieces)


# Time

LONG = 200_000


@pytest.mark.parametrize(
    "template",
    [
        "x:{a}-{b}-{c}-{d}-{e}!",
        "x:{+a}/-/{b}/-/{c}!",
        "x:{/a*}{.b}",
        "x:{/a*}/{b}!",
        "x:{a,b,c,d}",
        "x:{?a,b,c}",
        "x:?a&b{&c,d}",
        "x:{;a,b}{?c}",
    ],
)
@pytest.mark.parametrize("filler", ["-", "/", "/-", "&", ";a=", "?a=", "%41", "%", ".", ",", "a"])
def test_a_long_uri_takes_time_in_proportion(template: str, filler: str) -> None:
    # A second try anywhere would take minutes.
    uri = "x:" + filler * (LONG // len(filler))
    start = time.perf_counter()
    match(template, uri)
    assert time.perf_counter() - start < 5


def test_a_hostile_uri_of_many_pairs_is_read_at_once() -> None:
    found: Any = match("x:{?a}", "x:?" + "a=1&" * 50_000)
    assert found == {"a": "1"}
