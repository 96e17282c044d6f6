// The TypeScript client at one of the programs, reached by a URL or started by a command.
//
//     node interop/client.mjs [--legacy] [--program trip_desk] http://127.0.0.1:8000/mcp
//     node interop/client.mjs [--legacy] [--program trip_desk] COMMAND [ARGUMENT ...]
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { MODERN } from './checks.mjs';
import { chosen } from './programs.mjs';

const given = process.argv.slice(2);
const legacy = given[0] === '--legacy' && given.shift();
const { check, server } = chosen(given);
const [first, ...rest] = server;

async function connect(answer, hear) {
    const client = new Client({ name: 'interop', version: '1.0.0' }, options(answer));
    if (answer) client.setRequestHandler('elicitation/create', async ({ params }) => answer(params));
    client.setNotificationHandler('notifications/resources/updated', hear);
    client.setNotificationHandler('notifications/tools/list_changed', hear);
    const transport = first.startsWith('http')
        ? new StreamableHTTPClientTransport(new URL(first))
        : new StdioClientTransport({ command: first, args: rest });
    await client.connect(transport);
    const close = async () => {
        await transport.terminateSession?.();
        await client.close();
    };
    return { client, revision: client.getNegotiatedProtocolVersion(), close };
}

// At the modern revision, a client that cannot be asked also finds out by itself what the server speaks.
function options(answer) {
    const capabilities = answer ? { elicitation: { form: {} } } : {};
    const mode = legacy ? 'legacy' : answer ? { pin: MODERN } : 'auto';
    return { capabilities, versionNegotiation: { mode } };
}

await check(connect, legacy ? '2025-11-25' : MODERN);
