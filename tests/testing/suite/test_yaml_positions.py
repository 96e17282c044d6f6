"""Suite files are YAML: only the core schema of 1.2 is read, every value knows its line, every fault is an error with one."""

import json
import sys
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bespeak.testing.suite.yaml_positions import DEEPEST, MOST_VALUES, YamlDocument, YamlError, read_yaml
from bespeak.transports.interfaces import MissingExtra

SUITE = """\
# A comment before everything
version: 1
servers:
  weather:
    command: [python, -m, weather_server]

tests:
  - name: asks
    arguments: { loc: SFO,
      units: C }
  -
    name: asks again
  - &third
    name: once more
  - *third
"""


def read(text: str) -> Any:
    return read_yaml(text).value


def fault(text: str) -> YamlError:
    with pytest.raises(YamlError) as caught:
        read_yaml(text)
    return caught.value


# Values


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("true", True),
        ("False", False),
        ("5", 5),
        ("-5", -5),
        ("+5", 5),
        ("012", 12),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        ("-1.5E-3", -0.0015),
        ("text", "text"),
        ('"5"', "5"),
        ("'true'", "true"),
        ('""', ""),
        ("|\n  5", "5"),
        (">\n  a\n  b", "a b"),
        ("${env:NAME}", "${env:NAME}"),
    ],
)
def test_a_scalar_is_read_by_the_core_schema(written: str, meant: Any) -> None:
    value = read(f"a: {written}")["a"]
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize(
    "written",
    [
        *("2025-11-25", "2025-11-25T10:00:00Z", "yes", "no", "on", "off", "y", "n", "1:30", "1_000", "0b11", "tRUE"),
        *("nULL", "1e", "e1", ".", "+", "0x", "0o8", "=", "<<", "1.2.3", "+0x1", "\u0661", "inf", "nan", "-.nan"),
    ],
)
def test_what_is_not_a_null_boolean_or_number_of_the_core_schema_stays_a_string(written: str) -> None:
    assert read(f"a: {written}") == {"a": written}


def test_maps_and_lists_are_plain_python() -> None:
    assert read("a:\n- b: [1, {c: d}]\n- []\n") == {"a": [{"b": [1, {"c": "d"}]}, []]}


@pytest.mark.parametrize(("text", "value"), [("5", 5), ("[1]", [1]), ("null", None), ("''", "")])
def test_a_document_need_not_be_a_map(text: str, value: Any) -> None:
    assert read(text) == value


def test_a_document_may_have_its_marks_and_a_byte_order_mark() -> None:
    assert read("\ufeff---\na: 1\n...\n# the end\n") == {"a": 1}


def test_two_escapes_that_are_one_character_are_that_character() -> None:
    assert read(r'"\ud83d\ude00"') == "\U0001f600"


def test_an_alias_repeats_the_value_of_its_anchor() -> None:
    assert read("a: &x {b: [1]}\nc: *x\nd: [*x]\n") == {"a": {"b": [1]}, "c": {"b": [1]}, "d": [{"b": [1]}]}


def test_what_an_alias_repeats_is_not_shared() -> None:
    value = read("a: &x [1]\nb: *x\n")
    value["a"].append(2)
    assert value["b"] == [1]


def test_an_alias_of_a_string_can_be_a_key() -> None:
    assert read("a: &x name\n*x : 1\n") == {"a": "name", "name": 1}


def test_a_key_that_only_looks_like_a_merge_is_a_key_when_it_is_quoted() -> None:
    assert read('"<<": {a: 1}') == {"<<": {"a": 1}}


# Lines


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ((), 2),
        (("version",), 2),
        (("servers",), 3),
        (("servers", "weather"), 4),
        (("servers", "weather", "command"), 5),
        (("servers", "weather", "command", 2), 5),
        (("tests",), 7),
        (("tests", 0), 8),
        (("tests", 0, "name"), 8),
        (("tests", 0, "arguments"), 9),
        (("tests", 0, "arguments", "loc"), 9),
        (("tests", 0, "arguments", "units"), 10),
        (("tests", 1), 12),
        (("tests", 2), 13),
        (("tests", 2, "name"), 14),
    ],
)
def test_a_member_is_on_the_line_of_its_key_and_an_entry_on_its_own(path: tuple[str | int, ...], line: int) -> None:
    assert read_yaml(SUITE).line(path) == line


def test_an_alias_is_where_it_stands_and_what_it_repeats_where_it_was_written() -> None:
    document = read_yaml(SUITE)
    assert document.line(("tests", 3)) == 15
    assert document.line(("tests", 3, "name")) == 14


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("nothing",), 2),
        (("servers", "other", "command"), 3),
        (("tests", 9), 7),
        (("tests", -1), 7),
        (("tests", "0"), 7),
        (("servers", 0), 3),
        (("version", "x"), 2),
    ],
)
def test_a_path_that_leads_nowhere_has_the_line_of_the_nearest_thing_around_it(
    path: tuple[str | int, ...], line: int
) -> None:
    assert read_yaml(SUITE).line(path) == line


