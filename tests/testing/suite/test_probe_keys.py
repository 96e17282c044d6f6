"""The key `probe` of a test."""

from pathlib import Path

import pytest

from bespeak.testing.probes.known_probes import PROBES
from bespeak.testing.suite.loader import BadSuite, load_suite
from bespeak.testing.suite.probe_keys import PROBE_NAMES

HEAD = "version: 1\nservers: {a: {command: [a]}}\ntests:\n"


def loaded(folder: Path, test: str) -> list[str] | None:
    path = folder / "a.bespeak.yaml"
    path.write_text(f"{HEAD}  - {{name: a, {test}}}\n")
    return load_suite(path).model.tests[0].probe  # pyright: ignore[reportReturnType] - the names are literals


def test_every_name_has_a_probe() -> None:
    assert tuple(PROBES) == PROBE_NAMES


def test_a_name_or_all_may_stand_alone(tmp_path: Path) -> None:
    assert loaded(tmp_path, "probe: all") == ["all"]
    assert loaded(tmp_path, "probe: tool") == ["tool"]
    assert loaded(tmp_path, "probe: [tool, cursor]") == ["tool", "cursor"]


@pytest.mark.parametrize(
    ("test", "told"),
    [
        ("probe: [tool, tool]", "tool is listed twice"),
        ("probe: [all]", "all stands alone: probe: all"),
        ("probe: []", "probe: is empty; give it at least one entry"),
        ("probe: tools", "probe: must be 'metadata', "),
        ("probe: tools", "'token' or 'all', not 'tools'; did you mean 'tool'?"),
        ("probe: [tool, 5]", "'token' or 'all'"),
        ("probe: tool, tool: x", "name exactly one of tool, prompt, resource, method and probe"),
        (
            "probe: tool, expect: {text: x}",
            "expect has no effect in a test with probe; it goes with declare, eras, fresh, ",
        ),
        ("probe: tool, inputResponses: {a: b}", "inputResponses has no effect in a test with probe"),
    ],
)
def test_mistakes_are_told(tmp_path: Path, test: str, told: str) -> None:
    with pytest.raises(BadSuite) as caught:
        loaded(tmp_path, test)
    assert told in str(caught.value)
