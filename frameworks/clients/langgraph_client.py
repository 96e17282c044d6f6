"""LangGraph with `langchain[mcp]`: a run suspends on a question, and the call is started anew when the run is resumed."""

import asyncio
import json
from collections import Counter
from typing import Any, TypedDict

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from langchain.mcp import MCPAdapter
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt
from mcp import MCPError

from frameworks.checks import (
    DECLINED,
    LEGACY,
    MODERN,
    NO_ROOTS,
    NO_SAMPLING,
    NOTHING_ASKED,
    NOTHING_ASKED_REFUNDED,
    REFUND,
    REFUNDED,
    RESTOCK,
    SCOPE,
    Person,
    Servers,
    contains,
    equal,
    main,
)
from frameworks.snippets import langgraph_desk

NOT_THE_QUESTION = "needs an answer for every elicitation request"


class Scripted(BaseChatModel):
    """A model that calls one tool and then repeats what came back."""

    tool: str
    arguments: dict[str, Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools, **options):
        return self

    def _generate(self, messages, stop=None, run_manager=None, **options):
        last = messages[-1]
        if isinstance(last, ToolMessage):
            said = AIMessage(last.text)
        else:
            said = AIMessage("", tool_calls=[{"name": self.tool, "args": self.arguments, "id": "1"}])
        return ChatResult(generations=[ChatGeneration(message=said)])


async def refund(target, person, arguments=REFUND) -> str:
    agent = await langgraph_desk.desk_agent(target, Scripted(tool="refund_order", arguments=arguments))
    return await langgraph_desk.run(agent, "Refund it.", person, "1")


def own_handler(person):
    """A callback that answers at once, in place of the adapter's."""

    async def ask(message, response_type, params, context):
        content = await person(message, params.requested_schema)
        return ElicitResult(action="decline") if content is None else ElicitResult(action="accept", content=content)

    return ask


async def speaks_the_modern_era(servers: Servers) -> None:
    async with MCPAdapter(servers.desk) as adapter:
        equal(adapter.client.protocol_version, MODERN)


async def asks_nothing(servers: Servers) -> None:
    person = Person()
    equal(json.loads(await refund(servers.desk, person, NOTHING_ASKED)), NOTHING_ASKED_REFUNDED)
    equal(person.asked, [])


async def suspends_twice(servers: Servers) -> None:
    person = Person()
    equal(json.loads(await refund(servers.desk, person)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def suspends_over_stdio(servers: Servers) -> None:
    person = Person()
    command, *arguments = servers.desk_command
    equal(json.loads(await refund(StdioTransport(command, arguments), person)), REFUNDED)
    equal(person.asked, [SCOPE, RESTOCK])


async def declines(servers: Servers) -> None:
    contains(await refund(servers.desk, Person(full=None)), DECLINED)


async def pushed_is_refused(servers: Servers) -> None:
    """The adapter declares that it can be asked, and then answers a pushed question with an error."""
    person = Person()
    client = Client(servers.desk, mode="legacy")
    contains(await refund(client, person), "asked for input over the legacy server-initiated elicitation path")
    equal(person.asked, [])


async def answered_by_a_handler(servers: Servers) -> None:
    """A client with a handler of its own answers at once, in both eras. Nothing is suspended."""
    for mode, revision in (("auto", MODERN), ("legacy", LEGACY)):
        person = Person()
        client = Client(servers.desk, mode=mode, elicitation_handler=own_handler(person))
        agent = await langgraph_desk.desk_agent(client, Scripted(tool="refund_order", arguments=REFUND))
        state = await agent.ainvoke({"messages": [{"role": "user", "content": "Refund it."}]}, thread("1"))
        equal(json.loads(state["messages"][-1].text), REFUNDED)
        equal(person.asked, [SCOPE, RESTOCK])
        async with client:
            equal(client.protocol_version, revision)


async def interrupt_in_a_handler(servers: Servers) -> None:
    """A handler cannot suspend the run: the client turns LangGraph's signal into an error."""

    async def ask(message, response_type, params, context):
        return interrupt(message)

    said = await refund(Client(servers.desk, mode="legacy", elicitation_handler=ask), Person())
    contains(said, "the client answered with an error (-32603)")


async def sampling_and_roots(servers: Servers) -> None:
    async def sample(messages, params, context):
        return "hello"

    for tool, missing in (("ask_the_model", NO_SAMPLING), ("ask_for_roots", NO_ROOTS)):
        contains(await failing(servers.questions, tool, MCPError), missing)
    suspending = Client(servers.questions, sampling_handler=sample, roots=["file:///desk"])
    for tool in ("ask_the_model", "ask_for_roots"):
        contains(await failing(suspending, tool, NotImplementedError), "Only elicitation requests are supported")
    answering = Client(
        servers.questions, sampling_handler=sample, roots=["file:///desk"], elicitation_handler=own_handler(Person())
    )
    tools = await tools_of(MCPAdapter(answering))
    equal((await call(tools, "ask_the_model")).text, "hello")
    equal((await call(tools, "ask_for_roots")).text, "file:///desk")


async def failing(target, tool: str, kind: type[Exception]) -> str:
    """What a call says that fails in a graph."""
    tools = await tools_of(MCPAdapter(target))

    async def node(state: Paying) -> Paying:
        return {"said": await call(tools, tool)}

    graph = graph_of(node)
    try:
        await graph.ainvoke({}, thread("failing"))
    except kind as error:
        return str(error)
    raise AssertionError(f"{tool} did not fail")


# A price that moves. A person is asked "Pay 100 EUR?", the run is suspended, and the price is another when it is resumed.


class Paying(TypedDict, total=False):
    tool: str
    orders: list[str]
    said: Any


def graph_of(node, **options):
    """A graph of one node, which can be suspended."""
    graph = StateGraph(Paying)
    graph.add_node("node", node, **options)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile(checkpointer=InMemorySaver())


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


async def tools_of(adapter: MCPAdapter) -> dict[str, Any]:
    return {tool.name: tool for tool in await adapter.list_tools()}


async def call(tools, name: str, **arguments: Any) -> ToolMessage:
    return await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})


