// Makes elements. Text becomes text nodes, whatever is in it: nothing here or elsewhere reads markup from a string.

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") made.textContent = value;
    else if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function button(text, onclick, properties = {}) {
  return element("button", { type: "button", text, onclick, ...properties });
}

let made = 0;

export function freshId(prefix) {
  made += 1;
  return `${prefix}-${made}`;
}

export function indented(value) {
  return JSON.stringify(value, null, 2);
}
