// The TypeScript client at a refund desk, reached by a URL or started by a command.
//
//     node interop/client.mjs http://127.0.0.1:8000/mcp
//     node interop/client.mjs COMMAND [ARGUMENT ...]
import assert from 'node:assert/strict';
import { Client, ProtocolError, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

const REVISION = '2026-07-28';
const MISSING_CAPABILITY = -32021;
const SCOPE = ['full', 'ORD-7002 has 2 lines: LAMP-9 (Desk lamp, $45.50), BULB-2 (Light bulb, $6.50). Refund all of it?'];
const RESTOCK = ['restock', 'Put Desk lamp and Light bulb back on the shelf?'];
const DECLINED =
    "Error executing tool refund_order: Resolver for parameter 'scope' could not resolve: elicitation was decline";

const ACCEPT = {
    full: { action: 'accept', content: { full: true } },
    restock: { action: 'accept', content: { restock: true } }
};
const DECLINE = { action: 'decline' };

const [first, ...rest] = process.argv.slice(2);

function transport() {
    if (first.startsWith('http')) return new StreamableHTTPClientTransport(new URL(first));
    return new StdioClientTransport({ command: first, args: rest });
}

// Connects, hands the client over, and closes it again. Without answers the client cannot be asked.
async function visit(answers, mode, use) {
    const asked = [];
    const client = new Client(
        { name: 'interop', version: '1.0.0' },
        { capabilities: answers ? { elicitation: { form: {} } } : {}, versionNegotiation: { mode } }
    );
    if (answers) {
        client.setRequestHandler('elicitation/create', async ({ params }) => {
            const [field] = Object.keys(params.requestedSchema.properties);
            asked.push([field, params.message]);
            return answers[field];
        });
    }
    await client.connect(transport());
    try {
        assert.equal(client.getNegotiatedProtocolVersion(), REVISION);
        await use(client);
    } finally {
        await client.close();
    }
    return asked;
}

const PINNED = { pin: REVISION };

function refund(client, order_id) {
    return client.callTool({ name: 'refund_order', arguments: { order_id, reason: 'changed my mind' } });
}

function refunded(result, expected) {
    assert.ok(!result.isError, JSON.stringify(result));
    assert.deepEqual(result.structuredContent, { reason: 'changed my mind', ...expected });
}

const checks = {
    async 'tools/list'() {
        await visit(null, PINNED, async client => {
            const { tools } = await client.listTools();
            assert.deepEqual(tools.map(tool => tool.name), ['refund_order']);
            assert.deepEqual(Object.keys(tools[0].inputSchema.properties).sort(), ['order_id', 'reason']);
        });
    },
    async 'no question'() {
        const asked = await visit(ACCEPT, 'auto', async client => {
            refunded(await refund(client, 'ORD-7001'), { order_id: 'ORD-7001', cents: 1299, restocked: false });
        });
        assert.deepEqual(asked, []);
    },
    async 'two rounds'() {
        const asked = await visit(ACCEPT, PINNED, async client => {
            await client.listTools(); // the client now checks the result against the tool's output schema
            refunded(await refund(client, 'ORD-7002'), { order_id: 'ORD-7002', cents: 5200, restocked: true });
        });
        assert.deepEqual(asked, [SCOPE, RESTOCK]);
    },
    async 'scope declined'() {
        const asked = await visit({ ...ACCEPT, full: DECLINE }, PINNED, async client => {
            const result = await refund(client, 'ORD-7002');
            assert.equal(result.isError, true);
            assert.deepEqual(result.content, [{ type: 'text', text: DECLINED }]);
        });
        assert.deepEqual(asked, [SCOPE]);
    },
    async 'restock declined'() {
        const asked = await visit({ ...ACCEPT, restock: DECLINE }, PINNED, async client => {
            refunded(await refund(client, 'ORD-7002'), { order_id: 'ORD-7002', cents: 5200, restocked: false });
        });
        assert.deepEqual(asked, [SCOPE, RESTOCK]);
    },
    async 'capability missing'() {
        await visit(null, PINNED, async client => {
            refunded(await refund(client, 'ORD-7001'), { order_id: 'ORD-7001', cents: 1299, restocked: false });
            await assert.rejects(refund(client, 'ORD-7002'), error => {
                assert.ok(error instanceof ProtocolError, String(error));
                assert.equal(error.code, MISSING_CAPABILITY);
                assert.deepEqual(error.data, { requiredCapabilities: { elicitation: { form: {} } } });
                return true;
            });
        });
    }
};

for (const [what, check] of Object.entries(checks)) {
    await check();
    console.log(what);
}
