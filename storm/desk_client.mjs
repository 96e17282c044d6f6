// The client of the TypeScript SDK 1.x at the refund desk: many refunds, each with two questions.
//
//     node storm/desk_client.mjs URL CALLS
//
// Prints what became of its calls as JSON, with the names of `Visits` in desk_visits.py.
import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';

const installed = createRequire(new URL('../interop/package.json', import.meta.url));
const { Client } = installed('@modelcontextprotocol/sdk/client/index.js');
const { StreamableHTTPClientTransport } = installed('@modelcontextprotocol/sdk/client/streamableHttp.js');
const { ElicitRequestSchema } = installed('@modelcontextprotocol/sdk/types.js');

const CLIENTS = 4;
const CALL_MS = 60_000;
const REVISION = '2025-11-25';
const ANSWERS = { full: true, restock: true };

const [url, calls] = process.argv.slice(2);
const visits = { calls: 0, refunded: 0, unasked: 0, doubled: 0, slowest: 0, failures: [] };

async function oneClient() {
    const asked = [];
    const client = new Client({ name: 'storm', version: '1.0.0' }, { capabilities: { elicitation: { form: {} } } });
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
        const [field] = Object.keys(params.requestedSchema.properties);
        asked.push(field);
        return { action: 'accept', content: { [field]: ANSWERS[field] } };
    });
    const transport = new StreamableHTTPClientTransport(new URL(url));
    await client.connect(transport);
    if (transport.protocolVersion !== REVISION) throw new Error(`it speaks ${transport.protocolVersion}`);
    while (visits.calls < Number(calls)) {
        const reason = `typescript ${visits.calls++}`;
        asked.length = 0;
        const began = performance.now();
        try {
            const request = { name: 'refund_order', arguments: { order_id: 'ORD-7002', reason } };
            const result = await client.callTool(request, undefined, { timeout: CALL_MS });
            visits.slowest = Math.max(visits.slowest, (performance.now() - began) / 1000);
            if (!isDeepStrictEqual(asked, ['full', 'restock'])) visits.unasked++;
            const expected = { order_id: 'ORD-7002', cents: 5200, reason, restocked: true };
            if (isDeepStrictEqual(result.structuredContent, expected)) visits.refunded++;
            else visits.failures.push(`${reason}: ${JSON.stringify(result)}`);
        } catch (error) {
            visits.failures.push(`${reason}: ${error}`);
        }
    }
    await transport.terminateSession();
    await client.close();
}

await Promise.all(Array.from({ length: CLIENTS }, oneClient));
console.log(JSON.stringify(visits));
