"""The headers in which calls of a tool repeat arguments, learned from the server's list of tools."""

import logging
from collections.abc import Mapping
from typing import Any, cast

from bespeak.protocol.parameter_headers import (
    InvalidParameterHeader,
    ParameterHeader,
    read_parameter_headers,
    write_parameter_headers,
)
from bespeak.protocol.quoting import one_line

logger = logging.getLogger("bespeak.client")


class ToolHeaders:
    """Remembers the parameter headers of each listed tool."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[ParameterHeader, ...]] = {}

    def learn(self, tools: list[Any]) -> list[Any]:
        """Remember the headers of listed tools. Return the tools without those that cannot be called over HTTP."""
        return [tool for tool in tools if self._learn(tool)]

    def _learn(self, tool: Any) -> bool:
        if not isinstance(tool, dict):
            return True  # reported when the whole list is checked
        listed = cast("dict[str, Any]", tool)
        schema: Any = listed.get("inputSchema")
        known = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
        try:
            self._known[str(listed.get("name"))] = read_parameter_headers(known)
        except InvalidParameterHeader as error:
            logger.warning("The tool %.200r is ignored: %s", listed.get("name"), one_line(str(error)))
            self._known.pop(str(listed.get("name")), None)
            return False
        return True

    def headers(self, params: Mapping[str, Any]) -> dict[str, str]:
        """Return the headers of a `tools/call` with these params."""
        return write_parameter_headers(self._known.get(params.get("name", ""), ()), params.get("arguments") or {})
