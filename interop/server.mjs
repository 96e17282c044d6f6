// A refund desk written with the TypeScript SDK: on stdio, or over HTTP when a port is given.
//
// It asks in two rounds: what to refund, and then, knowing that, whether to put the goods back on the shelf. The answer
// to the first question travels to the last round in the signed requestState.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
    createMcpHandler,
    createRequestStateCodec,
    fromJsonSchema,
    inputRequired,
    inputResponse,
    McpServer
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const ORDERS = {
    'ORD-7001': [{ sku: 'EBOOK-1', title: 'Dune (e-book)', cents: 1299, shelved: false }],
    'ORD-7002': [
        { sku: 'LAMP-9', title: 'Desk lamp', cents: 4550, shelved: true },
        { sku: 'BULB-2', title: 'Light bulb', cents: 650, shelved: true }
    ]
};
// The words of the Python servers, so that every client checks for the same.
const DECLINED =
    "Error executing tool refund_order: Resolver for parameter 'scope' could not resolve: elicitation was decline";

const states = createRequestStateCodec({ key: randomBytes(32) });

function makeServer() {
    const server = new McpServer({ name: 'refund-desk', version: '1.0.0' }, { requestState: { verify: states.verify } });
    server.registerTool(
        'refund_order',
        {
            description: 'Refund an order.',
            inputSchema: object({ order_id: { type: 'string' }, reason: { type: 'string' } }),
            outputSchema: object({
                order_id: { type: 'string' },
                cents: { type: 'integer' },
                reason: { type: 'string' },
                restocked: { type: 'boolean' }
            })
        },
        refundOrder
    );
    return server;
}

async function refundOrder({ order_id, reason }, ctx) {
    const lines = ORDERS[order_id];
    const shelved = lines.filter(line => line.shelved).map(line => line.title);
    if (lines.length > 1 && !ctx.mcpReq.requestState()?.full) {
        const scope = inputResponse(ctx.mcpReq.inputResponses, 'scope');
        if (scope.kind === 'missing') {
            const listed = lines.map(line => `${line.sku} (${line.title}, $${(line.cents / 100).toFixed(2)})`);
            const message = `${order_id} has ${lines.length} lines: ${listed.join(', ')}. Refund all of it?`;
            return ask(ctx, 'scope', message, { full: { type: 'boolean' } }, {});
        }
        if (scope.action !== 'accept') return { content: [{ type: 'text', text: DECLINED }], isError: true };
    }
    let restocked = false;
    if (shelved.length > 0) {
        const restock = inputResponse(ctx.mcpReq.inputResponses, 'restock');
        if (restock.kind === 'missing') {
            const message = `Put ${shelved.join(' and ')} back on the shelf?`;
            return ask(ctx, 'restock', message, { restock: { type: 'boolean' } }, { full: true });
        }
        restocked = restock.action === 'accept' && restock.content.restock;
    }
    const refund = { order_id, cents: lines.reduce((sum, line) => sum + line.cents, 0), reason, restocked };
    return { content: [{ type: 'text', text: JSON.stringify(refund) }], structuredContent: refund };
}

async function ask(ctx, key, message, properties, state) {
    const question = inputRequired.elicit({
        message,
        requestedSchema: { type: 'object', properties, required: Object.keys(properties) }
    });
    return inputRequired({ inputRequests: { [key]: question }, requestState: await states.mint(state) });
}

function object(properties) {
    return fromJsonSchema({ type: 'object', properties, required: Object.keys(properties) });
}

const [port] = process.argv.slice(2);
if (port === undefined) {
    serveStdio(makeServer);
} else {
    const validateHost = localhostHostValidation();
    const validateOrigin = localhostOriginValidation();
    // The Python server answers with plain JSON; this one with event streams, so that a client meets both.
    const handle = toNodeHandler(createMcpHandler(makeServer, { responseMode: 'sse' }));
    createServer((req, res) => {
        if (validateHost(req, res) && validateOrigin(req, res)) void handle(req, res);
    }).listen(Number(port), '127.0.0.1');
}