class Till:
    """The tools of the till, a graph that pays with them, and a person who approves whatever is shown."""

    def __init__(self, tools) -> None:
        self.tools = tools
        self.approved: Counter[tuple[str, int]] = Counter()

    async def pay(self, state: Paying) -> Paying:
        """A node that pays every order, one after another."""
        return {"said": [(await call(self.tools, state["tool"], order=order)).text for order in state["orders"]]}

    async def pay_asking_again(self, state: Paying) -> Paying:
        """The same node, with the loop of the snippet."""
        while True:
            try:
                return await self.pay(state)
            except ValueError as error:
                contains(error, NOT_THE_QUESTION)

    async def offer(self, order: str, *prices: int) -> None:
        await call(self.tools, "offer", order=order, prices=list(prices))

    async def charges(self, *orders: str) -> list[tuple[str, int]]:
        book = (await call(self.tools, "book")).artifact["structured_content"]
        found = [(charge["order"], charge["eur"]) for charge in book["charges"]]
        return [charge for charge in found if not orders or charge[0] in orders]

    def approve(self, state, order: str) -> Command:
        """What a person says to the questions of a suspended run, remembering what was shown."""
        answers: dict[str, Any] = {}
        for one in state["__interrupt__"]:
            responses: dict[str, Any] = {}
            for request in one.value["requests"]:
                value = request["requested_schema"]["properties"]["value"]
                shown = value["oneOf"][0]["title"] if "oneOf" in value else request["message"]
                self.approved[order, int(shown.split()[1])] += 1
                content = {"value": value["oneOf"][0]["const"] if "oneOf" in value else True}
                responses[request["key"]] = {"action": "accept", "content": content}
            answers[one.id] = {"responses": responses}
        return Command(resume=answers)

    async def run(self, graph, tool: str, order: str) -> str:
        """How a run ends in which a person approves whatever is asked: charged, refused, or given up."""
        state = await graph.ainvoke({"tool": tool, "orders": [order]}, thread(order))
        for _ in range(5):
            if not state.get("__interrupt__"):
                (said,) = state["said"]
                assert said.startswith(("Charged", "Error executing tool")), said
                return "charged" if said.startswith("Charged") else "refused"
            try:
                state = await graph.ainvoke(self.approve(state, order), thread(order))
            except ValueError as error:
                contains(error, NOT_THE_QUESTION)
                return "refused"
        return "given up"