def test_lines_are_counted_the_same_when_they_end_as_on_windows() -> None:
    document = read_yaml(SUITE.replace("\n", "\r\n"))
    assert document.line(("tests", 0, "arguments", "units")) == 10


def test_a_value_below_its_key_is_on_the_line_of_the_key() -> None:
    assert read_yaml("a: 1\nb:\n  >\n  long\n").line(("b",)) == 2


# Faults


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("a: 1\nb: c: d\n", 2, 5, 'mapping values are not allowed here (quote text that contains ": ")'),
        ("a:\n\t- x", 2, 1, "indent with spaces, not with tabs"),
        ("a: @x", 1, 4, "quote text that starts with it"),
        ("a: [1,\n 2", 2, 3, "while parsing a flow sequence from line 1: expected ',' or ']'"),
        ("a: 'x\n", 2, 1, "while scanning a quoted scalar from line 1"),
        ("a: 1\nb: \x07", 2, 4, "the character 0x0007 cannot be in a file; write it as an escape"),
        ("a: 1\nb: 2\na: 3", 3, 1, "the key 'a' is used twice, first on line 1"),
        ("b: 1\n1: 2", 2, 1, 'a key must be a string; quote it: "1"'),
        ("b: 1\ntrue: 2", 2, 1, 'a key must be a string; quote it: "true"'),
        ("b: 1\n~: 2", 2, 1, 'a key must be a string; quote it: "~"'),
        ("b: 1\n1.50: 2", 2, 1, 'a key must be a string; quote it: "1.50"'),
        ("b: &x 1\n*x : 2", 2, 1, 'a key must be a string; quote it: "1"'),
        ("b: 1\n? [a]\n: 2", 2, 3, "a key must be a string, not a list or a map"),
        ("b: 1\n? {a: 1}\n: 2", 2, 3, "a key must be a string, not a list or a map"),
        ("b: 1\na: !x 1", 2, 4, "tags are not supported; remove the tag"),
        ("b: 1\na: !!str 1", 2, 4, "quote the value if it is text"),
        ("b: 1\na: !!python/object/apply:os.system [x]", 2, 4, "tags are not supported"),
        ("b: 1\na: !<tag:yaml.org,2002:int> 1", 2, 4, "tags are not supported"),
        ("b: 1\na: ! 1", 2, 4, "tags are not supported"),
        ("b: 1\n!!str a: 1", 2, 1, "tags are not supported"),
        ("b: &x {a: 1}\nc:\n  <<: *x", 3, 3, "merge keys are not supported; write the keys out"),
        ("a: 1\n---\nb: 2", 2, 1, "the file has a second document; a suite file has one"),
        ("a: 1\n...\n---\n", 3, 1, "the file has a second document"),
        ("", 1, 1, "the file is empty"),
        ("# nothing\n\n", 1, 1, "the file is empty"),
        ("---\n", 2, 1, "the file is empty"),
        ("%YAML 1.1\n---\na: yes", 2, 1, "directives are not supported; remove the lines %YAML and %TAG"),
        ("%YAML 1.3\n---\na: 1", 1, 1, "directives are not supported"),
        ("a: 1\n...\n%YAML 1.3\n---\na: 1", 3, 1, "directives are not supported"),
        ("%TAG ! tag:x,2000:\n---\na: 1", 2, 1, "directives are not supported"),
        ("a: 1\nb: *x", 2, 4, "there is no anchor &x above this alias"),
        ("a: &x\n  b: *x", 2, 6, "the alias *x refers to a value that contains it"),
        ("&x a: *x\nb: &y [[*y]]", 2, 9, "the alias *y refers to a value that contains it"),
        ("a: 1\nb: .nan", 2, 4, '.nan cannot be written as JSON; quote it if it is text: ".nan"'),
        ("a: 1\nb: -.inf", 2, 4, "-.inf cannot be written as JSON"),
        ("a: 1\nb: 1e999", 2, 4, "the number is too large; quote it if it is text"),
        *(
            (f"a: 1\nb: {start}{'7' * 5000}", 2, 4, "the number has too many digits; quote it if it is text")
            for start in ("", "-", "0x", "0o")
        ),
        (r'a: "\ud800"', 1, 4, "half of a surrogate pair is not a character; write both halves"),
        (r'"\udc00\ud800": 1', 1, 1, "half of a surrogate pair"),
    ],
)
def test_a_fault_says_what_to_do_and_where(text: str, line: int, column: int, said: str) -> None:
    error = fault(text)
    assert said in error.message
    assert (error.line, error.column) == (line, column)


