"""How a server, a tool, a prompt or a resource is described to clients: the members of its entry in a list.

They are written without the models of `mcp_types`, which most servers never need; see `protocol/wire_types.py`.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from bespeak.protocol import wire_types

if TYPE_CHECKING:
    from mcp_types import Annotations, Icon, ToolAnnotations
    from pydantic import BaseModel


def listing_entry(texts: Mapping[str, str | None], icons: "Sequence[Icon] | None" = None) -> dict[str, Any]:
    """Return the texts that are given, and the icons. Raises `TypeError` for a text that is not a string."""
    entry: dict[str, Any] = {}
    for member, text in texts.items():
        if text is None:
            continue
        if not isinstance(cast("Any", text), str):
            raise TypeError(f"{member} must be a string, not {type(text).__name__}")
        entry[member] = text
    if icons is not None:
        entry["icons"] = [_dumped(wire_types.Icon, icon) for icon in icons]
    return entry


def tool_annotations(given: "ToolAnnotations") -> dict[str, Any]:
    """Return the annotations of a tool as they are sent."""
    return _dumped(wire_types.ToolAnnotations, given)


def resource_annotations(given: "Annotations") -> dict[str, Any]:
    """Return the annotations of a resource as they are sent."""
    return _dumped(wire_types.Annotations, given)


def _dumped(model: "type[BaseModel]", given: Any) -> dict[str, Any]:
    """Return a model, or a dict that is valid for it, as JSON. Raises `ValidationError` if it is not."""
    return model.model_validate(given).model_dump(mode="json", by_alias=True, exclude_none=True)