MOVES: dict[str, tuple[int, ...]] = {
    "stays": (100,),
    "moved while suspended": (100, 200),
    "moved while resuming": (100, 100, 200),
    "away and back": (100, 200, 100),
    "moves at every look": tuple(range(100, 3000, 100)),
}
"""What every look at a price finds."""


async def charged_as_approved(servers: Servers) -> str:
    return await _suspended(servers, asking_again=False)


async def charged_as_approved_asking_again(servers: Servers) -> str:
    return await _suspended(servers, asking_again=True)


async def _suspended(servers: Servers, *, asking_again: bool) -> str:
    ends: Counter[tuple[str, str]] = Counter()
    async with MCPAdapter(servers.moving_price) as adapter:
        till = Till(await tools_of(adapter))
        graph = graph_of(till.pay_asking_again if asking_again else till.pay)
        orders: list[str] = []
        for number in range(servers.calls):
            turn, which = divmod(number, len(MOVES))
            move, tool = list(MOVES)[which], ("pay", "pay_kept")[turn % 2]
            orders.append(order := f"{'again' if asking_again else 'plain'}-{number}")
            await till.offer(order, *MOVES[move])
            ends[f"{tool}, {move}", await till.run(graph, tool, order)] += 1
        charges = await till.charges(*orders)
    without = [charge for charge in charges if not till.approved[charge]]
    twice = [order for order, times in Counter(order for order, _ in charges).items() if times > 1]
    told = "; ".join(f"{call}: {end} {times}" for (call, end), times in sorted(ends.items()))
    note = f"{servers.calls} calls, {len(charges)} charged, {len(without)} without approval ({told})"
    assert not without, f"{note}; the first were {without[:3]}"
    assert not twice, f"{note}; charged twice: {twice[:3]}"
    stayed = ends["pay, stays", "charged"] + ends["pay_kept, stays", "charged"]
    equal(stayed, len(range(0, servers.calls, len(MOVES))))
    return note


async def stuck_after_the_error(servers: Servers) -> str:
    """The answer that was kept stays in the checkpoint: only a new run asks again."""
    async with MCPAdapter(servers.moving_price) as adapter:
        till = Till(await tools_of(adapter))
        graph = graph_of(till.pay)
        await till.offer("stuck", 100, 200)
        equal(await till.run(graph, "pay", "stuck"), "refused")
        new_answer = Command(resume={"responses": {"any": {"action": "accept", "content": {"value": True}}}})
        for again in (None, new_answer):
            try:
                await graph.ainvoke(again, thread("stuck"))
            except ValueError as error:
                contains(error, NOT_THE_QUESTION)
            else:
                raise AssertionError("the run went on")
        equal(await till.run(graph, "pay", "stuck"), "charged")
        equal(await till.charges("stuck"), [("stuck", 200)])
        equal(till.approved["stuck", 200], 1)
    return "resuming again fails again; a new run in the same thread asks about the new price"


async def asked_again(servers: Servers) -> None:
    """The snippet's middleware: the person is asked about the new price instead of an error."""
    async with MCPAdapter(servers.moving_price) as adapter:
        till = Till(await tools_of(adapter))
        await till.offer("asked-again", 100, 200)
        person = Person()
        agent = await langgraph_desk.desk_agent(
            servers.moving_price, Scripted(tool="pay_kept", arguments={"order": "asked-again"})
        )
        equal(await langgraph_desk.run(agent, "Pay it.", person, "1"), "Charged 200 EUR.")
        equal(person.asked, ["Pay 100 EUR?", "Pay 200 EUR?"])
        equal(await till.charges("asked-again"), [("asked-again", 200)])


async def price_in_the_answer(servers: Servers) -> str:
    """The stronger form. It holds whatever a client does with keys."""
    async with MCPAdapter(servers.moving_price) as adapter:
        till = Till(await tools_of(adapter))
        graph = graph_of(till.pay)
        await till.offer("chosen", 100, 200)
        equal(await till.run(graph, "pay_chosen", "chosen"), "refused")
        await till.offer("chosen-stays", 100)
        equal(await till.run(graph, "pay_chosen", "chosen-stays"), "charged")
        equal(await till.charges("chosen", "chosen-stays"), [("chosen-stays", 100)])
    return "a kept answer is not among the choices of the new question"


