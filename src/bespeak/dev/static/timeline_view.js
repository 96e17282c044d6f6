// The conversation on the wire: every message, in order, with the time since the call began.

import { element } from "./elements.js";

const BEFORE = new Set(["initialize", "notifications/initialized", "logging/setLevel", "tools/list", "server/discover"]);

export function timelineView() {
  const list = element("ol", { class: "timeline" });
  let begun = false;
  const node = element("section", { class: "wire", "aria-label": "On the wire" }, element("h4", { text: "On the wire" }), list);

  function add(event) {
    const method = event.title.split(/[ ,]/)[0];
    begun ||= event.way === "sent" && event.kind === "request" && !BEFORE.has(method);
    const way = event.way === "sent" ? "client \u2192 server" : "server \u2192 client";
    const summary = element(
      "summary",
      {},
      element("span", { class: "ms", text: `${event.ms} ms` }),
      element("span", { class: "way", text: way }),
      element("span", { class: "kind", text: event.kind }),
      element("span", { class: "title", text: event.title }),
    );
    const classes = [event.way, event.kind, begun ? "" : "handshake"].join(" ").trim();
    list.append(element("li", { class: classes }, element("details", {}, summary, element("pre", { text: event.text, tabindex: 0 }))));
  }
  return { node, add };
}