# Bounds


def test_aliases_that_stand_for_too_many_values_are_refused_before_they_are_made() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    error = fault("\n".join(lines))
    assert "more than 100,000 values, including those that aliases repeat" in error.message
    assert error.line == 5


@pytest.mark.long
def test_as_many_values_as_are_allowed_are_read() -> None:
    # The map, its four keys, three lists, their entries and what the aliases repeat: 1 + 4 + 1,000 + 98,001 + 993 + 1.
    thousand = ", ".join(["1"] * 999)
    many = f"a: &a [{thousand}]\nb: [{', '.join(['*a'] * 98)}]\nc: [{', '.join(['1'] * 992)}]\nd: "
    assert MOST_VALUES == 100_000
    assert len(read(f"{many}1")["c"]) == 992
    assert "more than 100,000 values" in fault(f"{many}[1]").message


@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ("{a: ", "}")])
def test_lists_and_maps_stand_inside_one_another_to_a_bound(begin: str, end: str) -> None:
    read(begin * DEEPEST + end * DEEPEST)
    assert "nested more than 100 deep" in fault(begin * (DEEPEST + 1) + end * (DEEPEST + 1)).message


@pytest.mark.parametrize("text", ["[" * 20_000, "{a: " * 20_000, "- " * 20_000, "? " * 20_000])
@pytest.mark.long
def test_a_text_that_nests_without_end_is_refused(text: str) -> None:
    assert "lists and maps are nested more than 100 deep" in fault(text).message


def test_aliases_do_not_nest_deeper_than_is_allowed_either() -> None:
    lines = ["a0: &a0 [1]", *(f"a{n}: &a{n} {'[' * 45}*a{n - 1}{']' * 45}" for n in range(1, 4))]
    assert "lists and maps are nested more than 100 deep" in fault("\n".join(lines)).message
    assert fault("\n".join(lines)).line == 4


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ruamel.yaml", None)
    with pytest.raises(MissingExtra, match=r"pip install 'bespeak\[test\]'"):
        read_yaml("a: 1")


# Whatever the text

PIECES = st.sampled_from(
    [
        *("a", "b: ", "- ", "\n", "  ", "[", "]", "{", "}", ", ", ": ", "? ", "|", "> ", "&a ", "*a ", "!x ", "!!int "),
        *(
            "! ",
            "!<x> ",
            "%YAML 1.1\n",
            "%YAML 1.9\n",
            "%TAG !e! x\n",
            "---\n",
            "...\n",
            "'",
            '"',
            "\\",
            "\\ud83d",
            "#",
        ),
        *(
            "~",
            "<<: ",
            "\t",
            "\r",
            "\ufeff",
            "\x85",
            "\u2028",
            "1",
            ".nan",
            "1e999",
            "0x",
            "@",
            "`",
            "%",
            "!%c3 ",
            "\0",
        ),
    ]
)


def outcome_of(text: str) -> YamlDocument | YamlError:
    try:
        return read_yaml(text)
    except YamlError as error:
        return error


@given(st.text() | st.lists(PIECES, max_size=20).map("".join))
@example("%YAML 1.99999999999999\n---\n")
@example("!%zz x")
@example("a: !\n")
def test_any_text_is_read_or_is_an_error_with_a_line(text: str) -> None:
    outcome = outcome_of(text)
    if isinstance(outcome, YamlError):
        assert 1 <= outcome.line <= len(text) + 1
        assert outcome.column >= 1
    else:
        json.dumps(outcome.value, allow_nan=False).encode()


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=40), inner), max_leaves=20
)


def paths(value: Any) -> list[tuple[str | int, ...]]:
    inner: Any = ()
    if isinstance(value, (dict, list)):
        inner = (
            cast("dict[str, Any]", value).items() if isinstance(value, dict) else enumerate(cast("list[Any]", value))
        )
    return [(), *((step, *rest) for step, below in inner for rest in paths(below))]


@given(VALUES)
@pytest.mark.long
def test_a_value_written_as_json_reads_back_the_same(value: Any) -> None:
    found = read(json.dumps(value))
    assert json.dumps(found) == json.dumps(value)


@given(VALUES)
def test_every_value_written_as_indented_json_is_on_its_line(value: Any) -> None:
    """One line a value in such JSON, in order; a list or map that is not empty ends with one more."""
    text = json.dumps(value, indent=1)
    document, lines = read_yaml(text), text.split("\n")
    starts = [number for number, line in enumerate(lines, 1) if line.strip(" ,") not in ("]", "}")]
    assert [document.line(path) for path in paths(value)] == starts
