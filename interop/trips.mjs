// The trip desk as the TypeScript clients must find it: a prompt, a resource and a resource template that ask two questions
// each, the second about the first answer.
//
// Knows neither of the two SDKs, like `checks.mjs`.
import assert from 'node:assert/strict';
import { isForms, visiting } from './visits.mjs';

const CITY = ['city', 'Which city do you visit?'];
const DISTRICT = ['district', 'Which district of Lisbon?'];
const ANSWERS = {
    city: { action: 'accept', content: { city: 'Lisbon' } },
    district: { action: 'accept', content: { district: 'Alfama' } }
};
const DECLINE = { action: 'decline' };
const DECLINED = 'could not resolve: elicitation was decline';

const ASKING = {
    prompt: {
        request: async client => (await client.getPrompt({ name: 'plan', arguments: { days: '3' } })).messages[0].content.text,
        text: 'Plan 3 days in Alfama, Lisbon.'
    },
    resource: {
        request: async client => (await client.readResource({ uri: 'trip://today' })).contents[0].text,
        text: 'Today: Alfama, Lisbon.'
    },
    template: {
        request: async client => (await client.readResource({ uri: 'trip://days/2' })).contents[0].text,
        text: 'Day 2: Alfama, Lisbon.'
    }
};

// Goes through all of it at a revision, saying what held; throws at the first thing that does not.
export async function check(connect, revision) {
    const visit = visiting(connect, revision);
    await visit(null, async client => {
        const { prompts } = await client.listPrompts();
        assert.deepEqual(prompts.map(one => [one.name, one.arguments]), [['plan', [{ name: 'days', required: true }]]]);
        const { resources } = await client.listResources();
        assert.deepEqual(resources.map(one => one.uri), ['trip://today']);
        const { resourceTemplates } = await client.listResourceTemplates();
        assert.deepEqual(resourceTemplates.map(one => one.uriTemplate), ['trip://days/{day}']);
    });
    console.log('lists');
    for (const [what, { request, text }] of Object.entries(ASKING)) {
        const asked = await visit(ANSWERS, async client => {
            assert.equal(await request(client), text);
            assert.equal(await request(client), text); // nothing is kept of the first time
        });
        assert.deepEqual(asked, [CITY, DISTRICT, CITY, DISTRICT]);
        console.log(`two questions of a ${what}`);
        for (const [declined, expected] of [['city', [CITY]], ['district', [CITY, DISTRICT]]]) {
            const heard = await visit({ ...ANSWERS, [declined]: DECLINE }, async client => {
                await assert.rejects(request(client), error => error.message.includes(DECLINED));
            });
            assert.deepEqual(heard, expected);
        }
        console.log(`${what} declined`);
        await visit(null, client => assert.rejects(request(client), isForms));
    }
    console.log('capability missing');
}
