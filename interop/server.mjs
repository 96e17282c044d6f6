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
import { declined, refunded, restockQuestion, scopeQuestion, TOOL } from './orders.mjs';

const states = createRequestStateCodec({ key: randomBytes(32) });

function makeServer() {
    const server = new McpServer({ name: 'refund-desk', version: '1.0.0' }, { requestState: { verify: states.verify } });
    const { name, description, inputSchema, outputSchema } = TOOL;
    server.registerTool(
        name,
        { description, inputSchema: fromJsonSchema(inputSchema), outputSchema: fromJsonSchema(outputSchema) },
        refundOrder
    );
    return server;
}

async function refundOrder(given, ctx) {
    const scopeAsked = scopeQuestion(given.order_id);
    if (scopeAsked && !ctx.mcpReq.requestState()?.full) {
        const scope = inputResponse(ctx.mcpReq.inputResponses, 'scope');
        if (scope.kind === 'missing') return ask('scope', scopeAsked, {});
        if (scope.action !== 'accept') return declined();
    }
    const restockAsked = restockQuestion(given.order_id);
    if (!restockAsked) return refunded(given, false);
    const restock = inputResponse(ctx.mcpReq.inputResponses, 'restock');
    if (restock.kind === 'missing') return ask('restock', restockAsked, { full: true });
    return refunded(given, restock.action === 'accept' && restock.content.restock);
}

async function ask(key, question, state) {
    const inputRequests = { [key]: inputRequired.elicit(question) };
    return inputRequired({ inputRequests, requestState: await states.mint(state) });
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
