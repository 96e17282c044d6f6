"""What a prompt may return, and the messages that become of it."""

from typing import Any

import pytest
from mcp_types import GetPromptResult, PromptMessage, TextContent

from bespeak import AssistantMessage, Audio, Image, Message, UserMessage
from bespeak.server.features.prompt_results import prompt_result

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
SOUND = {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}


def text(said: str, role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": {"type": "text", "text": said}}


@pytest.mark.parametrize(
    ("returned", "messages"),
    [
        ("hello", [text("hello")]),
        (["hello", "there"], [text("hello"), text("there")]),
        (("hello",), [text("hello")]),
        ([], []),
        (UserMessage("hello"), [text("hello")]),
        (AssistantMessage("hello"), [text("hello", "assistant")]),
        (Message("hello", role="assistant"), [text("hello", "assistant")]),
        (UserMessage(TextContent(type="text", text="hello")), [text("hello")]),
        (UserMessage(Image(data=b"hi", format="png")), [{"role": "user", "content": PICTURE}]),
        (UserMessage(Audio(data=b"hi", format="wav")), [{"role": "user", "content": SOUND}]),
        (Image(data=b"hi", format="png"), [{"role": "user", "content": PICTURE}]),
        (
            [UserMessage("a"), AssistantMessage("b"), "c"],
            [text("a"), text("b", "assistant"), text("c")],
        ),
        ({"role": "assistant", "content": "hello"}, [text("hello", "assistant")]),
        ({"role": "user", "content": {"type": "text", "text": "hello"}}, [text("hello")]),
        ({"role": "user", "content": Image(data=b"hi", format="png")}, [{"role": "user", "content": PICTURE}]),
        ({"a": 1}, [text('{\n  "a": 1\n}')]),
        (7, [text("7")]),
    ],
)
def test_a_returned_value_becomes_messages(returned: Any, messages: list[dict[str, Any]]) -> None:
    assert prompt_result(returned, "") == {"messages": messages}


def test_a_description_is_sent_if_there_is_one() -> None:
    assert prompt_result("hello", "Says hello")["description"] == "Says hello"


def test_a_result_is_sent_as_it_is() -> None:
    message = PromptMessage(role="user", content=TextContent(type="text", text="hello"))
    result = GetPromptResult(description="own", messages=[message], _meta={"a": None})
    assert prompt_result(result, "ignored") == {
        "description": "own",
        "messages": [text("hello")],
        "_meta": {"a": None},
    }
    assert "_meta" not in prompt_result(GetPromptResult(messages=[message]), "")


@pytest.mark.parametrize("returned", [None, ["hello", None]])
def test_nothing_is_not_a_message(returned: Any) -> None:
    message = r"^a prompt returned None where a message was expected; return text, messages or content blocks$"
    with pytest.raises(TypeError, match=message):
        prompt_result(returned, "")


@pytest.mark.parametrize(
    "returned", [{"role": "system", "content": "hello"}, {"role": "user"}, {"role": "user", "content": {"type": "x"}}]
)
def test_a_dict_with_a_role_is_a_message(returned: Any) -> None:
    with pytest.raises(ValueError, match=r"^a prompt returned a dict that is not a message: "):
        prompt_result(returned, "")
