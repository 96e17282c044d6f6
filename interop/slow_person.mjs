// The client of the TypeScript SDK 1.x with a person who takes longer to answer than the client waits for a request.
//
//     node interop/slow_person.mjs http://127.0.0.1:8000/mcp
//     node interop/slow_person.mjs COMMAND [ARGUMENT ...]
//
// The desk is interop/patient_desk.py. The client waits 2 seconds instead of its usual 60, the person takes 6.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, ErrorCode } from '@modelcontextprotocol/sdk/types.js';

const PATIENCE_MS = 2_000;
const PERSON_MS = 6_000;

const [first, ...rest] = process.argv.slice(2);
const client = new Client({ name: 'interop', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
const thinking = new Set();

client.setRequestHandler(ElicitRequestSchema, async () => {
    const thought = sleep(PERSON_MS);
    thinking.add(thought);
    await thought;
    thinking.delete(thought);
    return { action: 'accept', content: { value: true } };
});

function refund(order_id, options) {
    const request = { name: 'refund', arguments: { order_id } };
    return client.callTool(request, undefined, { timeout: PATIENCE_MS, ...options });
}

async function givesUp(order_id, options) {
    await assert.rejects(refund(order_id, options), error => {
        assert.equal(error.code, ErrorCode.RequestTimeout, String(error));
        return true;
    });
}

const checks = {
    async 'a slow person is waited for'() {
        const heard = [];
        const onprogress = progress => heard.push(progress);
        const result = await refund('ORD-1', { resetTimeoutOnProgress: true, onprogress });
        assert.ok(!result.isError, JSON.stringify(result));
        assert.equal(result.content[0].text, 'ORD-1 is refunded');
        assert.ok(heard.length >= PERSON_MS / PATIENCE_MS, `${heard.length} heartbeats`);
        assert.ok(heard.every((one, index) => index === 0 || one.progress > heard[index - 1].progress));
        assert.deepEqual(new Set(heard.map(one => one.message)), new Set(['Waiting for an answer']));
        assert.ok(heard.every(one => one.total === undefined));
    },
    // The default: heartbeats arrive, and the client does not count them.
    async 'not without resetTimeoutOnProgress'() {
        await givesUp('ORD-2', { onprogress: () => {} });
    },
    // Without a callback the client asks for no progress, and so there is none to count.
    async 'not without onprogress'() {
        await givesUp('ORD-3', { resetTimeoutOnProgress: true });
    },
    async 'a late answer changes nothing'() {
        await Promise.all(thinking);
        await sleep(500); // for the answers to arrive, if the client still sends them
        const { structuredContent } = await client.callTool({ name: 'refunds', arguments: {} });
        assert.deepEqual(structuredContent, { result: ['ORD-1'] });
    }
};

const transport = first.startsWith('http')
    ? new StreamableHTTPClientTransport(new URL(first))
    : new StdioClientTransport({ command: first, args: rest });
await client.connect(transport);
for (const [what, checking] of Object.entries(checks)) {
    await checking();
    console.log(what);
}
await transport.terminateSession?.();
await client.close();
