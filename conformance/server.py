"""Our server for the conformance suite: python -m conformance.server --port 8000 --parser h11

It has the tools, resources and prompts that the suite expects, and is made with the public names of Bespeak only.
"""

import argparse
import importlib.util
import sys
from typing import Annotated

from mcp_types import EmbeddedResource, InputRequiredResult

from bespeak import Complete, Context, Image, MCPServer
from bespeak.server import MemoryEventStore
from conformance.asking_tools import ASKING_TOOLS, accepted_text, text_form
from conformance.plain_tools import PLAIN_TOOLS, PNG, embedded

RETRY_MILLISECONDS = 500

mcp = MCPServer("bespeak-conformance", version="1.0.0", tools=[*PLAIN_TOOLS, *ASKING_TOOLS])


# Resources


@mcp.resource("test://static-text", name="static-text", mime_type="text/plain")
def static_text() -> str:
    """A fixed text."""
    return "This is the content of the static text resource."


@mcp.resource("test://static-binary", name="static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A fixed image."""
    return PNG


@mcp.resource("test://watched-resource", name="watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that clients subscribe to."""
    return "Watched resource content"


@mcp.resource("test://template/{id}/data", name="template", mime_type="application/json")
def template(id: str) -> dict[str, object]:
    """Data for any id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# Prompts


@mcp.prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


def first_words(value: str) -> list[str]:
    """Return words that begin with what was typed. The suite types `par`."""
    return [word for word in ("paris", "park", "party", "test") if word.startswith(value)]


@mcp.prompt
def test_prompt_with_arguments(arg1: Annotated[str, Complete(first_words)], arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@mcp.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[EmbeddedResource | str]:
    """A prompt with a resource."""
    resource = embedded(resourceUri, "text/plain", "Embedded resource content for testing.")
    return [resource, "Please process the embedded resource above."]


@mcp.prompt
def test_prompt_with_image() -> list[Image | str]:
    """A prompt with an image."""
    return [Image(data=PNG, format="png"), "Please analyze the image above."]


@mcp.prompt
def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """A prompt that asks, under the key that the suite expects."""
    context = accepted_text(ctx, "user_context", "context")
    if context is None:
        question = text_form("What context should the prompt use?", "context")
        return InputRequiredResult(input_requests={"user_context": question})
    return f"Use this context: {context}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m conformance.server", description="A server for the suite.")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--parser", choices=("h11", "httptools"), default="httptools", help="the parser of HTTP")
    given = parser.parse_args()
    if given.parser == "h11":
        # As on a machine without httptools. Python reads None as: this module cannot be imported.
        sys.modules["httptools"] = None  # pyright: ignore[reportArgumentType]
    elif importlib.util.find_spec("httptools") is None:
        sys.exit("httptools is not installed: pip install 'bespeak[http]'")
    mcp.run("streamable-http", port=given.port, event_store=MemoryEventStore(), retry_interval=RETRY_MILLISECONDS)


if __name__ == "__main__":
    main()
