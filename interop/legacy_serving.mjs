// Serves a server of the TypeScript SDK 1.x: on stdio, or over HTTP with sessions when a port is given.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation } from '@modelcontextprotocol/node';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

// `makeServer` is called once for stdio, and once for each session.
export async function serve(makeServer, port) {
    if (port === undefined) {
        await makeServer().connect(new StdioServerTransport());
        return;
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

    const validateHost = localhostHostValidation();
    const validateOrigin = localhostOriginValidation();
    createServer((req, res) => {
        if (validateHost(req, res) && validateOrigin(req, res)) void handle(req, res);
    }).listen(Number(port), '127.0.0.1');
}
