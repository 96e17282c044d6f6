"""A graph as a Mermaid flowchart."""

from typing import Annotated

from bespeak import Context, Elicit, Resolve
from bespeak.resolve.graph.mermaid import as_mermaid
from bespeak.server.features.tools import Tool


async def stock(title: str) -> int: ...


async def consent(context: Context, stock: Annotated[int, Resolve(stock)]) -> Elicit[bool]: ...


async def order(title: str, stock: Annotated[int, Resolve(stock)], ok: Annotated[bool, Resolve(consent)]) -> None: ...


def test_every_box_and_every_edge_is_drawn_once() -> None:
    lines = as_mermaid(Tool.from_function(order).graph, "order").splitlines()
    title, context = f"model_{b'title'.hex()}", f"context_{b'context'.hex()}"
    assert lines[:12] == [
        "flowchart LR",
        '    call[["order"]]',
        f'    {title}(["title<br/>from the model"]):::model',
        f'    {context}(["context<br/>from the context"]):::context',
        '    r0["stock<br/>runs in every round"]:::computed',
        '    r1{{"consent<br/>may ask the user in round 1"}}:::asked',
        f"    {title} --> r0",
        f"    {context} --> r1",
        '    r0 -->|"stock"| r1',
        f"    {title} --> call",
        '    r0 -->|"stock"| call',
        '    r1 -->|"ok"| call',
    ]
    assert all(line.startswith("    classDef ") for line in lines[12:])


def test_a_name_cannot_break_out_of_its_box() -> None:
    text = as_mermaid(Tool.from_function(order).graph, 'x"]; <script>')
    assert text.splitlines()[1] == '    call[["x#34;#93;#59; #60;script#62;"]]'
