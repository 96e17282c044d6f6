// One tool, prompt, resource or template: what it is, its graph, and a form to call it.

import { callView } from "./call_view.js";
import { button, element, freshId, indented } from "./elements.js";
import { fields } from "./fields.js";

const SIMPLE = /\{([A-Za-z0-9_]+)\}/g;

function textSchema(names, required, descriptions = {}) {
  const properties = Object.fromEntries(names.map((name) => [name, { type: "string", description: descriptions[name] }]));
  return { type: "object", properties, required };
}

// By kind: the schema of what is typed, the method, and the params of the request.
const KINDS = {
  tools: (item) => ({
    verb: "Call",
    schema: item.inputSchema ?? {},
    request: (typed) => ["tools/call", { name: item.name, arguments: typed }],
  }),
  prompts: (item) => {
    const all = item.arguments ?? [];
    const described = Object.fromEntries(all.map((one) => [one.name, one.description]));
    const required = all.filter((one) => one.required).map((one) => one.name);
    return {
      verb: "Get",
      schema: textSchema(all.map((one) => one.name), required, described),
      request: (typed) => ["prompts/get", { name: item.name, arguments: typed }],
    };
  },
  resources: (item) => ({ verb: "Read", schema: {}, request: () => ["resources/read", { uri: item.uri }] }),
  resourceTemplates: (item) => {
    const names = [...item.uriTemplate.matchAll(SIMPLE)].map((found) => found[1]);
    if (!names.length || item.uriTemplate.replace(SIMPLE, "").includes("{")) {
      const properties = { uri: { type: "string", default: item.uriTemplate } };
      return {
        verb: "Read",
        schema: { type: "object", properties, required: ["uri"] },
        request: (typed) => ["resources/read", { uri: typed.uri }],
      };
    }
    const uri = (typed) => item.uriTemplate.replace(SIMPLE, (whole, name) => encodeURIComponent(typed[name] ?? ""));
    return { verb: "Read", schema: textSchema(names, names), request: (typed) => ["resources/read", { uri: uri(typed) }] };
  },
};

export const NAMED_BY = { tools: "name", prompts: "name", resources: "uri", resourceTemplates: "uriTemplate" };

function graphPart(drawing) {
  if (!drawing?.draws) return null;
  const source = `api/graph?kind=${encodeURIComponent(drawing.kind)}&name=${encodeURIComponent(drawing.name)}`;
  return element(
    "section",
    { class: "graph", "aria-label": "Graph" },
    element("h3", { text: "Who fills each parameter" }),
    element("div", { class: "picture" }, element("img", { src: source, alt: drawing.tree })),
    element("details", {}, element("summary", { text: "As text" }), element("pre", { text: `${drawing.tree}\n\n${drawing.summary}`, tabindex: 0 })),
  );
}

// A form, or the same value as JSON.
function argumentsPart(schema) {
  const form = fields(schema, { wireNames: true });
  const id = freshId("json");
  const area = element("textarea", { id, class: "json", rows: 6, spellcheck: "false", hidden: true, "aria-label": "Arguments as JSON" });
  const problem = element("p", { class: "problem", role: "alert" });
  const swap = button("Edit as JSON", () => {
    if (area.hidden) {
      area.value = indented(form.read());
    } else {
      const typed = read();
      if (typed === null) return;
      form.write(typed);
    }
    area.hidden = !area.hidden;
    form.node.hidden = !area.hidden;
    swap.textContent = area.hidden ? "Edit as JSON" : "Edit as a form";
  }, { class: "quiet" });

  function read() {
    problem.textContent = "";
    if (area.hidden) return form.read();
    try {
      return JSON.parse(area.value);
    } catch (error) {
      problem.textContent = `This is not valid JSON: ${error.message}`;
      return null;
    }
  }
  const isEmpty = !Object.keys(schema.properties ?? {}).length;
  return { node: element("div", {}, isEmpty ? element("p", { class: "none", text: "It has no arguments." }) : form.node, area, problem), swap, read, byHand: () => !area.hidden };
}

export function itemView(kind, item, drawing, settings) {
  const { verb, schema, request } = KINDS[kind](item);
  const typed = argumentsPart(schema);
  const calls = element("div", { class: "calls" });
  const form = element(
    "form",
    { class: "arguments", novalidate: true },
    element("h3", { text: "Arguments" }),
    typed.node,
    element("div", { class: "answers" }, element("button", { type: "submit", class: "primary", text: verb }), typed.swap),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const value = typed.read();
    if (value === null || (!typed.byHand() && !form.reportValidity())) return;
    const [method, params] = request(value);
    const call = callView({ ...settings(), method, params });
    calls.replaceChildren(call);
    call.scrollIntoView({ block: "nearest" });
  });
  const name = item[NAMED_BY[kind]];
  return element(
    "div",
    { class: "selected" },
    element("h2", { text: name }),
    item.title && item.title !== name ? element("p", { class: "title", text: item.title }) : null,
    item.description ? element("p", { class: "description", text: item.description }) : null,
    graphPart(drawing),
    form,
    calls,
    element("details", { class: "listed" }, element("summary", { text: "As the server lists it" }), element("pre", { text: indented(item), tabindex: 0 })),
  );
}
