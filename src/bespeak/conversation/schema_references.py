"""References in a JSON Schema to another part of the same document: `#/$defs/Size`, `#/definitions/Size`."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from bespeak.conversation.json_values import as_object


def schema_at(root: Mapping[str, Any], reference: Any) -> Any:
    """Return the part of a schema that a reference such as `#/$defs/Size` names; `None` if it is not in the schema."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in unquote(reference[1:]).split("/")[1:]:
        found = as_object(found).get(step.replace("~1", "/").replace("~0", "~"))
    return found
