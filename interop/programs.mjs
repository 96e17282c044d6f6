// What the TypeScript clients check of each program.
import { check as checkBoard } from './boards.mjs';
import { check as checkRefunds } from './checks.mjs';
import { check as checkTrips } from './trips.mjs';

const CHECKS = { refund_desk: checkRefunds, trip_desk: checkTrips, sprint_board: checkBoard };

// The check that a command line names with --program, and the rest of it: a URL, or a command that starts a server.
export function chosen([first, name, ...rest]) {
    if (first !== '--program') return { check: checkRefunds, server: [first, name, ...rest].filter(one => one !== undefined) };
    return { check: CHECKS[name], server: rest };
}
