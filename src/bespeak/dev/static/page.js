// The page: the list of what the server has, the selected item, and whether the server is there.

import { button, element } from "./elements.js";
import { itemView, NAMED_BY } from "./item_view.js";
import { get, post } from "./requests.js";

const EVERY = 2000;
const HEADINGS = { tools: "Tools", prompts: "Prompts", resources: "Resources", resourceTemplates: "Resource templates" };
const DRAWN_AS = { tools: "tool", prompts: "prompt", resources: "resource", resourceTemplates: "resource template" };

const at = (id) => document.getElementById(id);
const server = { started: null, drawings: [] };
let selected = null;

function settings() {
  return { era: at("era").value, authorization: at("authorization").value };
}

function trouble(text) {
  at("trouble").hidden = !text;
  at("trouble").replaceChildren(element("pre", { text: text ?? "" }));
}

function drawingOf(kind, item) {
  const name = item[NAMED_BY[kind]];
  return server.drawings.find((one) => one.kind === DRAWN_AS[kind] && (one.name === name || one.name === item.name));
}

// What is shown stays if it has not changed: a call may be under way, and arguments may be typed.
function select(kind, item, pressed, { again = false } = {}) {
  for (const one of at("list").querySelectorAll("button")) one.setAttribute("aria-current", String(one === pressed));
  const drawing = drawingOf(kind, item);
  const shown = JSON.stringify([kind, item, drawing]);
  if (again && selected?.shown === shown) return;
  selected = { kind, name: item[NAMED_BY[kind]], shown };
  at("item").replaceChildren(itemView(kind, item, drawing, settings));
}

function showLists(lists) {
  const groups = Object.entries(HEADINGS).filter(([kind]) => lists[kind].length);
  let first = null;
  let before = null;
  const nodes = groups.map(([kind, heading]) => {
    const entries = lists[kind].map((item) => {
      const name = String(item[NAMED_BY[kind]] ?? "");
      const pressed = button(name, () => select(kind, item, pressed));
      if (item.description) pressed.append(element("small", { text: item.description.split("\n")[0] }));
      const summary = drawingOf(kind, item)?.summary;
      if (summary?.startsWith("at most")) pressed.append(element("small", { class: "asks", text: `may ask: ${summary.split(";")[0]}` }));
      first ??= () => select(kind, item, pressed);
      if (selected?.kind === kind && selected.name === name) before = () => select(kind, item, pressed, { again: true });
      return element("li", {}, pressed);
    });
    return element("section", {}, element("h2", { text: heading }), element("ul", {}, ...entries));
  });
  const nothing = groups.length ? [] : [element("p", { text: "The server lists nothing." })];
  at("list").replaceChildren(...nodes, ...nothing);
  if (first) (before ?? first)();
  else at("item").replaceChildren();
  trouble(lists.problems.join("\n"));
}

async function list() {
  try {
    const { era } = settings();
    showLists(await post("api/list", settings()));
    at("list").dataset.era = era;
  } catch (error) {
    trouble(error.message);
  }
}

async function look() {
  try {
    const found = await get("api/server");
    if (found.started === server.started) {
      if (at("trouble").dataset.down) {
        delete at("trouble").dataset.down;
        trouble(found.error);
      }
      return;
    }
    at("status").textContent = server.started === null ? "" : `Reloaded at ${new Date().toLocaleTimeString()}`;
    Object.assign(server, found);
    delete at("trouble").dataset.down;
    at("server-name").textContent = found.name || found.target;
    document.title = `${found.name || found.target} \u2013 bespeak dev`;
    at("endpoint").textContent = found.url;
    if (found.error === null) await list();
    else trouble(found.error);
  } catch (error) {
    at("trouble").dataset.down = "yes";
    trouble(error.message);
  }
}

async function watch() {
  await look();
  setTimeout(watch, EVERY);
}

at("settings").addEventListener("submit", (event) => event.preventDefault());
at("era").addEventListener("change", list);
at("authorization").addEventListener("change", list);
watch();
