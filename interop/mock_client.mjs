// The TypeScript client at `bespeak mock interop/tapes`, reached by a URL or started by a command.
//
//     node interop/mock_client.mjs [--legacy] http://127.0.0.1:8000/mcp
//     node interop/mock_client.mjs [--legacy] COMMAND [ARGUMENT ...]
import assert from 'node:assert/strict';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const given = process.argv.slice(2);
const legacy = given[0] === '--legacy' && given.shift();
const [first, ...rest] = given;
const ANSWERS = { 'SFO serves several cities. Which one?': 'San Francisco', 'Units for San Francisco?': 'C' };
const asked = [];

const client = new Client(
    { name: 'interop', version: '1.0.0' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: legacy ? 'legacy' : 'auto' } },
);
client.setRequestHandler('elicitation/create', async ({ params }) => {
    asked.push(params.message);
    return { action: 'accept', content: { value: ANSWERS[params.message] } };
});
await client.connect(
    first.startsWith('http')
        ? new StreamableHTTPClientTransport(new URL(first))
        : new StdioClientTransport({ command: first, args: rest }),
);
assert.equal(client.getNegotiatedProtocolVersion(), legacy ? '2025-11-25' : '2026-07-28');
const { tools } = await client.listTools();
assert.deepEqual(
    tools.map((tool) => tool.name),
    ['forecast'],
);
const result = await client.callTool({ name: 'forecast', arguments: { loc: 'SFO' } });
assert.equal(result.content[0].text, 'San Francisco in C');
assert.deepEqual(asked, Object.keys(ANSWERS));
await assert.rejects(client.callTool({ name: 'forecast', arguments: { loc: 'LHR' } }), /diverged at round 0/);
await client.close();
console.log('a recorded conversation, and a call that was not recorded');
