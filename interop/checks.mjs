// The refund desk as the TypeScript clients must find it: what is called, what is answered, and what has to come back.
//
// Knows neither of the two SDKs: a client is whatever connects as below, and both do.
import assert from 'node:assert/strict';
import { isForms, visiting } from './visits.mjs';

export const MODERN = '2026-07-28';
const FIRST_WITH_FORMS = '2025-06-18'; // and the first with structured content
const SCOPE = ['full', 'ORD-7002 has 2 lines: LAMP-9 (Desk lamp, $45.50), BULB-2 (Light bulb, $6.50). Refund all of it?'];
const RESTOCK = ['restock', 'Put Desk lamp and Light bulb back on the shelf?'];
// How the text begins. Each server may add what a model should make of it.
const DECLINED =
    "Error executing tool refund_order: Resolver for parameter 'scope' could not resolve: elicitation was decline";

const ACCEPT = {
    full: { action: 'accept', content: { full: true } },
    restock: { action: 'accept', content: { restock: true } }
};
const DECLINE = { action: 'decline' };

// Goes through all of it at a revision, saying what held; throws at the first thing that does not.
export async function check(connect, revision) {
    const visit = visiting(connect, revision);

    function refunded(result, expected) {
        assert.ok(!result.isError, JSON.stringify(result));
        const refund = revision < FIRST_WITH_FORMS ? JSON.parse(result.content[0].text) : result.structuredContent;
        assert.deepEqual(refund, { reason: 'changed my mind', ...expected });
    }

    async function servedWithoutQuestions(client) {
        refunded(await refund(client, 'ORD-7001'), { order_id: 'ORD-7001', cents: 1299, restocked: false });
        await assert.rejects(refund(client, 'ORD-7002'), isForms);
    }

    const withoutQuestions = {
        async 'tools/list'() {
            await visit(null, async client => {
                const { tools } = await client.listTools();
                assert.deepEqual(tools.map(tool => tool.name), ['refund_order']);
                assert.deepEqual(Object.keys(tools[0].inputSchema.properties).sort(), ['order_id', 'reason']);
            });
        },
        async 'no question'() {
            const asked = await visit(ACCEPT, async client => {
                refunded(await refund(client, 'ORD-7001'), { order_id: 'ORD-7001', cents: 1299, restocked: false });
            });
            assert.deepEqual(asked, []);
        }
    };
    const withForms = {
        async 'two questions'() {
            const asked = await visit(ACCEPT, async client => {
                await client.listTools(); // the client now checks the result against the tool's output schema
                refunded(await refund(client, 'ORD-7002'), { order_id: 'ORD-7002', cents: 5200, restocked: true });
            });
            assert.deepEqual(asked, [SCOPE, RESTOCK]);
        },
        async 'scope declined'() {
            const asked = await visit({ ...ACCEPT, full: DECLINE }, async client => {
                const result = await refund(client, 'ORD-7002');
                assert.equal(result.isError, true);
                assert.equal(result.content.length, 1);
                assert.ok(result.content[0].text.startsWith(DECLINED), result.content[0].text);
            });
            assert.deepEqual(asked, [SCOPE]);
        },
        async 'restock declined'() {
            const asked = await visit({ ...ACCEPT, restock: DECLINE }, async client => {
                refunded(await refund(client, 'ORD-7002'), { order_id: 'ORD-7002', cents: 5200, restocked: false });
            });
            assert.deepEqual(asked, [SCOPE, RESTOCK]);
        }
    };
    const withoutForms = {
        // What a client declares beyond its revision does not count.
        async 'capability unknown'() {
            assert.deepEqual(await visit(ACCEPT, servedWithoutQuestions), []);
        }
    };
    const missing = {
        async 'capability missing'() {
            await visit(null, servedWithoutQuestions);
        }
    };
    const checks = { ...withoutQuestions, ...(revision < FIRST_WITH_FORMS ? withoutForms : withForms), ...missing };
    for (const [what, checking] of Object.entries(checks)) {
        await checking();
        console.log(what);
    }
}

function refund(client, order_id) {
    return client.callTool({ name: 'refund_order', arguments: { order_id, reason: 'changed my mind' } });
}
