// Requests to the guard that serves the page.

const PATIENCE_MS = 15_000;

/** A request that was answered with an error, or not at all (status 0). */
export class Refused extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** The JSON that a GET, or a POST where `body` is given, is answered with. Throws Refused. */
export async function ask(path, { body, token } = {}) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const init = { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) };
  if (body !== undefined) {
    init.method = "POST";
    init.body = JSON.stringify(body);
    headers["Content-Type"] = "application/json";
  }
  let reply;
  try {
    reply = await fetch(path, init);
  } catch (error) {
    throw new Refused(error.name === "TimeoutError" ? "no answer in 15 s" : "the guard does not answer", 0);
  }
  const document = await reply.json().catch(() => null);
  if (!reply.ok) throw new Refused(document?.error ?? `status ${reply.status}`, reply.status);
  if (document === null) throw new Refused("an answer that is no JSON", reply.status);
  return document;
}

/**
 * Follows server-sent events until they end: `heard()` at every sign of life, the answer's beginning the first, `take(name, data)` for each event. Throws
 * Refused, and where the connection breaks.
 */
export async function listen(path, signal, heard, take) {
  const reply = await fetch(path, { signal, cache: "no-store", headers: { Accept: "text/event-stream" } });
  if (!reply.ok) throw new Refused((await reply.json().catch(() => null))?.error ?? `status ${reply.status}`, reply.status);
  heard();  // the first event may be a second away
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard();
    const events = (text + value).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const lines = event.split("\n");
      const of = (name) => lines.filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join("\n");
      const data = of("data");
      if (data) take(of("event"), data);
    }
  }
}
