// The questions of one round: a form for each, and a button for each way to answer it.

import { button, element, freshId, indented } from "./elements.js";
import { fields } from "./fields.js";

const SAID = { accept: "accepted", decline: "declined", cancel: "cancelled" };

function formPart(question) {
  const form = fields(question.params.requestedSchema ?? {});
  return {
    node: form.node,
    accept: "Accept",
    written: () => ({ accept: form.read() }),
    refusals: ["decline", "cancel"],
  };
}

function webAddress(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:"].includes(url.protocol) ? url : null;
  } catch {
    return null;
  }
}

function urlPart(question) {
  const given = String(question.params.url ?? "");
  const url = webAddress(given);
  const link = url
    ? element("a", { href: url.href, target: "_blank", rel: "noopener noreferrer", text: `Open ${url.host} in a new tab` })
    : element("em", { text: "This is not a web address, so there is no link to it." });
  return {
    node: element("div", { class: "url" }, element("code", { text: given }), element("p", {}, link)),
    accept: "I agree to open it",
    written: () => ({ url: "done" }),
    refusals: ["decline", "cancel"],
  };
}

function samplePart(question) {
  const id = freshId("sample");
  const area = element("textarea", { id, required: true, rows: 4 });
  const { messages = [], ...rest } = question.params;
  return {
    node: element(
      "div",
      { class: "fields" },
      element("details", { open: true }, element("summary", { text: "Messages for the model" }), element("pre", { text: indented(messages) })),
      element("details", {}, element("summary", { text: "Everything else it sent" }), element("pre", { text: indented(rest) })),
      element("label", { for: id, text: "What the model says" }),
      area,
    ),
    accept: "Send",
    written: () => ({ sample: area.value }),
    refusals: ["decline"],
  };
}

function rootsPart() {
  const id = freshId("roots");
  const area = element("textarea", { id, rows: 3, placeholder: "file:///home/me/project", spellcheck: "false" });
  return {
    node: element("div", { class: "fields" }, element("label", { for: id, text: "Roots, one URI on each line" }), area),
    accept: "Send",
    written: () => ({ roots: area.value.split("\n").map((line) => line.trim()).filter(Boolean) }),
    refusals: ["decline"],
  };
}

function part(question) {
  if (question.method === "sampling/createMessage") return samplePart(question);
  if (question.method === "roots/list") return rootsPart();
  return question.params.mode === "url" ? urlPart(question) : formPart(question);
}

const ASKS = { "sampling/createMessage": "asks for a model's reply", "roots/list": "asks which folders it may know about" };

// `send` takes the answers of the round, by key, and returns what is wrong with them, by key. Nothing is sent before every question
// is decided.
export function roundView({ round: number, pushed, questions }, send) {
  const decided = new Map();
  const cards = questions.map((question) => card(question, decide, undecide));
  const count = questions.length === 1 ? "one question" : `${questions.length} questions`;
  const text = pushed ? `Question ${number}, pushed during the call` : `Round ${number}: ${count}`;
  const heading = element("h4", { text });
  const node = element("section", { class: "round", "data-round": number }, heading, ...cards.map((one) => one.node));

  async function decide(question, written) {
    decided.set(question.key, written);
    if (decided.size < questions.length) return;
    cards.forEach((one) => one.lock());
    const problems = await send(Object.fromEntries(decided));
    for (const one of cards) {
      if (one.question.key in problems) {
        decided.delete(one.question.key);
        one.refuse(problems[one.question.key]);
      } else if (Object.keys(problems).length) one.unlock();
    }
  }

  function undecide(question) {
    decided.delete(question.key);
  }

  cards[0]?.focus();
  return { node, end: () => cards.forEach((one) => one.end()) };
}

function card(question, decide, undecide) {
  const { node: inner, accept, written, refusals } = part(question);
  const problem = element("p", { class: "problem", role: "alert" });
  const outcome = element("p", { class: "outcome", role: "status" });
  const form = element("form", {}, inner);
  const submit = element("button", { type: "submit", class: "primary", text: accept, "data-answer": "accept" });
  const others = refusals.map((word) =>
    button(word[0].toUpperCase() + word.slice(1), () => settle(word, word), { "data-answer": word }),
  );
  const change = button("Change", reopen, { hidden: true, class: "quiet" });
  form.append(element("div", { class: "answers" }, submit, ...others, change));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    settle(written(), "accept");
  });
  const controls = () => form.querySelectorAll("input, select, textarea, button");

  function settle(answer, word) {
    problem.textContent = "";
    outcome.textContent = SAID[word];
    lock();
    change.hidden = change.disabled = false;
    decide(question, answer);
  }
  function lock() {
    controls().forEach((one) => (one.disabled = true));
    change.hidden = true;
  }
  function unlock() {
    change.hidden = change.disabled = false;
  }
  function reopen() {
    undecide(question);
    outcome.textContent = "";
    controls().forEach((one) => (one.disabled = false));
    change.hidden = true;
  }
  function end() {
    lock();
    node.classList.add("over");
    outcome.textContent ||= "not answered";
  }
  function refuse(reason) {
    reopen();
    problem.textContent = reason;
  }
  const about = ASKS[question.method] ?? question.message;
  const node = element(
    "article",
    { class: "question", "data-question": question.name },
    element("p", { class: "asker", text: question.name }),
    element("p", { class: "message", text: about }),
    form,
    problem,
    outcome,
  );
  const focus = () => queueMicrotask(() => form.querySelector("input, select, textarea, button")?.focus());
  return { node, question, lock, unlock, end, refuse, focus };
}
