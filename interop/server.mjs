// A refund desk written with the TypeScript SDK: on stdio, or over HTTP when a port is given.
//
// It asks in two rounds: what to refund, and then, knowing that, whether to put the goods back on the shelf. The answer
// to the first question travels to the last round in the signed requestState.
import { randomBytes } from 'node:crypto';
import {
    createRequestStateCodec,
    fromJsonSchema,
    inputRequired,
    inputResponse,
    McpServer
} from '@modelcontextprotocol/server';
import { declined, refunded, restockQuestion, scopeQuestion, TOOL } from './orders.mjs';
import { serve } from './serving.mjs';

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

serve(makeServer, process.argv[2]);
