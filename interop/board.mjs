// A sprint board written with the TypeScript SDK: on stdio, or over HTTP when a port is given.
import { completable, McpServer, ResourceNotFoundError, ResourceTemplate } from '@modelcontextprotocol/server';
import { register } from './board_contents.mjs';
import { serve } from './serving.mjs';

const capabilities = {
    logging: {},
    tools: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    prompts: { listChanged: true }
};

function makeServer() {
    return register(new McpServer({ name: 'sprint-board', version: '1.0.0' }, { capabilities }), {
        ResourceTemplate,
        optional: (schema, complete) => completable(schema, complete).optional(),
        notFound: (uri, message) => new ResourceNotFoundError(uri, message),
        notify: (ctx, notification) => ctx.mcpReq.notify(notification),
        log: (ctx, level, data) => ctx.mcpReq.log(level, data),
        progressToken: ctx => ctx.mcpReq._meta?.progressToken,
        // Over HTTP every request has a server of its own, and the handler of all of them tells what has changed.
        updated: (server, uri) => (handler ? handler.notify.resourceUpdated(uri) : server.server.sendResourceUpdated({ uri })),
        toolsChanged: server => (handler ? handler.notify.toolsChanged() : server.sendToolListChanged())
    });
}

const handler = serve(makeServer, process.argv[2]);
