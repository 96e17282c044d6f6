"""What the page lists: the tools, prompts, resources and templates of the server, as a client gets them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from bespeak.client.errors import InvalidServerResponse
from bespeak.conversation.feature_list import list_all
from bespeak.dev.page_client import connected
from bespeak.dev.wire_record import WireMessage
from bespeak.protocol.errors import METHOD_NOT_FOUND, MCPError

KINDS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}


@dataclass(frozen=True, slots=True)
class Lists:
    """Everything a client can see of a server."""

    tools: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    prompts: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    resources: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    resourceTemplates: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    problems: list[str] = field(default_factory=list[str])
    """Why something could not be listed."""

    def as_json(self) -> dict[str, Sequence[Any]]:
        return asdict(self)


async def list_everything(url: str, era: str, authorization: str) -> Lists:
    """Return what the server lists for a client of an era."""
    lists = Lists()
    try:
        async with connected(url, era, authorization, _ignore) as connection:
            for member, method in KINDS.items():
                try:
                    getattr(lists, member).extend([one async for one in list_all(connection.session, method, member)])
                except MCPError as error:
                    if error.code != METHOD_NOT_FOUND:
                        lists.problems.append(f"{method}: {error}")
    except (OSError, ValueError, MCPError, InvalidServerResponse) as error:
        lists.problems.append(str(error))
    return lists


def _ignore(message: WireMessage) -> None:
    """Do nothing: the timeline is that of a call."""