async def another_order(servers: Servers) -> str:
    """A node that pays two orders. Answers are kept by position: the first order's can come to the second's question."""
    async with MCPAdapter(servers.moving_price) as adapter:
        till = Till(await tools_of(adapter))
        graph = graph_of(till.pay)
        await till.offer("first", 100, 10)
        await till.offer("second", 100)
        state = await graph.ainvoke({"tool": "pay_small_unasked", "orders": ["first", "second"]}, thread("two"))
        try:
            await graph.ainvoke(till.approve(state, "first"), thread("two"))
        except ValueError as error:
            contains(error, NOT_THE_QUESTION)
        equal(await till.charges("second"), [])
    return "approved for one order, the other is not charged, though its question reads the same"


# A client that starts anew spends an approval per call.


async def retried_node(servers: Servers) -> str:
    async with MCPAdapter(servers.moving_price) as adapter:
        till = Till(await tools_of(adapter))
        times = min(servers.calls, 20)
        orders = [f"retried-{number}" for number in range(times)]
        for order in orders:
            await till.offer(order, 100)
            graph = graph_of(_failing_once(till.pay), retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
            equal(await till.run(graph, "pay", order), "charged")
        charges = await till.charges(*orders)
        equal(sum(till.approved[order, 100] for order in orders), times)
        equal(len(charges), 2 * times)
    return f"{times} approvals, {len(charges)} charges: one for each call that was started"


async def retried_node_with_a_business_key(servers: Servers) -> str:
    adapter = MCPAdapter(servers.paid_once)
    tools = await tools_of(adapter)
    times = min(servers.calls, 20)
    said: list[str] = []

    async def pay(state: Paying) -> Paying:
        said.append((await call(tools, "pay", order_id=state["orders"][0])).text)
        return {"said": said[-1]}

    async with adapter:
        for number in range(times):
            config = thread(str(number))
            graph = graph_of(_failing_once(pay), retry_policy=RetryPolicy(initial_interval=0.001, jitter=False))
            state = await graph.ainvoke({"orders": [f"retried-{number}"]}, config)
            (one,) = state["__interrupt__"]
            await graph.ainvoke(Command(resume=await langgraph_desk.answer(one.value["requests"], Person())), config)
    charged = [text for text in said if text == "Charged 100 EUR."]
    refused = [text for text in said if "is paid already" in text]
    equal((len(charged), len(refused)), (times, times))
    return f"{times} approvals, {len(charged)} charges, {len(refused)} calls were told that the order is paid"


def _failing_once(node):
    """A node that fails after it has paid, the first time."""
    runs: Counter[str] = Counter()

    async def failing(state: Paying) -> Paying:
        paid = await node(state)
        runs[state["orders"][0]] += 1
        if runs[state["orders"][0]] == 1:
            raise ConnectionError("the node's next step failed")
        return paid

    return failing


async def resumed_twice(servers: Servers) -> str:
    """Two workers, or two clicks, resume the same run."""
    async with MCPAdapter(servers.moving_price) as adapter:
        till = Till(await tools_of(adapter))
        graph = graph_of(till.pay)
        await till.offer("clicked", 100)
        state = await graph.ainvoke({"tool": "pay", "orders": ["clicked"]}, thread("clicked"))
        answer = till.approve(state, "clicked")
        await asyncio.gather(*(graph.ainvoke(answer, thread("clicked")) for _ in range(2)))
        charges = await till.charges("clicked")
        equal(len(charges), 2)
    return "1 approval, 2 charges"


CHECKS = {
    "speaks 2026-07-28": speaks_the_modern_era,
    "no question": asks_nothing,
    "two questions": suspends_twice,
    "two questions, stdio": suspends_over_stdio,
    "declined": declines,
    "pushed questions are refused": pushed_is_refused,
    "a handler of one's own, both eras": answered_by_a_handler,
    "interrupt() in a handler": interrupt_in_a_handler,
    "sampling and roots": sampling_and_roots,
    "charged as approved": charged_as_approved,
    "charged as approved, asking again": charged_as_approved_asking_again,
    "after the error": stuck_after_the_error,
    "asked again by an agent": asked_again,
    "the price in the answer": price_in_the_answer,
    "an answer for another order": another_order,
    "a node retried after it paid": retried_node,
    "the same, with a business key": retried_node_with_a_business_key,
    "resumed twice": resumed_twice,
}

if __name__ == "__main__":
    main(CHECKS)
