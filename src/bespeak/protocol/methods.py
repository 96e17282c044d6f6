"""Names of methods, and what is known about each: which ones ask, which only read, and which name their target."""

from collections.abc import Mapping

ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"
QUESTIONS = (ELICIT, SAMPLE, ROOTS)
"""Methods with which a server asks its client something."""

LISTEN = "subscriptions/listen"
SUBSCRIPTION_ID_META = "io.modelcontextprotocol/subscriptionId"
"""The member of `_meta` that names the `subscriptions/listen` request which a notification belongs to."""

READ_ONLY = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "completion/complete",
        "ping",
    }
)
"""Methods that change nothing. A client may send them again if the response is lost."""

TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED, RESOURCE_UPDATED = CHANGES = (
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
)
"""Notifications that something on the server has changed."""

TARGET_PARAMETERS: Mapping[str, str] = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods whose HTTP requests carry `Mcp-Name`, with the parameter that the header repeats."""
