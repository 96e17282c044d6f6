"""The style of the HTML report: one sheet for light and dark, wide and narrow."""

STYLE = """
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #fff; --line: #d9dde3; --text: #1c2330; --soft: #5b6675; --code: #f1f3f6;
  --good: #1a7f4b; --good-soft: #e4f5ec; --bad: #c0322b; --bad-soft: #fcebea; --note: #8a6100; --note-soft: #fdf4de;
  --client: #e7f0fe; --client-line: #8fb4ec; --server: #f3ecfb; --server-line: #bfa2e4; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12151a; --card: #1a1e25; --line: #323945; --text: #e6e9ee; --soft: #9aa5b4; --code: #12161c;
  --good: #4cc38a; --good-soft: #14301f; --bad: #ff7b72; --bad-soft: #3a1d1d; --note: #e3b341; --note-soft: #33290f;
  --client: #16273f; --client-line: #3d6aa8; --server: #271c38; --server-line: #7350a3; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 24px 16px 64px; }
h1 { font-size: 22px; margin: 0 0 4px; } h2 { font-size: 16px; margin: 28px 0 8px; overflow-wrap: anywhere; }
p { margin: 0; overflow-wrap: anywhere; }
.counts { display: flex; flex-wrap: wrap; gap: 4px 18px; color: var(--soft); }
.counts b { color: var(--text); } .counts .bad b { color: var(--bad); } .counts .good b { color: var(--good); }
.bar { display: flex; height: 8px; border-radius: 4px; overflow: hidden; margin: 12px 0 16px; background: var(--line); }
.bar span { flex: 1 1 0; background: var(--good); } .bar .failed { background: var(--bad); }
.bar .skipped { background: var(--line); } .bar .xfailed { background: var(--note); }
.filter { display: inline-block; margin: 0 14px 0 4px; color: var(--soft); cursor: pointer; }
#only:checked ~ section .test.passed, #only:checked ~ section.passed { display: none; }
.note { background: var(--note-soft); color: var(--note); border-radius: 8px; padding: 8px 12px; margin: 10px 0 0; }
.test { background: var(--card); border: 1px solid var(--line); border-radius: 10px; margin: 8px 0; }
.test.failed { border-color: var(--bad); }
.test > summary { display: flex; flex-wrap: wrap; align-items: baseline; gap: 2px 12px; padding: 9px 14px; cursor: pointer;
  list-style: none; }
.test > summary::-webkit-details-marker { display: none; }
.test > summary:focus-visible, .fold > summary:focus-visible { outline: 2px solid var(--client-line); }
.test > summary::before { content: "\\25b8"; color: var(--soft); width: 10px; } .test[open] > summary::before { content: "\\25be"; }
.badge { font-size: 12px; font-weight: 600; border-radius: 5px; padding: 1px 8px; background: var(--good-soft);
  color: var(--good); }
.failed > summary .badge { background: var(--bad-soft); color: var(--bad); }
.badge.skipped, .badge.xfailed { background: var(--note-soft); color: var(--note); }
.title { font-weight: 600; flex: 1 1 260px; min-width: 0; overflow-wrap: anywhere; }
.meta { color: var(--soft); font-size: 13px; overflow-wrap: anywhere; }
.inside { padding: 2px 14px 14px; }
.failure { border-left: 3px solid var(--bad); background: var(--bad-soft); border-radius: 0 8px 8px 0; padding: 8px 12px;
  margin: 8px 0; }
.failure .message { font-weight: 600; white-space: pre-wrap; } .failure .at, .aside { color: var(--soft); font-size: 13px; }
pre { margin: 6px 0 0; padding: 7px 10px; background: var(--code); border-radius: 6px; white-space: pre-wrap;
  overflow-wrap: anywhere; font: 13px/1.45 ui-monospace, monospace; }
.diff span { display: block; } .diff .plus { color: var(--good); background: var(--good-soft); }
.diff .minus { color: var(--bad); background: var(--bad-soft); } .diff .hunk { color: var(--soft); }
.failure .diff { background: var(--card); max-height: 28em; overflow: auto; }
.fold > summary { color: var(--soft); font-size: 13px; cursor: pointer; margin-top: 6px; }
.lanes { display: flex; justify-content: space-between; color: var(--soft); font-size: 13px; font-weight: 600;
  margin: 14px 0 6px; border-bottom: 1px solid var(--line); padding-bottom: 4px; }
.timeline { list-style: none; margin: 0; padding: 0; display: flex; flex-direction: column; gap: 8px; }
.timeline li { width: fit-content; max-width: 76%; min-width: 34%; border: 1px solid var(--client-line); padding: 7px 12px 9px;
  border-radius: 12px 12px 12px 3px; background: var(--client); }
.timeline .server { align-self: flex-end; border-color: var(--server-line); border-radius: 12px 12px 3px 12px;
  background: var(--server); }
.timeline .error, .timeline .failed, .timeline .no-response, .timeline .gives-up { border-color: var(--bad);
  background: var(--bad-soft); }
.timeline .notification { min-width: 0; padding: 3px 10px 4px; border-style: dashed; font-size: 13px; }
.timeline .notification pre { margin-top: 2px; padding: 3px 8px; }
.head { display: flex; flex-wrap: wrap; gap: 0 8px; align-items: baseline; }
.who { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.label { font-weight: 600; } .state { color: var(--soft); font-size: 13px; }
.question { margin-top: 4px; } .name { font-weight: 600; margin-right: 8px; } .name::after { content: ":"; }
.action { font-weight: 600; color: var(--good); } .decline, .cancel { color: var(--note); }
.again { color: var(--soft); font-size: 13px; margin-top: 12px; } .again code { overflow-wrap: anywhere; }
table { border-collapse: collapse; margin: 4px 0 0; } td { padding: 1px 14px 1px 0; vertical-align: top; }
td.time { text-align: right; color: var(--soft); white-space: nowrap; }
@media (max-width: 640px) { main { padding: 16px 10px 48px; } .timeline li { max-width: 90%; } .inside { padding: 2px 10px 12px; }
  .test > summary { padding: 9px 10px; } .meta { flex-basis: 100%; } }
@media print { .failure .diff { max-height: none; } body { background: #fff; } .filter, #all, #only { display: none; } }
"""
