"""The binary data, the MIME types and the URIs in results."""

from typing import Any

import pytest

from bespeak.conversation.media_checks import media_findings
from tests.conversation.raw_servers import Json


def found(method: str = "tools/call", **result: Any) -> list[tuple[str, str]]:
    return [(one.rule, one.text) for one in media_findings(method, result)]


@pytest.mark.parametrize("data", ["", "YQ==", "YWJj", "Y+/=", "YWJj\nYWJj\r\n", 5, None])
def test_data_is_base64_and_may_have_line_breaks(data: Any) -> None:
    blocks = [{"type": "image", "data": data}, {"type": "resource", "resource": {"blob": data}}]
    assert found(content=blocks) == found("resources/read", contents=[{"blob": data}]) == []


@pytest.mark.parametrize("data", ["YQ", "Y-_=", "a*b=", "data:image/png;base64,YQ==", "\u00e9\u00e9=="])
def test_data_that_is_not_base64_is_found(data: str) -> None:
    text, blob = "the data of a block of type audio is not base64", "the blob of a resource is not base64"
    assert found(content=[{"type": "audio", "data": data}]) == [("base64", text)]
    assert found(content=[{"type": "resource", "resource": {"blob": data, "uri": "a:b"}}]) == [("base64", blob)]
    assert found("resources/read", contents=[{}, {"blob": data}]) == [("base64", blob)]
    assert found(content=[{"type": "text", "data": data}]) == []


def prompt(block: Json) -> list[tuple[str, str]]:
    return found("prompts/get", messages=[{"role": "user", "content": block}, 5])


@pytest.mark.parametrize("kind", ["image/png", "image/svg+xml", "audio/ogg; codecs=opus"])
def test_an_image_and_a_sound_in_a_prompt_have_a_mime_type(kind: str) -> None:
    assert prompt({"type": "image", "data": "", "mimeType": kind}) == []


@pytest.mark.parametrize("kind", ["png", "image/", "image png", ""])
def test_any_other_mime_type_in_a_prompt_is_found(kind: str) -> None:
    text = f"a block of type audio in the prompt has the mimeType '{kind}'"
    assert prompt({"type": "audio", "data": "", "mimeType": kind}) == [("prompt-media", text)]
    assert found(content=[{"type": "audio", "data": "", "mimeType": kind}]) == []


URIS = ["file:///a%20b", "memo:1", "a+b.c-d://x?y#z", "urn:isbn:1", "https://x.example/(a)/[b]"]


@pytest.mark.parametrize("uri", URIS)
def test_a_uri_follows_the_rfc(uri: str) -> None:
    assert found("resources/list", resources=[{"uri": uri}]) == []


@pytest.mark.parametrize("uri", ["notes", "my notes:1", "1a:b", "file:///a b", "memo://\u00e9", "memo:%2", "a:<b>", ""])
def test_any_other_uri_that_the_server_gives_is_found(uri: str) -> None:
    finding = ("resource-uri", f"the resource '{uri}' has a URI that is not valid")
    assert found("resources/list", resources=[{"uri": uri}, 5]) == [finding]
    assert found(content=[{"type": "resource_link", "uri": uri}]) == [finding]
    assert found(content=[{"type": "resource", "resource": {"uri": uri}}]) == [finding]
    assert found("resources/read", contents=[{"uri": uri}]) == []  # which the client has given
