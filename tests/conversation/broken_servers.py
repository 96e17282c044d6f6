"""For each rule a raw server that breaks just it, and a legal neighbour that differs in one thing."""

import json
from typing import Any

from tests.conversation.probed_servers import PAIRS
from tests.conversation.raw_servers import (
    CACHED,
    ID,
    NOVEMBER,
    SCHEMA,
    Json,
    Raw,
    asks,
    done,
    failed,
    form,
    log,
    note,
    page,
    progress,
    pushed,
    result,
    said,
)

PUSHED_PAGE = pushed(page("https://x.example", elicitationId="1"))
OPENED = "tool: x, inputResponses: [{otherwise: {url: done}}]"
SAMPLED = "tool: x, inputResponses: [{otherwise: {sample: y}}]"
LISTED = "tool: x, inputResponses: [{otherwise: {roots: ['file:///a']}}]"
FLIPPED = "tool: x, inputResponses: {q: y}, tamper: {round: 1, requestState: flip}"
OLDER = "tool: x, inputResponses: {q: y, r: y}, tamper: {round: 2, requestState: older-round}"
MALFORMED = "tool: x, inputResponses: {q: y}, tamper: {round: 1, inputResponses: text}"
RESTARTED = "tool: x, inputResponses: {q: y}, fault: {round: 1, restart: true}"
LOST = (
    "tool: x, inputResponses: {q: y}, fault: {round: 1, drop: response}, retry: 1, "
    "verify: {tool: x, expect: {text: 'paid 1'}}"
)
SUPERFLUOUS = "tool: x, inputResponses: {q: y}, tamper: {round: 1, inputResponses: unknown-key}"
MISFIT = "tool: x, arguments: {n: y}"
UNASKED = "tool: x, declare: {}, expect: {error: {code: -32021}}"
READ = "resource: 'file:///a'"
NUMBER: Json = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
OLD: Json = {"resultType": ..., "structuredContent": {}}
"""A result of an older revision."""
CONTENTS: Json = {"contents": [{"uri": "file:///a", "text": "x"}]}
COMPLETED: Json = {"resultType": "complete", "completion": {"values": ["x"] * 100}}
PAGES: Json = {"elicitations": [{"mode": "url", "elicitationId": "1", "url": "https://x.example", "message": "Open"}]}
NEEDS: Json = {"requiredCapabilities": {"elicitation": {}}}
USE: Json = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]}
USED: Json = {"role": "user", "content": [{"type": "tool_result", "toolUseId": "1", "content": []}]}
TWICE = '{"jsonrpc": "2.0", "id": "$id", "result": {"resultType": "complete", "content": [], "x": 1, "%s": 1}}'
TWO_KEYS = (
    '{"jsonrpc": "2.0", "id": "$id", "result": {"resultType": "input_required", "requestState": "s", "inputRequests": {'
    f'"q": {json.dumps(form())}, "%s": {json.dumps(form())}}}}}}}'
)


def sampled(*messages: Json) -> Json:
    params = {"messages": list(messages), "maxTokens": 9.0, "tools": list[Json]()}
    return {"method": "sampling/createMessage", "params": params}


def completing(*messages: Any) -> Raw:
    ref = "params: {ref: {type: ref/prompt, name: x}, argument: {name: y, value: z}}"
    return said(*messages, capabilities={"completions": {}}, test=f"method: completion/complete, {ref}")


def opened(page_: str) -> Json:
    return note("elicitation/complete", elicitationId=page_)


def image(data: str) -> Json:
    return {"type": "image", "data": data, "mimeType": "image/png"}


def prompted(content: Json) -> Json:
    return result(resultType="complete", messages=[{"role": "user", "content": content}])


def priced(sum_: int) -> Json:
    question = form()
    return {**question, "params": {**question["params"], "message": f"Pay {sum_}?"}}


def paid(sum_: int) -> Json:
    return done(content=[{"type": "text", "text": f"paid {sum_}"}])


