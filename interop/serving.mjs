// Serves a server of the TypeScript SDK: on stdio, or over HTTP when a port is given.
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

// Returns the handler of all requests over HTTP. On stdio there is none.
export function serve(makeServer, port) {
    if (port === undefined) {
        serveStdio(makeServer);
        return undefined;
    }
    // The Python server answers with plain JSON; this one with event streams, so that a client meets both.
    const handler = createMcpHandler(makeServer, { responseMode: 'sse' });
    const validateHost = localhostHostValidation();
    const validateOrigin = localhostOriginValidation();
    const handle = toNodeHandler(handler);
    createServer((req, res) => {
        if (validateHost(req, res) && validateOrigin(req, res)) void handle(req, res);
    }).listen(Number(port), '127.0.0.1');
    return handler;
}
