// Visits of the TypeScript clients: connected, used and closed, with a person who answers forms by their first field.
//
// `connect(answer, hear)` resolves to `{ client, revision, close }`; without an answer the client cannot be asked. `hear` is
// called with notifications of changes.
import assert from 'node:assert/strict';

const MISSING_CAPABILITY = -32021;

// A function that connects at a revision, hands over the client and the notifications that it hears, and closes it again. It
// resolves to what was asked.
export function visiting(connect, revision) {
    return async function visit(answers, use) {
        const asked = [];
        const heard = [];
        const answer = params => {
            const [field] = Object.keys(params.requestedSchema.properties);
            asked.push([field, params.message]);
            return answers[field];
        };
        const desk = await connect(answers && answer, notification => heard.push(notification));
        try {
            assert.equal(desk.revision, revision);
            await use(desk.client, heard);
        } finally {
            await desk.close();
        }
        return asked;
    };
}

// Whether an error says that the client must be able to answer forms.
export function isForms(error) {
    assert.equal(error.code, MISSING_CAPABILITY, String(error));
    assert.deepEqual(error.data, { requiredCapabilities: { elicitation: { form: {} } } });
    return true;
}
