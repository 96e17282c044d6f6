// The client of the TypeScript SDK 1.x at one of the programs, reached by a URL or started by a command.
//
//     node interop/legacy_client.mjs REVISION [--program trip_desk] http://127.0.0.1:8000/mcp
//     node interop/legacy_client.mjs REVISION [--program trip_desk] COMMAND [ARGUMENT ...]
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    ElicitRequestSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';
import { chosen } from './programs.mjs';

const [revision, ...given] = process.argv.slice(2);
const { check, server } = chosen(given);
const [first, ...rest] = server;
// Before 2025-11-25 there was one mode, and nothing to say about it.
const CAPABLE = { elicitation: revision < '2025-11-25' ? {} : { form: {} } };

async function connect(answer, hear) {
    const client = new Client({ name: 'interop', version: '1.0.0' }, { capabilities: answer ? CAPABLE : {} });
    if (answer) client.setRequestHandler(ElicitRequestSchema, async ({ params }) => answer(params));
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, hear);
    client.setNotificationHandler(ToolListChangedNotificationSchema, hear);
    const transport = first.startsWith('http')
        ? new StreamableHTTPClientTransport(new URL(first))
        : new StdioClientTransport({ command: first, args: rest });
    const negotiated = proposing(transport);
    await client.connect(transport);
    const close = async () => {
        await transport.terminateSession?.();
        await client.close();
    };
    return { client, revision: await negotiated, close };
}

// This SDK always proposes its latest revision: have the transport propose ours. Resolves to the one negotiated.
function proposing(transport) {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
        if (message.method !== 'initialize') return send(message, options);
        return send({ ...message, params: { ...message.params, protocolVersion: revision } }, options);
    };
    const setHeader = transport.setProtocolVersion?.bind(transport);
    return new Promise(resolve => {
        transport.setProtocolVersion = version => {
            if (version >= '2025-06-18') setHeader?.(version); // the first revision that has the header
            resolve(version);
        };
    });
}

await check(connect, revision);
