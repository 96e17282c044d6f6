// The TypeScript client at a refund desk, reached by a URL or started by a command.
//
//     node interop/client.mjs [--legacy] http://127.0.0.1:8000/mcp
//     node interop/client.mjs [--legacy] COMMAND [ARGUMENT ...]
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { check, MODERN } from './checks.mjs';

const given = process.argv.slice(2);
const legacy = given[0] === '--legacy';
const [first, ...rest] = legacy ? given.slice(1) : given;

async function connect(answer) {
    const client = new Client({ name: 'interop', version: '1.0.0' }, options(answer));
    if (answer) client.setRequestHandler('elicitation/create', async ({ params }) => answer(params));
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
