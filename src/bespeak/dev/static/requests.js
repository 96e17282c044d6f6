// Requests to the page's own backend, which is below the same URL. Nothing else is ever requested.

const PATIENCE = 10000;

export class Unavailable extends Error {}

async function sent(path, options) {
  let response;
  try {
    response = await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    throw new Unavailable("The server does not answer. Look at the terminal of bespeak dev.", { cause: error });
  }
  return response;
}

export async function get(path) {
  const response = await sent(path, { signal: AbortSignal.timeout(PATIENCE) });
  if (!response.ok) throw new Unavailable(await response.text());
  return response.json();
}

function posted(value) {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(value) };
}

export async function post(path, value) {
  const response = await sent(path, posted(value));
  if (response.ok || response.status === 422) return response.json();
  throw new Unavailable(await response.text());
}

// Calls `take` with each line of a response, as it arrives.
export async function stream(path, value, take) {
  const response = await sent(path, posted(value));
  if (!response.ok) throw new Unavailable(await response.text());
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value: piece, done } = await reader.read();
    if (done) return;
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    for (const line of lines) take(JSON.parse(line));
  }
}
