"""Servers that print, or die, after their answer: which test fails, and that the next one is run."""

from pathlib import Path

import pytest

from tests.testing.canned import messages, rules, run

pytestmark = pytest.mark.timing

WIRE = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    id_, method = message.get("id"), message["method"]
    if method == "server/discover":
        result = {{"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}}
        result |= {{"supportedVersions": ["2026-07-28"], "capabilities": {{"tools": {{}}}}}}
    else:
        result = {{"resultType": "complete", "content": [{{"type": "text", "text": "ok"}}]}}
    print(json.dumps({{"jsonrpc": "2.0", "id": id_, "result": result}}), flush=True)
    if method == "tools/call":
        {then}
"""


def suite(folder: Path, then: str, *names: str) -> Path:
    (folder / "server.py").write_text(WIRE.format(then=then))
    tests = "".join(f"  - {{name: {name}, tool: t}}\n" for name in names)
    path = folder / "a.bespeak.yaml"
    path.write_text(f"version: 1\nservers: {{s: {{command: [python, server.py], timeout: 20}}}}\ntests:\n{tests}")
    return path


async def test_a_line_printed_right_after_the_answer_is_found_in_the_test_it_belongs_to(tmp_path: Path) -> None:
    results = await run(suite(tmp_path, "print('done', flush=True)", "first", "second"))
    assert rules(results[:1]) == rules(results[1:]) == ["stdout"]


async def test_a_server_that_dies_after_its_answer_fails_the_next_test_and_is_reached_again_for_the_one_after(
    tmp_path: Path,
) -> None:
    path = suite(tmp_path, "os._exit(3) if not os.path.exists('died') else None", "first", "second", "third")
    text = (tmp_path / "server.py").read_text().replace("os._exit(3)", "(open('died', 'w').close(), os._exit(3))")
    (tmp_path / "server.py").write_text(text)
    first, second, third = await run(path)
    assert first.passed
    assert third.passed
    assert "exited with code 3" in messages([second])[0]
