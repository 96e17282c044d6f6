"""An agent that suspends while a person thinks, and resumes with the answer."""

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain.mcp import MCPAdapter
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command


@wrap_tool_call
async def ask_again(request, handler):
    """Ask the person again if the kept answer is for a question that is no longer asked."""
    while True:
        try:
            return await handler(request)
        except ValueError as error:
            if "needs an answer for every elicitation request" not in str(error):
                raise


async def desk_agent(target, model):
    tools = await MCPAdapter(target).list_tools()
    return create_agent(model, tools, middleware=[ask_again], checkpointer=InMemorySaver())


async def run(agent, text, person, thread):
    config = {"configurable": {"thread_id": thread}}
    state = await agent.ainvoke({"messages": [{"role": "user", "content": text}]}, config)
    while interrupts := state.get("__interrupt__"):  # the checkpointer has it all: hours may pass here
        answers = {interrupt.id: await answer(interrupt.value["requests"], person) for interrupt in interrupts}
        state = await agent.ainvoke(Command(resume=answers), config)
    return state["messages"][-1].text


async def answer(requests, person):
    responses = {}
    for request in requests:
        content = await person(request["message"], request["requested_schema"])
        responses[request["key"]] = (
            {"action": "decline"} if content is None else {"action": "accept", "content": content}
        )
    return {"responses": responses}
