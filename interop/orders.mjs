// The orders of the refund desks written in TypeScript, and what they ask and answer: the words of the Python ones, so
// that every client checks for the same.
const ORDERS = {
    'ORD-7001': [{ sku: 'EBOOK-1', title: 'Dune (e-book)', cents: 1299, shelved: false }],
    'ORD-7002': [
        { sku: 'LAMP-9', title: 'Desk lamp', cents: 4550, shelved: true },
        { sku: 'BULB-2', title: 'Light bulb', cents: 650, shelved: true }
    ]
};

const DECLINED =
    "Error executing tool refund_order: Resolver for parameter 'scope' could not resolve: elicitation was decline";

export const TOOL = {
    name: 'refund_order',
    description: 'Refund an order.',
    inputSchema: object({ order_id: { type: 'string' }, reason: { type: 'string' } }),
    outputSchema: object({
        order_id: { type: 'string' },
        cents: { type: 'integer' },
        reason: { type: 'string' },
        restocked: { type: 'boolean' }
    })
};

// The question what to refund; null if there is nothing to choose.
export function scopeQuestion(order_id) {
    const lines = ORDERS[order_id];
    if (lines.length === 1) return null;
    const listed = lines.map(line => `${line.sku} (${line.title}, $${(line.cents / 100).toFixed(2)})`);
    return {
        message: `${order_id} has ${lines.length} lines: ${listed.join(', ')}. Refund all of it?`,
        requestedSchema: object({ full: { type: 'boolean' } })
    };
}

// The question whether the goods go back on the shelf; null if none came from one.
export function restockQuestion(order_id) {
    const shelved = ORDERS[order_id].filter(line => line.shelved).map(line => line.title);
    if (shelved.length === 0) return null;
    return {
        message: `Put ${shelved.join(' and ')} back on the shelf?`,
        requestedSchema: object({ restock: { type: 'boolean' } })
    };
}

export function refunded({ order_id, reason }, restocked) {
    const refund = { order_id, cents: ORDERS[order_id].reduce((sum, line) => sum + line.cents, 0), reason, restocked };
    return { content: [{ type: 'text', text: JSON.stringify(refund) }], structuredContent: refund };
}

export function declined() {
    return { content: [{ type: 'text', text: DECLINED }], isError: true };
}

function object(properties) {
    return { type: 'object', properties, required: Object.keys(properties) };
}