def heard() -> Json:
    """A result with a sound in it, of an older revision."""
    return done(resultType=..., content=[{"type": "audio", "data": "", "mimeType": "audio/wav"}])


def in_header(kind: str) -> Json:
    """A schema whose property is repeated in a header."""
    return {"type": "object", "properties": {"n": {"type": kind, "x-mcp-header": "N"}}}


ANSWERED = Raw([[asks()], [done()]])
SERVERS: dict[str, tuple[Raw, Raw]] = {
    # Messages
    "envelope": (said({**done(), "jsonrpc": "1.0"}), said(done())),
    "duplicate-member": (said(TWICE % "x"), said(TWICE % "y")),
    "stdout": (said("working on it", done()), said(log(data="working on it"), done())),
    "pushed": (
        said({"jsonrpc": "2.0", "id": 9, "method": "roots/list"}, done(), test=LISTED),
        Raw([[asks({"method": "roots/list"})], [done()]], test=LISTED),
    ),
    "after-final": (said(done(), progress(1)), said(progress(1), done())),
    "session-id": (
        said(done(), http=True, headers={"Mcp-Session-Id": "abc"}),
        said(done(), http=True, headers={"X-Request-Id": "abc"}),
    ),
    "event-ids": (
        said(log(), done(), http=True, event="id: 1\n"),
        said(log(), done(), http=True, event="event: message\n"),
    ),
    "accepted": (
        said(done(**OLD), http=True, revision=NOVEMBER, accepted=200),
        said(done(**OLD), http=True, revision=NOVEMBER),
    ),
    "content-type": (
        said(done(), http=True, kind="text/plain"),
        said(done(), http=True, kind="application/json; charset=utf-8"),
    ),
    "request-id": (
        said(pushed(form()), pushed(form()), done(**OLD), revision=NOVEMBER),
        said(pushed(form()), {**pushed(form()), "id": "push 2"}, done(**OLD), revision=NOVEMBER),
    ),
    "request-id-type": (
        said({**pushed(form()), "id": None}, done(**OLD), revision=NOVEMBER),
        said({**pushed(form()), "id": 0}, done(**OLD), revision=NOVEMBER),
    ),
    "trace-context": (
        said(done(_meta={"traceparent": "00-1-1-01"})),
        said(done(_meta={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"})),
    ),
    "meta-keys": (said(done(_meta={"dev.mcp/x": 1})), said(done(_meta={"com.example.mcp/x": 1}))),
    # Results
    "no-result-type": (said(done(resultType=...)), said(done(resultType=...), revision=NOVEMBER)),
    "result-type": (
        said(done(resultType="task")),
        said(done(resultType="task"), test="tool: x, declare: {extensions: {io.modelcontextprotocol/tasks: {}}}"),
    ),
    "result": (said(done(isError="no")), said(done(isError=False))),
    "content": (said(done(content=...)), said(done(content=[]))),
    "later-block": (said(heard(), revision="2024-11-05"), said(heard(), revision="2025-03-26")),
    "base64": (said(done(content=[image("a*b=")])), said(done(content=[image("YQ==")]))),
    "prompt-media": (
        said(prompted({"type": "image", "data": "", "mimeType": "png"}), test="prompt: x"),
        said(prompted({"type": "image", "data": "", "mimeType": "image/png"}), test="prompt: x"),
    ),
    "prompt-resource": (
        said(prompted({"type": "resource", "resource": {"uri": "file:///a", "text": "x"}}), test="prompt: x"),
        said(
            prompted({"type": "resource", "resource": {"uri": "file:///a", "text": "x", "mimeType": "text/plain"}}),
            test="prompt: x",
        ),
    ),
    "resource-uri": (
        said(done(content=[{"type": "resource_link", "uri": "my notes:1", "name": "x"}])),
        said(done(content=[{"type": "resource_link", "uri": "my-notes:1", "name": "x"}])),
    ),
    "structured-text": (said(done(structuredContent={}, content=[])), said(done(structuredContent={}))),
    "structured-object": (
        said(done(**(OLD | {"structuredContent": None})), revision=NOVEMBER),
        said(done(structuredContent=None)),
    ),
    "output-schema": (
        said(
            done(structuredContent={"n": 1.5}),
            tools=[{"name": "x", "inputSchema": NUMBER, "outputSchema": NUMBER}],
        ),
        said(
            done(structuredContent={"n": 1.0}),
            tools=[{"name": "x", "inputSchema": NUMBER, "outputSchema": NUMBER}],
        ),
    ),
    "tool-schema": (
        said(done(), tools=[{"name": "x", "inputSchema": {"type": "array"}}]),
        said(done(), tools=[{"name": "x", "inputSchema": {"type": "object"}}]),
    ),
    "valid-schema": (
        said(done(), tools=[{"name": "x", "inputSchema": {"type": "object", "required": "n"}}]),
        said(done(), tools=[{"name": "x", "inputSchema": {"type": "object", "required": ["n"]}}]),
    ),
    "tool-name": (
        said(done(), tools=[{"name": "x y", "inputSchema": SCHEMA}], test="tool: x y"),
        said(done(), tools=[{"name": "x.y", "inputSchema": SCHEMA}], test="tool: x.y"),
    ),
    "unique-tool": (
        said(done(), tools=[{"name": "x", "inputSchema": SCHEMA}, {"name": "x", "inputSchema": SCHEMA}]),
        said(done(), tools=[{"name": "x", "inputSchema": SCHEMA}, {"name": "X", "inputSchema": SCHEMA}]),
    ),
    "parameter-header": (
        said(done(), tools=[{"name": "x", "inputSchema": in_header("number")}]),
        said(done(), tools=[{"name": "x", "inputSchema": in_header("integer")}]),
    ),
    "completion": (
        completing(result(**(COMPLETED | {"completion": {"values": ["x"] * 101}}))),
        completing(result(**COMPLETED)),
    ),
    "cache-hints": (
        said(result(**CONTENTS, resultType="complete", ttlMs=1), test=READ),
        said(result(**CONTENTS, **CACHED), test=READ),
    ),
    "page-scope": (said(done(), later_scope="public"), said(done(), later_scope="private")),
    "cache-question": (Raw([[asks(ttlMs=1)], [done()]]), ANSWERED),
    "era": (
        Raw([[asks()], [done(**OLD)]], revision=NOVEMBER),
        said(pushed(form()), done(**OLD), revision=NOVEMBER),
    ),
    # Errors
    "error-code": (
        said(failed(-32002), test="tool: x, expect: {error: {code: -32002}}"),
        said(failed(-32002), test="tool: x, expect: {error: {code: -32002}}", revision=NOVEMBER),
    ),
    "error-range": (
        said(failed(-32001), test="tool: x, expect: {error: {code: -32001}}"),
        said(failed(-31999), test="tool: x, expect: {error: {code: -31999}}"),
    ),
    "error-data": (said(failed(-32021), test=UNASKED), said(failed(-32021, data=NEEDS), test=UNASKED)),
    "error-status": (
        said(failed(-32021, data=NEEDS), test=UNASKED, http=True),
        said(failed(-32021, data=NEEDS), test=UNASKED, http=True, status=400),
    ),
    "page-required": (
        said(failed(-32042), revision=NOVEMBER, test="tool: x, expect: {error: {code: -32042}}"),
        said(failed(-32042, data=PAGES), revision=NOVEMBER, test="tool: x, expect: {error: {code: -32042}}"),
    ),
    "error-meaning": (
        said(failed(-32021, data=NEEDS), test="tool: x, expect: {error: {code: -32021}}"),
        said(failed(-32021, data=NEEDS), test=UNASKED),
    ),
    "unknown-tool": (
        said(failed(-32603), test="tool: y, expect: {error: {code: -32603}}"),
        said(failed(-32602), test="tool: y, expect: {error: {code: -32602}}"),
    ),
    "unknown-prompt": (
        said(failed(-32603), test="prompt: y, expect: {error: {code: -32603}}"),
        said(failed(-32602), test="prompt: y, expect: {error: {code: -32602}}"),
    ),
    "argument-errors": (
        said(failed(-32602), tools=[{"name": "x", "inputSchema": NUMBER}], test=f"{MISFIT}, expect: {{error: {{}}}}"),
        said(
            done(isError=True),
            tools=[{"name": "x", "inputSchema": NUMBER}],
            test=f"{MISFIT}, expect: {{isError: true}}",
        ),
    ),
    # Questions
    "dialect": (
        Raw([[result(inputRequests=[{"id": "q", "kind": "string"}], requestState="s")], [done()]]),
        ANSWERED,
    ),
    "shape": (Raw([[asks(state=5)], [done()]]), Raw([[asks(state="")], [done()]])),
    "empty": (
        Raw([[result(resultType="input_required")], [done()]]),
        Raw([[result(resultType="input_required", requestState="s")], [done()]], test="tool: x"),
    ),
    "duplicate-key": (Raw([[TWO_KEYS % "q"], [done()]]), Raw([[TWO_KEYS % "r"], [done()]])),
    "question": (
        Raw([[asks(sampled() | {"params": {"messages": []}})], [done()]], test=SAMPLED),
        Raw([[asks(sampled())], [done()]], test=SAMPLED),
    ),
    "method": (completing(asks()), completing(result(**COMPLETED))),
    "undeclared": (
        Raw([[asks()], [done()]], test="tool: x, declare: {elicitation: {url: {}}}, inputResponses: {q: y}"),
        Raw([[asks()], [done()]], test="tool: x, declare: {elicitation: {}}, inputResponses: {q: y}"),
    ),
    "form": (
        Raw(
            [[asks(form({"type": "array", "items": {"type": "string"}}))], [done()]],
            test="tool: x, inputResponses: {q: [y]}",
        ),
        Raw(
            [[asks(form({"type": "array", "items": {"type": "string", "enum": ["y"]}}))], [done()]],
            test="tool: x, inputResponses: {q: [y]}",
        ),
    ),
    "url": (
        Raw([[asks(page("example.com/a page"))], [done()]], test=OPENED),
        Raw([[asks(page("https://example.com/a%20page"))], [done()]], test=OPENED),
    ),
    "url-secret": (
        Raw([[asks(page("https://ada:pass@example.com"))], [done()]], test=OPENED),
        Raw([[asks(page("https://example.com/ada:pass@"))], [done()]], test=OPENED),
    ),
    "url-https": (
        Raw([[asks(page("http://example.com"))], [done()]], test=OPENED),
        Raw([[asks(page("http://localhost:8000"))], [done()]], test=OPENED),
    ),
    "elicitation-id": (
        said(pushed(page("https://x.example")), done(**OLD), revision=NOVEMBER, test=OPENED),
        said(pushed(page("https://x.example", elicitationId="1")), done(**OLD), revision=NOVEMBER, test=OPENED),
    ),
    "elicitation-complete": (
        said(PUSHED_PAGE, opened("2"), done(**OLD), revision=NOVEMBER, test=OPENED),
        said(PUSHED_PAGE, opened("1"), done(**OLD), revision=NOVEMBER, test=OPENED),
    ),
    "elicitation-removed": (
        said(opened("1"), done()),
        said(PUSHED_PAGE, opened("1"), done(**OLD), revision=NOVEMBER, test=OPENED),
    ),
    "tool-results": (
        Raw([[asks(sampled(USE))], [done()]], test=SAMPLED),
        Raw([[asks(sampled(USE, USED))], [done()]], test=SAMPLED),
    ),
    "sampling-message": (
        Raw([[asks(sampled({"role": "system", "content": {"type": "text", "text": "x"}}))], [done()]], test=SAMPLED),
        Raw([[asks(sampled({"role": "user", "content": {"type": "text", "text": "x"}}))], [done()]], test=SAMPLED),
    ),
    "declined": (
        Raw([[asks()], [asks()], [done()]], test="tool: x, inputResponses: {q: decline}"),
        Raw([[asks()], [asks(key="r")], [done()]], test="tool: x, inputResponses: {q: decline, r: y}"),
    ),
    "complete-asks": (
        said(done(inputRequests={"q": form()}), test="tool: x"),
        said(done(inputRequests={}), test="tool: x"),
    ),
    "missing-answer": (
        Raw([[asks()], [failed(-32602)]], test="tool: x, inputResponses: {q: omit}, expect: {error: {code: -32602}}"),
        Raw([[asks()], [asks()], [done()]], test="tool: x, rounds: [{answer: {q: omit}}, {answer: {q: y}}]"),
    ),
    "unknown-answer": (
        Raw([[asks()], [failed(-32602)]], test=SUPERFLUOUS),
        Raw([[asks()], [done()]], test=SUPERFLUOUS),
    ),
    # States
    "state-verified": (
        Raw([[asks()], [done()], [asks()]], test=FLIPPED),
        Raw([[asks()], [failed(-32602)]], test=FLIPPED),
    ),
    "state-ignored": (
        Raw([[asks()], [done()], [done()]], test=FLIPPED),
        Raw([[asks()], [failed(-32602)]], test=FLIPPED),
    ),
    "single-use": (
        Raw([[asks()], [done()], [done()], [paid(2)]], test=LOST),
        Raw([[asks()], [done()], [done()], [paid(1)]], test=LOST),
    ),
    "state-bound": (
        Raw([[asks()], [asks(key="r", state="t")], [done()]], test=OLDER),
        Raw([[asks()], [asks(key="r", state="t")], [failed(-32602)]], test=OLDER),
    ),
    "answers-checked": (Raw([[asks()], [done()]], test=MALFORMED), Raw([[asks()], [failed(-32602)]], test=MALFORMED)),
    "stale-answer": (
        Raw([[asks(priced(100))], [asks(priced(200))], [done()]], profile="langgraph"),
        Raw([[asks(priced(100))], [asks(priced(100))], [done()]], profile="langgraph"),
    ),
    "process-state": (
        Raw([[asks()], [done()]], test=RESTARTED),
        Raw([[asks()], [done()]], test=RESTARTED, by_state=True),
    ),
    # Notifications
    "progress-token": (said(progress(1, "another"), done()), said(progress(1), done())),
    "progress-increases": (said(progress(1), progress(1), done()), said(progress(1), progress(1.5), done())),
    "log-level": (said(log("debug"), done()), said(log("info"), done())),
    "logging-capability": (said(log(), done(), capabilities={"tools": {}}), said(log(), done())),
    "log-entry": (said(log("loud"), done()), said(log("emergency"), done())),
    "unsubscribed": (
        said(note("tools/list_changed"), done()),
        said(note("tools/list_changed"), done(**OLD), revision=NOVEMBER),
    ),
    "cancelled": (
        said(note("cancelled", requestId=99), done()),
        said(note("cancelled", requestId=99), done(**OLD), revision=NOVEMBER),
    ),
    "cancels-own": (
        said(note("cancelled", requestId=ID), done(**OLD), revision=NOVEMBER),
        said(pushed(form()), note("cancelled", requestId="push"), done(**OLD), revision=NOVEMBER),
    ),
    # Capabilities
    "undeclared-method": (
        said(failed(-32602), capabilities={"prompts": {}}, test="tool: x, expect: {error: {code: -32602}}"),
        said(failed(-32601), capabilities={"prompts": {}}, test="tool: x, expect: {error: {code: -32601}}"),
    ),
    "declared-list": (
        said(done(), test="method: tools/list, expect: {error: {}}", answers={"tools/list": [failed(-32601)]}),
        said(
            done(),
            test="method: tools/list, expect: {error: {}}",
            answers={"tools/list": [failed(-32601)]},
            capabilities={"prompts": {}},
        ),
    ),
    "capability": (said(done(), capabilities={"prompts": {}}), said(done(), capabilities={"tools": {}})),
    **PAIRS,
}
"""For each rule a server that breaks it, and a legal one."""
