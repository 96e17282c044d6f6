// One call: its rounds, its result and its timeline.

import { button, element } from "./elements.js";
import { roundView } from "./question_view.js";
import { post, stream } from "./requests.js";
import { timelineView } from "./timeline_view.js";

const WAITS = "Waiting for the server\u2026";
const ASKS = "The server asks. The call goes on when every question of this round is answered.";

export function callView(wanted) {
  const status = element("p", { class: "state", role: "status", text: WAITS });
  const rounds = element("div", { class: "rounds" });
  const timeline = timelineView();
  const stop = button("Stop the call", () => id && post(`api/call/${id}/stop`, {}), { class: "quiet" });
  const heading = element("div", { class: "call-head" }, element("h3", { text: `Call at ${wanted.era}` }), stop);
  const node = element("section", { class: "call", "aria-label": "Call" }, heading, status, rounds, timeline.node);
  let id = null;
  let open = null;

  async function send(answers) {
    status.textContent = WAITS; // before they are sent: what follows from them may arrive before the response
    try {
      const { problems = {} } = await post(`api/call/${id}/answers`, { answers });
      if (Object.keys(problems).length) status.textContent = ASKS;
      return problems;
    } catch (error) {
      status.textContent = error.message;
      return {};
    }
  }

  function ended(text, failed) {
    open?.end();
    stop.hidden = true;
    status.textContent = text;
    node.classList.add(failed ? "failed" : "done");
  }

  const TAKE = {
    call: (event) => (id = event.id),
    wire: timeline.add,
    questions: (event) => {
      open?.end();
      open = roundView(event, send);
      rounds.append(open.node);
      status.textContent = ASKS;
    },
    notes: (event) =>
      event.notes.forEach((note) => rounds.append(element("p", { class: "note", text: note }))),
    failed: (event) => ended(event.message, true),
    result: (event) => {
      ended(event.failed ? "The call failed." : "The call is done.", event.failed);
      rounds.append(
        element(
          "section",
          { class: event.failed ? "result failed" : "result", "aria-label": "Result" },
          element("h4", { text: event.failed ? "Error" : "Result" }),
          element("pre", { class: "result-text", text: event.text || "(no text)", tabindex: 0 }),
          element("details", {}, element("summary", { text: "The whole result as JSON" }), element("pre", { text: event.whole, tabindex: 0 })),
        ),
      );
    },
  };

  async function run() {
    try {
      await stream("api/call", wanted, (event) => TAKE[event.type]?.(event));
      if (!node.classList.contains("done") && !node.classList.contains("failed")) {
        ended("The server ended before the call did. If it was restarted, make the call again.", true);
      }
    } catch (error) {
      ended(error.message || "The connection to the server broke.", true);
    }
  }

  run();
  return node;
}
