// A briefing written with the TypeScript SDK: a prompt and a resource template that ask two questions, the second about the
// first answer. On stdio, or over HTTP when a port is given.
import { randomBytes } from 'node:crypto';
import {
    createRequestStateCodec,
    inputRequired,
    inputResponse,
    McpServer,
    ResourceTemplate
} from '@modelcontextprotocol/server';
import { z } from 'zod';
import { serve } from './serving.mjs';

const states = createRequestStateCodec({ key: randomBytes(32) });

function makeServer() {
    const server = new McpServer({ name: 'briefing', version: '1.0.0' }, { requestState: { verify: states.verify } });
    server.registerPrompt('briefing', { argsSchema: { topic: z.string() } }, ({ topic }, ctx) =>
        asking(ctx, (audience, tone) => {
            const text = `Write a ${tone} briefing on ${topic} for ${audience}.`;
            return { messages: [{ role: 'user', content: { type: 'text', text } }] };
        })
    );
    const template = new ResourceTemplate('briefing://{topic}', { list: undefined });
    server.registerResource('written', template, {}, ({ href }, { topic }, ctx) =>
        asking(ctx, (audience, tone) => ({
            contents: [{ uri: href, text: `The ${tone} briefing on ${topic} for ${audience}.` }]
        }))
    );
    return server;
}

async function asking(ctx, finish) {
    const audience = ctx.mcpReq.requestState()?.audience ?? answer(ctx, 'audience');
    if (audience === undefined) return ask('audience', 'Who is the briefing for?', {});
    const tone = answer(ctx, 'tone');
    return tone === undefined ? ask('tone', `Which tone do ${audience} like?`, { audience }) : finish(audience, tone);
}

function answer(ctx, field) {
    const { kind, content } = inputResponse(ctx.mcpReq.inputResponses, field);
    return kind === 'missing' ? undefined : content[field];
}

async function ask(field, message, state) {
    const requestedSchema = { type: 'object', properties: { [field]: { type: 'string' } }, required: [field] };
    const inputRequests = { [field]: inputRequired.elicit({ message, requestedSchema }) };
    return inputRequired({ inputRequests, requestState: await states.mint(state) });
}

serve(makeServer, process.argv[2]);
