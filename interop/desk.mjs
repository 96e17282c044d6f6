// A travel desk written with the TypeScript SDK, for the suites: on stdio, or over HTTP when a port is given.
//
// It asks in every way a server can: two forms, the second of which depends on the first, a model's text, the client's
// roots, and a page to be opened. What was answered travels on in the signed requestState, and an answer counts only
// with the state of the round that asked for it. suites/python_server.py is the same desk in Python.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import {
    acceptedContent,
    createMcpHandler,
    createRequestStateCodec,
    fromJsonSchema,
    inputRequired,
    inputResponse,
    McpServer
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const DATES = object({
    arrival: { type: 'string', format: 'date' },
    nights: { type: 'integer', minimum: 1, maximum: 30 }
});
const ROOM = object({ room: { type: 'string', enum: ['single', 'double'] } });
const CITY = object({ city: { type: 'string' } });
const CALENDAR = { message: 'Connect your calendar.', url: 'https://calendar.example/connect' };

const states = createRequestStateCodec({ key: randomBytes(32) });

function makeServer() {
    const server = new McpServer({ name: 'travel-desk', version: '1.0.0' }, { requestState: { verify: states.verify } });
    const register = (name, description, inputSchema, run) =>
        server.registerTool(name, { description, inputSchema: fromJsonSchema(inputSchema) }, run);
    register('book_trip', 'Book a trip to a city.', CITY, bookTrip);
    register('describe_city', 'Describe a city.', CITY, describeCity);
    register('where_am_i', 'Say where the client works.', object({}), whereAmI);
    register('connect_calendar', 'Connect a calendar.', object({}), connectCalendar);
    return server;
}

async function bookTrip({ city }, ctx) {
    const known = progress(ctx, 'book_trip', city);
    const state = { tool: 'book_trip', city };
    const dates = known?.dates ? { content: known.dates } : known && filled(ctx, 'dates', DATES);
    if (!dates) return ask('dates', form(`When do you want to be in ${city}?`, DATES), state);
    if (dates.refused) return told(`No trip to ${city} was booked: the dates were ${dates.refused}.`);
    const { arrival, nights } = dates.content;
    const stay = `in ${city}, from ${arrival} for ${nights} nights`;
    const room = known.dates && filled(ctx, 'room', ROOM);
    if (!room) return ask('room', form(`Which room ${stay}?`, ROOM), { ...state, dates: dates.content });
    if (room.refused) return told(`No trip to ${city} was booked: the room was ${room.refused}.`);
    const chosen = room.content.room;
    return told(`Booked a ${chosen} room ${stay}.`, { city, arrival, nights, room: chosen });
}

async function describeCity({ city }, ctx) {
    const known = progress(ctx, 'describe_city', city);
    const answer = known && inputResponse(ctx.mcpReq.inputResponses, 'description');
    if (answer?.kind !== 'sampling') {
        const content = { type: 'text', text: `Describe ${city} in one sentence.` };
        const asked = inputRequired.createMessage({
            messages: [{ role: 'user', content }],
            systemPrompt: 'You work at a travel desk.',
            maxTokens: 100
        });
        return ask('description', asked, { tool: 'describe_city', city });
    }
    const description = [answer.result.content].flat().map(block => block.text ?? '').join('');
    return told(`${city}: ${description}`, { city, description });
}

async function whereAmI(_, ctx) {
    const known = progress(ctx, 'where_am_i');
    const answer = known && inputResponse(ctx.mcpReq.inputResponses, 'roots');
    if (answer?.kind !== 'roots') return ask('roots', inputRequired.listRoots(), { tool: 'where_am_i' });
    const roots = answer.roots.map(root => root.uri);
    return told(roots.length > 0 ? `You are in ${roots.join(' and ')}.` : 'You are nowhere.', { roots });
}

async function connectCalendar(_, ctx) {
    const known = progress(ctx, 'connect_calendar');
    const answer = known && inputResponse(ctx.mcpReq.inputResponses, 'calendar');
    if (answer?.kind !== 'elicit') {
        return ask('calendar', inputRequired.elicitUrl(CALENDAR), { tool: 'connect_calendar' });
    }
    if (answer.action === 'accept') return told('The calendar page was opened.', { opened: true });
    return told(`No calendar was connected: the page was ${past(answer.action)}.`, { opened: false });
}

// What the state of this call holds; undefined in the first round. The codec has verified that it is ours; that it is
// this call's is for us to see. The SDK makes an error of the tool of whatever is thrown here.
function progress(ctx, tool, city) {
    const known = ctx.mcpReq.requestState();
    if (known && (known.tool !== tool || known.city !== city)) throw new Error('The requestState is of another call.');
    return known;
}

// What a form was filled with, or how it was refused; undefined if it was not answered, or not as it asks.
function filled(ctx, key, schema) {
    const answer = inputResponse(ctx.mcpReq.inputResponses, key);
    if (answer.kind !== 'elicit') return undefined;
    if (answer.action !== 'accept') return { refused: past(answer.action) };
    const content = acceptedContent(ctx.mcpReq.inputResponses, key, fromJsonSchema(schema));
    return content && { content };
}

function form(message, requestedSchema) {
    return inputRequired.elicit({ message, requestedSchema });
}

function past(action) {
    return action === 'decline' ? 'declined' : 'cancelled';
}

async function ask(key, request, state) {
    return inputRequired({ inputRequests: { [key]: request }, requestState: await states.mint(state) });
}

function told(text, structuredContent) {
    return { content: [{ type: 'text', text }], ...(structuredContent && { structuredContent }) };
}

function object(properties) {
    return { type: 'object', properties, required: Object.keys(properties) };
}

const [port] = process.argv.slice(2);
if (port === undefined) {
    serveStdio(makeServer);
} else {
    const validateHost = localhostHostValidation();
    const validateOrigin = localhostOriginValidation();
    const handle = toNodeHandler(createMcpHandler(makeServer));
    createServer((req, res) => {
        if (validateHost(req, res) && validateOrigin(req, res)) void handle(req, res);
    }).listen(Number(port), '127.0.0.1');
}
