"""Checks a response against what the schema of its revision requires of results and errors."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from bespeak.conversation.differences import shown
from bespeak.conversation.json_values import as_array, as_object, is_whole, kind_of
from bespeak.conversation.media_checks import media_findings
from bespeak.conversation.meta_keys import key_findings
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.conversation.question_checks import question_findings
from bespeak.conversation.responses import Verdict, read_result
from bespeak.conversation.rule_types import JUNE, MARCH
from bespeak.conversation.tool_schemas import tool_findings

CACHEABLE = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
"""Methods whose complete results have cache hints."""
MOST_COMPLETIONS = 100
HINTS = ("ttlMs", "cacheScope")


def response_findings(method: str, envelope: Any, version: str) -> list[Finding]:
    """Return the rules of a revision that the response to a request breaks."""
    message = as_object(envelope)
    found: list[Finding] = []
    if isinstance(message.get("error"), dict):
        found += _error(message["error"])
    elif isinstance(message.get("result"), dict):
        found += _result(method, message["result"], version)
        found += key_findings(message["result"], version)
    return [finding for finding in found if RULES[finding.rule].holds_at(version)]


# Results


def _result(method: str, result: Mapping[str, Any], version: str) -> Iterator[Finding]:
    read = read_result(result, method)
    if read.verdict is Verdict.MALFORMED or "shape" in {finding.rule for finding in read.findings}:
        return  # which is a finding itself
    if read.verdict is Verdict.ASKING:
        hints = [name for name in HINTS if name in result]
        if hints and "resultType" in result:
            yield Finding("cache-question", f"the input_required result has {' and '.join(hints)}")
        for question in read.questions:
            yield from question_findings(question, version)
        return
    if "resultType" not in result:
        yield Finding("no-result-type", "the result has no resultType")
    if method in CACHEABLE:
        yield from _hints(result)
    check = _CHECKS.get(method)
    if check is not None:
        yield from check(result)
    yield from media_findings(method, result)
    for block in _blocks(result):
        kind: Any = block.get("type")
        if isinstance(kind, str) and version < _SINCE.get(kind, ""):
            yield Finding("later-block", f"the result has a block of type {kind}, which came with {_SINCE[kind]}")


def _hints(result: Mapping[str, Any]) -> Iterator[Finding]:
    ttl: Any = result.get("ttlMs")
    if "ttlMs" not in result:
        yield Finding("cache-hints", "the result has no ttlMs")
    elif not is_whole(ttl) or ttl < 0:
        yield Finding("cache-hints", f"ttlMs is {shown(ttl)}, which is not a whole number of at least 0")
    if "cacheScope" not in result:
        yield Finding("cache-hints", "the result has no cacheScope")
    elif result["cacheScope"] not in ("public", "private"):
        yield Finding("cache-hints", f"cacheScope is {shown(result['cacheScope'])}, not public or private")


def _tool(result: Mapping[str, Any]) -> Iterator[Finding]:
    if "isError" in result and not isinstance(result["isError"], bool):
        yield Finding("result", f"isError is {kind_of(result['isError'])}, not a boolean")
    structured = result.get("structuredContent", {})
    if not isinstance(structured, dict):
        yield Finding("structured-object", f"structuredContent is {kind_of(structured)}, not an object")
    yield from _each(result, "content", _block)
    if "structuredContent" in result and not any(isinstance(one.get("text"), str) for one in _blocks(result)):
        yield Finding("structured-text", "the result has structuredContent and no text")


def _prompt(result: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _each(result, "messages", _prompt_message)


def _resource(result: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _each(result, "contents", _contents)


def _listed_tools(result: Mapping[str, Any]) -> Iterator[Finding]:
    yield from _each(result, "tools", _has_texts("name"))
    for tool in map(as_object, as_array(result.get("tools"))):
        if isinstance(tool.get("name"), str):
            yield from tool_findings(tool["name"], tool)


def _listed(name: str, *texts: str) -> "_Check":
    return lambda result: _each(result, name, _has_texts(*texts))


def _completion(result: Mapping[str, Any]) -> Iterator[Finding]:
    completion: Any = result.get("completion")
    values: Any = as_object(completion).get("values")
    if not isinstance(values, list):
        yield Finding("completion", "the result has no completion with values")
        return
    listed = cast("list[Any]", values)
    if len(listed) > MOST_COMPLETIONS:
        yield Finding("completion", f"the completion has {len(listed)} values")
    odd = next((one for one in listed if not isinstance(one, str)), "")
    if odd != "":
        yield Finding("completion", f"a value of the completion is {kind_of(odd)}, not a string")


_Check = Callable[[Mapping[str, Any]], Iterator[Finding]]
_CHECKS: dict[str, _Check] = {
    "tools/call": _tool,
    "prompts/get": _prompt,
    "resources/read": _resource,
    "completion/complete": _completion,
    "tools/list": _listed_tools,
    "prompts/list": _listed("prompts", "name"),
    "resources/list": _listed("resources", "uri", "name"),
    "resources/templates/list": _listed("resourceTemplates", "uriTemplate", "name"),
}


# The parts of a result


def _each(result: Mapping[str, Any], name: str, fault: Callable[[Mapping[str, Any]], str | None]) -> Iterator[Finding]:
    """Check a member that is an array of objects. Only the first fault is told."""
    if name not in result:
        yield Finding("content", f"the result has no {name}")
        return
    entries = result[name]
    if not isinstance(entries, list):
        yield Finding("content", f"{name} is {kind_of(entries)}, not an array")
        return
    for number, entry in enumerate(cast("list[Any]", entries)):
        is_object = isinstance(entry, dict)
        what = fault(cast("dict[str, Any]", entry)) if is_object else f"is {kind_of(entry)}, not an object"
        if what is not None:
            yield Finding("content", f"{name}[{number}] {what}")
            return


def _has_texts(*names: str) -> Callable[[Mapping[str, Any]], str | None]:
    return lambda entry: _lacks_text(entry, names)


def _blocks(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a result: those of a tool, and those in the messages of a prompt."""
    messages = (as_object(one).get("content") for one in as_array(result.get("messages")))
    return [*map(as_object, as_array(result.get("content"))), *map(as_object, messages)]


