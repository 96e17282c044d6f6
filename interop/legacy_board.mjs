// A sprint board that speaks only the older revisions, written with the TypeScript SDK 1.x: on stdio, or over HTTP with
// sessions when a port is given.
import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { McpError, SubscribeRequestSchema, UnsubscribeRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { register } from './board_contents.mjs';
import { serve } from './legacy_serving.mjs';

const NOT_FOUND = -32002;
const capabilities = { logging: {}, resources: { subscribe: true } };

function makeServer() {
    const server = new McpServer({ name: 'sprint-board', version: '1.0.0' }, { capabilities });
    const subscribed = new Set();
    // The SDK has no subscriptions of its own: a server keeps them itself.
    server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
        subscribed.add(params.uri);
        return {};
    });
    server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
        subscribed.delete(params.uri);
        return {};
    });
    return register(server, {
        ResourceTemplate,
        optional: (schema, complete) => completable(schema.optional(), complete), // the other way round is not completed
        notFound: (uri, message) => new McpError(NOT_FOUND, message, { uri }),
        notify: (extra, notification) => extra.sendNotification(notification),
        log: (extra, level, data) => extra.sendNotification({ method: 'notifications/message', params: { level, data } }),
        progressToken: extra => extra._meta?.progressToken,
        updated: (_, uri) => (subscribed.has(uri) ? server.server.sendResourceUpdated({ uri }) : undefined),
        toolsChanged: () => {} // registering a tool has told it
    });
}

await serve(makeServer, process.argv[2]);
