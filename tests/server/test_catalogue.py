"""Everything a server offers: capabilities, what has resolvers, what a completion names, and the scopes of a request."""

from typing import Annotated, Any

from mcp_types import PromptReference, ResourceTemplateReference

from bespeak import Complete, MCPServer, Resolve
from bespeak.server.catalogue import Catalogue
from bespeak.server.features.completion_functions import read_handler
from bespeak.server.features.completions import CompletionHandler
from bespeak.server.features.prompts import Prompt, PromptOptions
from bespeak.server.features.resource_types import TextResource
from bespeak.server.features.resources import Resource, ResourceOptions, ResourceTemplate
from bespeak.server.features.tools import Tool


async def stock() -> list[str]:
    return []


def titles(value: str, found: Annotated[list[str], Resolve(stock)]) -> list[str]: ...
def order(title: Annotated[str, Complete(titles)]) -> str: ...
def count() -> str: ...
async def handle(ref: Any, argument: Any, context: Any) -> None: ...


def catalogue() -> Catalogue:
    found = Catalogue()
    found.tools.add(Tool.from_function(count))
    found.prompts.add(Prompt(order, PromptOptions(scopes=["prompts"]), None))
    found.resources.fixed.add(TextResource(uri="books://all", text=""))
    found.resources.templates.add(ResourceTemplate(order, "books://{title}", ResourceOptions(scopes=["books"]), None))
    return found


def test_capabilities_follow_from_what_is_registered() -> None:
    empty = Catalogue()
    assert "completions" not in empty.capabilities()
    assert {"tools", "prompts", "resources", "logging"} <= empty.capabilities().keys()
    assert catalogue().capabilities()["completions"] == {}
    empty.completion_handler = CompletionHandler(read_handler(handle, None))
    assert empty.capabilities()["completions"] == {}


def test_completions_and_the_handler_have_resolvers_of_their_own() -> None:
    found = catalogue()
    assert [one.name for one in found.all()] == ["count", "order", "books://all", "books://{title}"]
    assert len(found.resolving()) == 6
    found.completion_handler = handler = CompletionHandler(read_handler(handle, None))
    assert found.resolving()[-1] is handler


def test_a_reference_names_a_prompt_a_resource_or_a_template() -> None:
    found = catalogue()
    assert found.completed(PromptReference(name="order")) is found.prompts.get("order")
    assert found.completed(PromptReference(name="borrow")) is None
    assert isinstance(found.completed(ResourceTemplateReference(uri="books://all")), Resource)
    for uri in ("books://{title}", "books://dune"):
        assert isinstance(found.completed(ResourceTemplateReference(uri=uri)), ResourceTemplate)
    assert found.completed(ResourceTemplateReference(uri="books://a/b")) is None


def test_a_completion_needs_the_scopes_of_what_it_completes() -> None:
    def needed(ref: Any) -> tuple[str, ...]:
        return catalogue().scopes_needed("completion/complete", {"ref": ref})

    assert needed({"type": "ref/prompt", "name": "order"}) == ("prompts",)
    assert needed({"type": "ref/prompt", "name": "borrow"}) == ()
    assert needed({"type": "ref/resource", "uri": "books://dune"}) == ("books",)
    assert needed({"type": "ref/resource", "uri": "books://all"}) == ()
    assert needed("nonsense") == ()


def test_other_requests_need_the_scopes_of_their_target() -> None:
    found = catalogue()
    assert found.scopes_needed("prompts/get", {"name": "order"}) == ("prompts",)
    assert found.scopes_needed("prompts/get", {"name": "borrow"}) == ()
    assert found.scopes_needed("prompts/get", {}) == ()
    assert found.scopes_needed("resources/read", {"uri": "books://dune"}) == ("books",)
    assert found.scopes_needed("resources/read", {"uri": "books://a/b"}) == ()
    assert found.scopes_needed("tools/call", {"name": "count"}) == ()
    assert found.scopes_needed("tools/list", {}) == ()


def test_each_server_has_a_catalogue_of_its_own() -> None:
    one, two = MCPServer[Any]("one"), MCPServer[Any]("two")
    one.completion()(handle)
    two.completion()(handle)
