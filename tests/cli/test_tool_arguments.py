"""KEY=VALUE on the command line: typed as the tool's schema says, wherever in the schema it says so."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.desks import bespeak, write_raw

pytestmark = pytest.mark.timing

DEFS: dict[str, Any] = {
    "Size": {"enum": ["1", "2"], "type": "string"},
    "Level": {"enum": [1, 2], "type": "integer"},
    "Mixed": {"enum": ["1", 2, None]},
    "Loop": {"$ref": "#/$defs/Loop"},
    "a/b": {"const": "5"},
    "Alias": {"$ref": "#/$defs/Size"},
}


@pytest.mark.parametrize(
    ("schema", "typed", "sent"),
    [
        ({"$ref": "#/$defs/Size"}, "1", "1"),
        ({"$ref": "#/$defs/Alias"}, "2", "2"),
        ({"$ref": "#/$defs/Size"}, "true", "true"),
        ({"allOf": [{"$ref": "#/$defs/Size"}], "default": "1"}, "1", "1"),
        ({"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}]}, "1", "1"),
        ({"oneOf": [{"const": "7", "title": "Seven"}]}, "7", "7"),
        ({"$ref": "#/$defs/Level"}, "1", 1),
        ({"$ref": "#/$defs/Mixed"}, "1", "1"),
        ({"$ref": "#/$defs/Mixed"}, "2", 2),
        ({"$ref": "#/$defs/Mixed"}, "null", None),
        ({"$ref": "#/$defs/a~1b"}, "5", "5"),
        ({"enum": [True, 1.5, [1], {"a": 1}]}, "true", True),
        ({"$ref": "#/$defs/Loop"}, "5", 5),
        ({"$ref": "#/$defs/absent"}, "5", 5),
        ({"$ref": "https://x.example/schema"}, "5", 5),
        ({"$ref": 5}, "5", 5),
        ({"type": ["string", 5]}, "5", "5"),
        ({"type": {"odd": 1}}, "5", 5),
        ("odd", "5", 5),
    ],
)
def test_a_value_is_text_where_the_schema_offers_it_as_text(tmp_path: Path, schema: Any, typed: str, sent: Any) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", "properties": {"x": schema}, "$defs": DEFS}}
    target = write_raw(tmp_path)("echo", pages=[{"tools": [tool]}])
    assert json.loads(bespeak("call", target, "t", f"x={typed}").stdout)["arguments"] == {"x": sent}
