// A refund desk that speaks only the older revisions, written with the TypeScript SDK 1.x: on stdio, or over HTTP with
// sessions when a port is given.
//
// It pushes its questions in mid-call and awaits the answers: the first on the stream of the call, the second, as that
// SDK does unless told otherwise, on the stream that the client has opened by GET.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation } from '@modelcontextprotocol/node';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
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

const sessions = new Map();

// What serves a request: its session, or without one a transport that accepts only `initialize`.
async function serving(id) {
    if (id !== undefined) return sessions.get(id);
    const transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: made => void sessions.set(made, transport),
        onsessionclosed: ended => void sessions.delete(ended)
    });
    await makeServer().connect(transport);
    return transport;
}

async function handle(req, res) {
    const transport = await serving(req.headers['mcp-session-id']);
    if (transport) await transport.handleRequest(req, res);
    else res.writeHead(404).end();
}

const [port] = process.argv.slice(2);
if (port === undefined) {
    await makeServer().connect(new StdioServerTransport());
} else {
    const validateHost = localhostHostValidation();
    const validateOrigin = localhostOriginValidation();
    createServer((req, res) => {
        if (validateHost(req, res) && validateOrigin(req, res)) void handle(req, res);
    }).listen(Number(port), '127.0.0.1');
}
