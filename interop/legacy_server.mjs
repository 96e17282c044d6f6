// A refund desk that speaks only the older revisions, written with the TypeScript SDK 1.x: on stdio, or over HTTP with
// sessions when a port is given.
//
// It pushes its questions in mid-call and awaits the answers: the first on the stream of the call, the second, as that
// SDK does unless told otherwise, on the stream that the client has opened by GET.
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { serve } from './legacy_serving.mjs';
import { declined, refunded, restockQuestion, scopeQuestion, TOOL } from './orders.mjs';

function makeServer() {
    const server = new Server({ name: 'refund-desk', version: '1.0.0' }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [TOOL] }));
    server.setRequestHandler(CallToolRequestSchema, async ({ params }, { requestId }) => {
        const given = params.arguments;
        const scopeAsked = scopeQuestion(given.order_id);
        if (scopeAsked) {
            const scope = await server.elicitInput(scopeAsked, { relatedRequestId: requestId });
            if (scope.action !== 'accept') return declined();
        }
        const restockAsked = restockQuestion(given.order_id);
        if (!restockAsked) return refunded(given, false);
        const restock = await server.elicitInput(restockAsked);
        return refunded(given, restock.action === 'accept' && restock.content.restock);
    });
    return server;
}

await serve(makeServer, process.argv[2]);
