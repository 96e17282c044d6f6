// The sprint board as the TypeScript clients must find it: what they list, get, read and complete, and what they hear of
// changes.
//
// Knows neither of the two SDKs, like `checks.mjs`.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { MODERN } from './checks.mjs';
import { visiting } from './visits.mjs';

const BOARD = 'board://sprint';
const NOT_FOUND = -32602;
const NOT_FOUND_BEFORE = -32002; // which the client of the SDK 2.x raises as the other one
const HEAR_MS = 10_000;

// Goes through all of it at a revision, saying what held; throws at the first thing that does not.
export async function check(connect, revision) {
    await visiting(connect, revision)(null, async (client, heard) => {
        for (const [what, checking] of Object.entries(checks)) {
            await checking(client, revision, heard);
            console.log(what);
        }
    });
}

const checks = {
    async lists(client) {
        const { prompts } = await client.listPrompts();
        assert.deepEqual(prompts.map(one => one.name), ['review', 'stand_up', 'with_etiquette']);
        const { resources } = await client.listResources();
        assert.deepEqual(resources.map(one => one.uri), ['teams://all', 'stats://tasks', 'pixels://one']);
        const { resourceTemplates } = await client.listResourceTemplates();
        const templates = ['board://{name}', 'task://{board}/{number}{?style}', 'manual://{+path}'];
        assert.deepEqual(resourceTemplates.map(one => one.uriTemplate), templates);
    },
    async 'results of tools'(client) {
        await client.listTools(); // the client now checks results against the output schemas
        const { content, structuredContent } = await client.callTool({ name: 'add', arguments: { a: 2 } });
        assert.deepEqual([content, structuredContent], [[{ type: 'text', text: '3' }], { result: 3 }]);
        const failed = await client.callTool({ name: 'complete_tasks', arguments: { board: 'sprint', tasks: ['sing'] } });
        assert.deepEqual([failed.isError, failed.content[0].text], [
            true,
            "Error executing tool complete_tasks: sprint has no task 'sing'"
        ]);
    },
    async 'contents of resources'(client, revision) {
        const { contents } = await client.readResource({ uri: 'task://sprint/1?style=bold' });
        const task = { uri: 'task://sprint/1?style=bold', mimeType: 'text/markdown', text: '**build**' };
        assert.deepEqual(contents, [task]);
        const pixel = await client.readResource({ uri: 'pixels://one' });
        assert.equal(Buffer.from(pixel.contents[0].blob, 'base64').subarray(0, 3).toString(), 'GIF');
        for (const uri of ['board://kitchen', 'nowhere://all']) {
            await assert.rejects(client.readResource({ uri }), error => {
                const codes = revision === MODERN ? [NOT_FOUND] : [NOT_FOUND, NOT_FOUND_BEFORE];
                assert.ok(codes.includes(error.code), String(error));
                return true;
            });
        }
    },
    async 'messages of prompts'(client) {
        const { messages } = await client.getPrompt({ name: 'stand_up', arguments: { board: 'sprint' } });
        const said = messages.map(one => [one.role, one.content.text]);
        assert.deepEqual(said, [
            ['user', 'Let us talk about sprint.'],
            ['assistant', 'What is the first task?'],
            ['user', 'design']
        ]);
        const etiquette = await client.getPrompt({ name: 'with_etiquette' });
        assert.equal(etiquette.messages[0].content.resource.text, '# Etiquette\n\nOne task at a time.');
        await assert.rejects(client.getPrompt({ name: 'review' }));
    },
    async completions(client) {
        const name = { ref: { type: 'ref/resource', uri: 'board://{name}' }, argument: { name: 'name', value: 's' } };
        assert.deepEqual((await client.complete(name)).completion.values, ['sprint']);
        const task = { ref: { type: 'ref/prompt', name: 'stand_up' }, argument: { name: 'task', value: 'b' } };
        const context = { arguments: { board: 'sprint' } };
        assert.deepEqual((await client.complete({ ...task, context })).completion.values, ['build']);
        assert.deepEqual((await client.complete(task)).completion.values, []);
    },
    async changes(client, revision, heard) {
        const filter = { toolsListChanged: true, resourceSubscriptions: [BOARD] };
        const subscription = revision === MODERN ? await client.listen(filter) : await client.subscribeResource({ uri: BOARD });
        await client.callTool({ name: 'complete_tasks', arguments: { board: 'sprint', tasks: ['design'] } });
        await until(() => heard.some(one => one.params?.uri === BOARD));
        await client.callTool({ name: 'enable_report', arguments: {} });
        await until(() => heard.some(one => one.method === 'notifications/tools/list_changed'));
        await (revision === MODERN ? subscription.close() : client.unsubscribeResource({ uri: BOARD }));
        const { tools } = await client.listTools();
        assert.equal(tools.at(-1).name, 'report');
        const { content } = await client.callTool({ name: 'report', arguments: {} });
        assert.equal(content[0].text, '1 done');
    }
};

async function until(happened) {
    const end = Date.now() + HEAR_MS;
    while (!happened()) {
        assert.ok(Date.now() < end, 'nothing was heard of a change');
        await sleep(20);
    }
}
