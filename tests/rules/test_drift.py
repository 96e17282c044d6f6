"""Drift (design section 5): a question that keeps changing by itself fails, one that changes for a reason does not."""

import itertools
import logging
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from mcp_types import SamplingMessage, TextContent

from bespeak import Client, Elicit, MCPServer, Resolve, Sample
from tests.conftest import Connect
from tests.rules.raw_calls import accept, asked, failed, message, opened, said, send


def drifting(render: Callable[[int], Any]) -> MCPServer:
    """A tool whose question is rendered from a counter, as if from a clock."""
    mcp, ticks = MCPServer("clock"), itertools.count(1)

    async def stamped() -> Any:
        return render(next(ticks))

    @mcp.tool()
    async def sign(given: Annotated[object, Resolve(stamped, key="stamp")]) -> str:
        return f"{given}"

    _ = sign
    return mcp


async def drive(client: Client, name: str, answers: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Send the same answers until nothing is asked; how often something was."""
    result, times = await send(client, name), 0
    while result["resultType"] == "input_required":
        times += 1
        result = await send(client, name, answers, result["requestState"])
    return times, result


async def test_a_question_with_a_timestamp_fails_on_its_third_change(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "bespeak.resolve"):
        async with opened(connect, drifting(lambda tick: Elicit(f"Sign at {tick}?", bool))) as client:
            times, result = await drive(client, "sign", {"stamp": accept(value=True)})
    assert times == 3
    text = failed(result)
    assert "resolver 'stamped' asks a question that changes from round to round" in text
    assert "derive it from arguments and earlier answers only" in text
    assert "sign -> given -> stamped" in text
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert "resolver 'stamped' keeps changing" in logged
    assert [f"Sign at {tick}?" in logged for tick in range(1, 6)] == [True, True, True, True, False]


def offered(tick: int) -> Elicit[str]:
    return Elicit("Which?", str, choices={f"slot-{tick}": "now"})


def sampled(tick: int) -> Sample:
    text = TextContent(type="text", text=f"slot-{tick}")
    return Sample([SamplingMessage(role="user", content=text)], max_tokens=1)


@pytest.mark.parametrize("render", [offered, sampled])
async def test_the_logged_renderings_show_what_changed(
    in_memory: Connect, caplog: pytest.LogCaptureFixture, render: Callable[[int], Any]
) -> None:
    with caplog.at_level(logging.ERROR, "bespeak.resolve"):
        async with opened(in_memory, drifting(render)) as client:
            times, _ = await drive(client, "sign", {"stamp": accept(value="slot-1")})
    assert times == 3
    logged = "\n".join(record.getMessage() for record in caplog.records)
    assert [f"slot-{tick}" in logged for tick in (1, 2, 3, 4)] == [True] * 4


async def test_a_question_that_settles_down_after_two_changes_is_answered(in_memory: Connect) -> None:
    async with opened(in_memory, drifting(lambda tick: Elicit(f"At {min(tick, 3)}?", bool))) as client:
        times, result = await drive(client, "sign", {"stamp": accept(value=True)})
    assert (times, said(result)) == (3, "True")


async def test_changes_that_do_not_follow_each_other_are_no_drift(in_memory: Connect) -> None:
    async with opened(in_memory, drifting(lambda tick: Elicit(f"At {tick // 2}?", bool))) as client:
        result = await send(client, "sign")
        for _ in range(9):
            result = await send(client, "sign", {}, result["requestState"])
            assert asked(result) == ["stamp"]


async def test_a_question_that_changes_because_an_earlier_answer_changed_is_not_drift(in_memory: Connect) -> None:
    mcp, versions = MCPServer("chain"), [0]

    async def base() -> Elicit[int]:
        return Elicit(f"Base {versions[-1]}?", int)

    async def top(base: Annotated[int, Resolve(base, key="base")]) -> Elicit[int]:
        return Elicit(f"Top of {base}?", int)

    @mcp.tool()
    async def total(
        base: Annotated[int, Resolve(base, key="base")], top: Annotated[int, Resolve(top, key="top")]
    ) -> str:
        return f"{base} {top}"

    _ = total
    async with opened(in_memory, mcp) as client:
        result = await send(client, "total")
        for number in range(1, 7):
            # A new base question each time, answered with a new number; the top question changes with it.
            result = await send(client, "total", {"base": accept(value=number)}, result["requestState"])
            assert message(result, "top") == f"Top of {number}?"
            versions.append(number)
            result = await send(client, "total", {}, result["requestState"])
            assert asked(result) == ["base"]
