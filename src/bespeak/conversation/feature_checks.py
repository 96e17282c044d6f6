"""Checks calls against what the server lists: the schemas of its tools, and the errors for what it does not list.

The lists are read when they are first needed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mcp_types import ServerCapabilities

from bespeak.client.errors import InvalidServerResponse
from bespeak.client.session import ClientSession
from bespeak.conversation.feature_list import read_pages
from bespeak.conversation.json_values import as_array, as_object
from bespeak.conversation.protocol_rules import RULES, Finding
from bespeak.conversation.responses import Verdict, read_envelope
from bespeak.conversation.tool_schemas import argument_fault, output_findings, tool_findings
from bespeak.protocol.errors import INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, MCPError
from bespeak.terminal.safe_text import quoted

LIST_SECONDS = 5.0
MISTAKEN = (METHOD_NOT_FOUND, INVALID_REQUEST, INTERNAL_ERROR)
"""The codes with which servers answer by mistake if something is not there. Any other may be the server's own."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """What a server lists."""

    entries: Mapping[str, Mapping[str, Any]]
    """By name."""
    complete: bool
    """Whether it was read to its end. Only then is something that is not in it known not to be there."""


@dataclass(frozen=True, slots=True)
class _Call:
    """The last response to a call."""

    method: str
    name: str
    params: Mapping[str, Any]
    result: Mapping[str, Any] | None
    """The result; `None` after an error."""
    code: Any
    """The code of the error."""


class FeatureChecks:
    """The calls of one connection, and the lists of its server."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session
        self._calls: list[_Call] = []
        """The calls that are not checked yet."""
        self._lists: dict[str, _Listed] = {}
        """What the server lists, by method."""
        self._found: list[Finding] = []

    def keep(self, method: str, params: Mapping[str, Any], envelope: Any) -> None:
        """Keep the response to a request, to check it later."""
        if method not in _LISTS or read_envelope(envelope).verdict is not Verdict.COMPLETE:
            return
        message, name = as_object(envelope), params.get("name")
        if isinstance(name, str):
            result: Any = message.get("result")
            self._calls.append(_Call(method, name, params, result, as_object(message.get("error")).get("code")))

    async def check(self, declared: ServerCapabilities) -> list[Finding]:
        """Return what is wrong with the calls since the last time."""
        calls, self._calls = self._calls, []
        for call in calls:
            if getattr(declared, _LISTS[call.method][1]) is not None:
                self._found += await self._checked(call)
        found, self._found = self._found, []
        return [finding for finding in found if RULES[finding.rule].holds_at(self._session.version)]

    async def tools(self, declared: ServerCapabilities) -> Mapping[str, Mapping[str, Any]]:
        """Return the tools that the server lists, by name; none if they cannot be listed."""
        return {} if declared.tools is None else (await self._listed("tools/call")).entries

    async def _checked(self, call: _Call) -> list[Finding]:
        if call.result is None and call.code not in (*MISTAKEN, INVALID_PARAMS):
            return []
        if call.result is not None and call.method != "tools/call":
            return []
        known = _LISTS[call.method][0] in self._lists
        found = list(self._findings(call, await self._listed(call.method)))
        if found and known:  # the list may have changed since it was read
            self._lists.clear()
            found = list(self._findings(call, await self._listed(call.method)))
        return found

    def _findings(self, call: _Call, listed: _Listed) -> Iterator[Finding]:
        entry = listed.entries.get(call.name)
        if entry is None and not listed.complete:
            return
        if call.method == "prompts/get":
            yield from _prompt(call, entry)
        elif entry is None:
            if call.code in MISTAKEN:
                what = f"a call of {quoted(call.name)}, which the server does not list, was answered with {call.code}"
                yield Finding("unknown-tool", what)
        elif call.result is not None:
            yield from tool_findings(call.name, entry)
            yield from output_findings(call.name, entry, call.result)
        elif call.code == INVALID_PARAMS and not call.params.keys() & {"inputResponses", "requestState"}:
            fault = argument_fault(entry, call.params.get("arguments", {}))
            if fault is not None:
                what = f"arguments of {quoted(call.name)} that do not match its schema were answered with {call.code}"
                yield Finding("argument-errors", f"{what}: {fault}")

    # The lists

    async def _listed(self, called: str) -> _Listed:
        method, member = _LISTS[called]
        if method not in self._lists:
            self._lists[method] = await self._read(method, member)
        return self._lists[method]

    async def _read(self, method: str, member: str) -> _Listed:
        """What a method lists. Whether the list itself is right is for tests of the list."""
        found: dict[str, Mapping[str, Any]] = {}
        scopes: dict[Any, None] = {}
        repeated: dict[str, None] = {}
        try:
            async for page in read_pages(self._session, method, seconds=LIST_SECONDS):
                scopes[str(page.get("cacheScope"))] = None
                for entry in map(as_object, as_array(page.get(member))):
                    if isinstance(name := entry.get("name"), str):
                        repeated |= {name: None} if name in found else {}
                        found[name] = entry
        except (MCPError, OSError, InvalidServerResponse):
            return _Listed(found, complete=False)
        if method == "tools/list":
            what = "the server lists several tools with the name"
            self._found += [Finding("unique-tool", f"{what} {quoted(name)}") for name in repeated]
        if len(scopes) > 1:
            self._found.append(
                Finding("page-scope", f"the pages of {method} have the cacheScope {' and '.join(scopes)}")
            )
        return _Listed(found, complete=True)


def _prompt(call: _Call, listed: Mapping[str, Any] | None) -> Iterator[Finding]:
    """What is wrong with the error for a prompt that is not listed, or for arguments that are missing."""
    if call.code not in MISTAKEN:
        return
    if listed is None:
        yield Finding(
            "unknown-prompt",
            f"the prompt {quoted(call.name)}, which the server does not list, was answered with {call.code}",
        )
        return
    given = as_object(call.params.get("arguments"))
    wanted = [as_object(one) for one in as_array(listed.get("arguments"))]
    missing = next(
        (one["name"] for one in wanted if one.get("required") is True and one.get("name") not in given), None
    )
    if isinstance(missing, str):
        what = f"the prompt {quoted(call.name)} without its argument {quoted(missing)} was answered with {call.code}"
        yield Finding("unknown-prompt", what)


_LISTS: Mapping[str, tuple[str, str]] = {
    "tools/call": ("tools/list", "tools"),
    "prompts/get": ("prompts/list", "prompts"),
}
"""The list that has the target of a method, and the member of its result; it is also the name of the capability."""
