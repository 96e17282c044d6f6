"""Whatever text is in a result, each report is well formed and holds no control characters."""

import json
import unicodedata
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from bespeak.conversation.call_rounds import Round
from bespeak.conversation.protocol_rules import RULES
from bespeak.testing.report.json_report import JsonReport
from bespeak.testing.report.junit_report import JunitReport
from bespeak.testing.report.pretty_report import PrettyReport
from bespeak.testing.report.results import Failure, Kind, Result
from bespeak.testing.report.summary import Summary
from tests.testing.runs import written

nasty = st.sampled_from("\x00\x08\x1b\x7f\x85\x9b\u200b\u202e\u2028\ud800\udfff\ufffe\uffff\U0001fffe\r\n\t]>&<\"'\\")


texts = st.text(st.characters() | nasty, max_size=12)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


failures = st.builds(
    Failure,
    texts,
    kind=st.sampled_from(Kind),
    path=st.none() | texts,
    expected=values,
    actual=values,
    rule=st.none() | st.sampled_from(sorted(RULES)),
    hint=st.none() | texts,
)


rounds = st.builds(
    Round, st.dictionaries(texts, texts, max_size=2), st.dictionaries(texts, values, max_size=2), st.booleans()
)


results = st.builds(
    Result,
    texts,
    st.integers(1, 9),
    texts,
    st.none() | texts,
    st.none() | texts,
    texts,
    failures=st.lists(failures, max_size=2),
    rounds=st.lists(rounds, max_size=2),
    again=texts,
)


runs = st.lists(results, max_size=2)


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


@given(runs)
def test_any_text_gives_well_formed_json(results: Sequence[Result]) -> None:
    text = written(JsonReport, Summary(results))
    told = json.loads(text, parse_constant=refuse)

    assert text.isascii()
    assert len(told["results"]) == len(results)
    json.dumps(told, ensure_ascii=False).encode()  # no half of a pair, which strict readers refuse


@given(runs)
def test_any_text_gives_well_formed_xml(results: Sequence[Result]) -> None:
    text = written(JunitReport, Summary(results))

    assert text.isascii()
    assert len(ET.fromstring(text).findall("testsuite/testcase")) == len(results)


@given(runs)
def test_the_pretty_report_holds_no_control_characters_but_newlines(results: Sequence[Result]) -> None:
    text = written(PrettyReport, Summary(results))

    assert {unicodedata.category(char) for char in set(text) - {"\n"}}.isdisjoint({"Cc", "Cf", "Cs", "Zl", "Zp"})
