// The contents of the sprint boards written in TypeScript: those of examples/sprint_board/server.py, so that one client
// checks all of them.
//
// Knows neither of the two SDKs: `register` gets what differs.
import { z } from 'zod';

const PIXEL = 'R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7';
const TEAMS = 'sprint, backlog';

const boards = { sprint: { design: false, build: false, ship: false }, backlog: { 'tidy docs': false } };
let reports = false;

// `sdk` has `ResourceTemplate`; `optional(schema, complete)`, an argument that may be left out and is completed;
// `notFound(uri, text)`, an error; `notify(ctx, notification)`, `log(ctx, level, data)` and `progressToken(ctx)`; and
// `updated(server, uri)` and `toolsChanged(server)`, which tell clients of changes.
export function register(server, sdk) {
    registerTools(server, sdk);
    registerResources(server, sdk);
    registerPrompts(server, sdk);
    return server;
}

function registerTools(server, sdk) {
    server.registerTool(
        'add',
        {
            description: 'Add two numbers.',
            inputSchema: { a: z.number().int(), b: z.number().int().default(1) },
            outputSchema: { result: z.number().int() }
        },
        ({ a, b }) => ({ content: [text(String(a + b))], structuredContent: { result: a + b } })
    );
    server.registerTool(
        'progress',
        {
            title: 'Progress of a board',
            inputSchema: { board: z.string() },
            outputSchema: { board: z.string(), done: z.number(), tasks: z.number() }
        },
        ({ board }) => {
            const states = Object.values(boards[board]);
            const progress = { board, done: states.filter(Boolean).length, tasks: states.length };
            return { content: [text(JSON.stringify(progress))], structuredContent: progress };
        }
    );
    server.registerTool(
        'complete_tasks',
        { inputSchema: { board: z.string(), tasks: z.array(z.string()) } },
        async ({ board, tasks }, ctx) => {
            for (const [index, task] of tasks.entries()) {
                if (!(task in boards[board])) throw new Error(`${board} has no task '${task}'`);
                boards[board][task] = true;
                await sdk.log(ctx, 'info', `${task} is done`);
                const progressToken = sdk.progressToken(ctx);
                if (progressToken === undefined) continue;
                const progress = { progressToken, progress: index + 1, total: tasks.length, message: `Marked ${task}` };
                await sdk.notify(ctx, { method: 'notifications/progress', params: progress });
            }
            await sdk.updated(server, `board://${board}`);
            return { content: [text(`${tasks.length} done`)] };
        }
    );
    server.registerTool('describe_teams', {}, () => ({ content: [text(`There are these teams: ${TEAMS}`)] }));
    server.registerTool('badge', {}, () => ({ content: [{ type: 'image', mimeType: 'image/gif', data: PIXEL }] }));
    server.registerTool('enable_report', {}, async () => {
        reports = true;
        registerReport(server);
        await sdk.toolsChanged(server);
        return { content: [text('reports are available')] };
    });
    if (reports) registerReport(server);
}

function registerReport(server) {
    const done = () => Object.values(boards).flatMap(tasks => Object.values(tasks)).filter(Boolean).length;
    server.registerTool('report', {}, () => ({ content: [text(`${done()} done`)] }));
}

function registerResources(server, sdk) {
    const fixed = (name, uri, config, mimeType, content) =>
        server.registerResource(name, uri, config, ({ href }) => ({ contents: [{ uri: href, mimeType, ...content() }] }));
    fixed('teams', 'teams://all', {}, 'text/plain', () => ({ text: TEAMS }));
    const counts = () => Object.fromEntries(Object.entries(boards).map(([name, tasks]) => [name, Object.keys(tasks).length]));
    const json = 'application/json';
    fixed('stats', 'stats://tasks', { mimeType: json }, json, () => ({ text: JSON.stringify(counts(), null, 2) }));
    fixed('pixel', 'pixels://one', { mimeType: 'image/gif' }, 'image/gif', () => ({ blob: PIXEL }));

    const template = (name, uri, complete, mimeType, content) =>
        server.registerResource(name, new sdk.ResourceTemplate(uri, { list: undefined, complete }), {}, ({ href }, variables) => ({
            contents: [{ uri: href, mimeType, text: content(variables, href) }]
        }));
    const named = value => Object.keys(boards).filter(name => name.startsWith(value));
    template('board', 'board://{name}', { name: named }, 'text/plain', ({ name }, uri) => {
        if (!(name in boards)) throw sdk.notFound(uri, `There is no board '${name}'.`);
        const lines = Object.entries(boards[name]).map(([task, done]) => `[${done ? 'x' : ' '}] ${task}`);
        return lines.join('\n');
    });
    template('task_of', 'task://{board}/{number}{?style}', {}, 'text/markdown', ({ board, number, style }) => {
        const task = Object.keys(boards[board])[Number(number)];
        return style === 'bold' ? `**${task}**` : task;
    });
    template('manual', 'manual://{+path}', {}, 'text/plain', ({ path }, uri) => {
        if (path.split('/').includes('..')) throw sdk.notFound(uri, 'not a page');
        return `The page ${path}.`;
    });
}

function registerPrompts(server, sdk) {
    server.registerPrompt('review', { argsSchema: { code: z.string() } }, ({ code }) => ({
        messages: [message('user', text(`Please review this code:\n\n${code}`))]
    }));
    const tasks = (value, context) =>
        Object.keys(boards[context?.arguments?.board] ?? {}).filter(task => task.startsWith(value));
    server.registerPrompt(
        'stand_up',
        {
            title: 'Stand-up',
            argsSchema: { board: z.string(), task: sdk.optional(z.string(), tasks) }
        },
        ({ board, task }) => ({
            messages: [
                message('user', text(`Let us talk about ${board}.`)),
                message('assistant', text('What is the first task?')),
                message('user', text(task ?? 'design'))
            ]
        })
    );
    server.registerPrompt('with_etiquette', {}, () => {
        const page = { uri: 'manual://etiquette', mimeType: 'text/markdown', text: '# Etiquette\n\nOne task at a time.' };
        return {
            messages: [
                message('user', { type: 'resource', resource: page }),
                message('user', text(`What does it mean for ${TEAMS}?`))
            ]
        };
    });
}

function text(text) {
    return { type: 'text', text };
}

function message(role, content) {
    return { role, content };
}