_SINCE = {"audio": MARCH, "resource_link": JUNE}
"""The blocks that came with a later revision than the first."""


def _block(block: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a block of content; `None` if nothing is."""
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in _BLOCKS:
        return f"has the type {shown(kind)}" if "type" in block else "has no type"
    if lacking := _lacks_text(block, _BLOCKS[kind]):
        return lacking
    if kind != "resource":
        return None
    resource: Any = block.get("resource")
    inner = _contents(cast("dict[str, Any]", resource)) if isinstance(resource, dict) else "is not an object"
    return None if inner is None else f"has a resource that {inner}"


_BLOCKS: dict[str, tuple[str, ...]] = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri", "name"),
    "resource": (),
}
"""The kinds of blocks, and the texts that each must have."""


def _contents(contents: Mapping[str, Any]) -> str | None:
    if lacking := _lacks_text(contents, ("uri",)):
        return lacking
    return None if any(isinstance(contents.get(name), str) for name in ("text", "blob")) else "has no text or blob"


def _prompt_message(message: Mapping[str, Any]) -> str | None:
    if message.get("role") not in ("user", "assistant"):
        return f"has the role {shown(message.get('role'))}"
    content: Any = message.get("content")
    inner = _block(cast("dict[str, Any]", content)) if isinstance(content, dict) else "is not one block"
    return None if inner is None else f"has content that {inner}"


def _lacks_text(entry: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    name = next((name for name in names if not isinstance(entry.get(name), str)), None)
    if name is None:
        return None
    return f"has a {name} that is {kind_of(entry[name])}, not a string" if name in entry else f"has no {name}"


# Errors


def _error(error: Mapping[str, Any]) -> Iterator[Finding]:
    code: Any = error.get("code")
    if "code" not in error:
        yield Finding("envelope", "the error has no code")
    elif not is_whole(code):
        yield Finding("envelope", f"the code of the error is {kind_of(code)}, not a whole number")
    elif not isinstance(error.get("message"), str):
        yield Finding("envelope", "the error has no message, or one that is not a string")
    if is_whole(code):
        yield from _code(int(code), error.get("data"))


def _code(code: int, data: Any) -> Iterator[Finding]:
    if code in FORMER:
        yield Finding(
            "error-code", f"the error has the code {code}, which means {FORMER[code]} in older revisions only"
        )
    elif -32099 <= code <= -32020 and code not in (-32020, -32021, -32022):
        yield Finding("error-code", f"the error has the code {code}, which the protocol does not define")
    elif -32768 <= code <= -32000 and code not in DEFINED:
        yield Finding("error-range", f"the error has the code {code}, which is reserved")
    members = as_object(data)
    if code == -32042 and not _are_pages(members.get("elicitations")):
        yield Finding("page-required", "the error -32042 has no data.elicitations, or one that is not a list of pages")
    if code == -32021 and not isinstance(members.get("requiredCapabilities"), dict):
        yield Finding("error-data", "the error -32021 has no data.requiredCapabilities, or one that is not an object")
    if code == -32022:
        if not _are_texts(members.get("supported")):
            yield Finding("error-data", "the error -32022 has no data.supported, or one that is not a list of strings")
        if not isinstance(members.get("requested"), str):
            yield Finding("error-data", "the error -32022 has no data.requested, or one that is not a string")


FORMER = {-32002: "that a resource was not found", -32042: "that a page must be opened"}
"""Codes that only older revisions have."""
DEFINED = (-32700, -32600, -32601, -32602, -32603, -32020, -32021, -32022)
"""The reserved codes that the protocol defines."""


def _are_pages(value: Any) -> bool:
    """Whether it is a list of questions that open pages, each with all that it needs."""
    return bool(as_array(value)) and all(
        page.get("mode") == "url"
        and all(isinstance(page.get(name), str) for name in ("elicitationId", "url", "message"))
        for page in map(as_object, as_array(value))
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in cast("list[Any]", value))
