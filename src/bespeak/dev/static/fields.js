// The fields of a form, made from a JSON Schema: of a tool's arguments, or of a question.

import { element, freshId, indented } from "./elements.js";

const INPUT_TYPES = { email: "email", uri: "url", date: "date" };
const LONG_TEXT = 200;

function resolved(schema, root) {
  let found = schema;
  for (let depth = 0; depth < 10 && typeof found?.$ref === "string"; depth += 1) {
    const name = found.$ref.replace("#/$defs/", "");
    const { $ref, ...beside } = found;
    found = { ...(root.$defs?.[name] ?? {}), ...beside };
  }
  const arms = found?.anyOf?.map((arm) => resolved(arm, root)).filter((arm) => arm.type !== "null");
  if (arms?.length === 1 && arms.length < found.anyOf.length) {
    const { anyOf, ...beside } = found;
    found = { ...arms[0], ...beside };
  }
  return found ?? {};
}

// The values to choose from, each with its title; null if there is no such list.
function choices(schema) {
  if (Array.isArray(schema.enum)) {
    return schema.enum.map((value, place) => ({ value, title: schema.enumNames?.[place] ?? String(value) }));
  }
  const arms = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(arms) && arms.length && arms.every((arm) => "const" in arm)) {
    return arms.map((arm) => ({ value: arm.const, title: arm.title ?? String(arm.const) }));
  }
  return "const" in schema ? [{ value: schema.const, title: String(schema.const) }] : null;
}

function bounds(schema) {
  const told = [];
  const say = (key, text) => key in schema && told.push(`${text} ${schema[key]}`);
  say("minimum", "at least");
  say("maximum", "at most");
  say("exclusiveMinimum", "more than");
  say("exclusiveMaximum", "less than");
  say("minLength", "characters: at least");
  say("maxLength", "characters: at most");
  say("minItems", "choices: at least");
  say("maxItems", "choices: at most");
  say("pattern", "pattern");
  if (schema.format) told.push(schema.format);
  return told.join(", ");
}

// Each maker returns the field's node, `read` (the value, undefined if it is left empty) and `write`.

function chooseOne(schema, required, described) {
  const offered = choices(schema);
  const select = element("select", { required, ...described });
  select.append(element("option", { value: "", text: required ? "Choose one" : "(none)" }));
  offered.forEach((one, place) => select.append(element("option", { value: place, text: one.title })));
  return {
    node: select,
    read: () => (select.value === "" ? undefined : offered[Number(select.value)].value),
    write: (value) => {
      const place = offered.findIndex((one) => one.value === value);
      select.value = place < 0 ? "" : String(place);
    },
  };
}

function chooseSeveral(schema, required, described, root) {
  const offered = choices(resolved(schema.items ?? {}, root));
  const boxes = offered.map((one) => ({ one, box: element("input", { type: "checkbox", id: freshId("choice") }) }));
  const node = element(
    "div",
    { class: "choices", role: "group", ...described, id: undefined },
    ...boxes.map(({ one, box }) => element("span", {}, box, element("label", { for: box.id, text: one.title }))),
  );
  return {
    node,
    read: () => {
      const chosen = boxes.filter(({ box }) => box.checked).map(({ one }) => one.value);
      return chosen.length || required ? chosen : undefined;
    },
    write: (value) => boxes.forEach(({ one, box }) => (box.checked = Array.isArray(value) && value.includes(one.value))),
  };
}

// Two buttons and not one box: a box that nobody has touched would mean no.
function yesOrNo(required, described) {
  const name = freshId("yes-no");
  const yes = element("input", { type: "radio", name, id: freshId("yes"), required });
  const no = element("input", { type: "radio", name, id: freshId("no"), required });
  const node = element(
    "div",
    { class: "choices", role: "radiogroup", ...described, id: undefined },
    element("span", {}, yes, element("label", { for: yes.id, text: "Yes" })),
    element("span", {}, no, element("label", { for: no.id, text: "No" })),
  );
  return {
    node,
    read: () => (yes.checked ? true : no.checked ? false : undefined),
    write: (value) => {
      yes.checked = value === true;
      no.checked = value === false;
    },
  };
}

function number(schema, required, described) {
  const input = element("input", {
    type: "number",
    step: schema.type === "integer" ? 1 : "any",
    min: schema.minimum,
    max: schema.maximum,
    required,
    ...described,
  });
  return {
    node: input,
    read: () => (input.value === "" ? undefined : Number(input.value)),
    write: (value) => (input.value = value ?? ""),
  };
}

function text(schema, required, described) {
  const long = schema.maxLength > LONG_TEXT;
  const input = element(long ? "textarea" : "input", {
    type: long ? undefined : (INPUT_TYPES[schema.format] ?? "text"),
    minlength: schema.minLength,
    maxlength: schema.maxLength,
    placeholder: schema.format === "date-time" ? "2026-07-28T12:00:00Z" : undefined,
    autocomplete: "off",
    required,
    ...described,
  });
  return {
    node: input,
    read: () => (input.value === "" && !required ? undefined : input.value),
    write: (value) => (input.value = value ?? ""),
  };
}

function json(required, described) {
  const area = element("textarea", { required, spellcheck: "false", class: "json", placeholder: "JSON", ...described });
  return {
    node: area,
    read: () => {
      area.setCustomValidity("");
      if (area.value.trim() === "") return undefined;
      try {
        return JSON.parse(area.value);
      } catch {
        area.setCustomValidity("This is not valid JSON.");
        return undefined;
      }
    },
    write: (value) => (area.value = value === undefined ? "" : indented(value)),
  };
}

function made(schema, required, described, root) {
  if (choices(schema)) return chooseOne(schema, required, described);
  if (schema.type === "boolean") return yesOrNo(required, described);
  if (schema.type === "number" || schema.type === "integer") return number(schema, required, described);
  if (schema.type === "string") return text(schema, required, described);
  if (schema.type === "array" && choices(resolved(schema.items ?? {}, root))) {
    return chooseSeveral(schema, required, described, root);
  }
  return json(required, described);
}

// The fields of an object's schema: `node`, `read()` for the object, and `write(object)`. With `wireNames` they are labelled with
// their names, which a model sees, instead of their titles, which a person sees.
export function fields(schema, { wireNames = false } = {}) {
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const all = Object.entries(schema.properties ?? {}).map(([name, given]) => {
    const one = resolved(given, schema);
    const id = freshId("field");
    const hint = [one.description, bounds(one)].filter(Boolean).join(" \u2014 ");
    const described = { id, "aria-describedby": hint ? `${id}-hint` : undefined, "aria-labelledby": `${id}-label` };
    const field = made(one, required.has(name), described, schema);
    if ("default" in one) field.write(one.default);
    const label = element(
      "label",
      { for: id, id: `${id}-label` },
      wireNames ? name : (one.title ?? name),
      required.has(name) ? element("span", { class: "required", text: " (required)" }) : null,
    );
    const told = hint ? element("small", { id: `${id}-hint`, text: hint }) : null;
    return { name, field, node: element("div", { class: "field", "data-field": name }, label, field.node, told) };
  });
  return {
    node: element("div", { class: "fields" }, ...all.map((one) => one.node)),
    read: () => {
      const value = {};
      for (const { name, field } of all) {
        const given = field.read();
        if (given !== undefined) value[name] = given;
      }
      return value;
    },
    write: (value) => all.forEach(({ name, field }) => field.write(value?.[name])),
  };
}
