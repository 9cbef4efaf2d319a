// Times and values as text. All times are Unix ms; lengths are ms.

/** A length, short: "0.4 s", "12 s", "3 min", "2.5 h", "4 d". */
export function length(ms) {
  const size = Math.abs(ms);
  const sign = ms < 0 ? "−" : "";
  if (size < 1_000) return `${sign}${Math.round(size)} ms`;
  if (size < 10_000) return `${sign}${(size / 1_000).toFixed(1)} s`;
  if (size < 120_000) return `${sign}${Math.round(size / 1_000)} s`;
  if (size < 7_200_000) return `${sign}${Math.round(size / 60_000)} min`;
  if (size < 172_800_000) return `${sign}${(size / 3_600_000).toFixed(1)} h`;
  return `${sign}${Math.round(size / 86_400_000)} d`;
}

/** How long ago, or in how long; coarse below a second, so that a list does not flicker. */
export function relative(ms, now) {
  const ago = now - ms;
  if (Math.abs(ago) < 1_000) return "now";
  return ago > 0 ? `${length(ago)} ago` : `in ${length(-ago)}`;
}

/** What is left until a deadline, in tenths of a second below ten. */
export function left(untilMs, now) {
  const ms = untilMs - now;
  return ms <= 0 ? "due" : ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : length(ms);
}

function iso(ms) {
  const date = new Date(ms);
  return Number.isNaN(date.getTime()) ? null : date.toISOString();
}

/** "14:02:33.120", UTC. */
export function clock(ms) {
  return iso(ms)?.slice(11, 23) ?? "—";
}

/** "2026-11-30 14:02:33.120 UTC". */
export function utc(ms) {
  return iso(ms)?.replace("T", " ").replace("Z", " UTC") ?? "—";
}

/** A sentence of the guard, its Unix times as times of day; digits within a name stay. */
export function sentence(text) {
  return text.replace(/\b(at|until) (1\d{12})(?![\w#/.-]*[\w#/-])/g, (_, word, ms) => `${word} ${clock(Number(ms))} UTC`);
}

/** The same for a line in a list: of an observation only who says it, 'SOURCE/REPORT#N' being its id. */
export function brief(text) {
  return sentence(text).replace(/'([^'/]+)\/[^']*#\d+'/g, "$1");
}

/** A value of a message as text: numbers to six digits, strings as they are, members by name. */
export function value(v) {
  if (v === null || v === undefined) return "—";
  if (typeof v === "number") return Number.isInteger(v) ? String(v) : String(Number(v.toPrecision(6)));
  if (typeof v === "string") return v;
  if (Array.isArray(v)) return v.map(value).join(", ");
  return typeof v === "object" ? Object.entries(v).map(([key, each]) => `${key}: ${value(each)}`).join(", ") : String(v);
}

/** A value with its unit; "1" is the unit of a number without one. */
export function quantity(v, unit) {
  return v === null || v === undefined || !unit || unit === "1" ? value(v) : `${value(v)} ${unit}`;
}

/** A quantity object {"value", "unit"} of a message, or what stands there in its place. */
export function quantityOf(q) {
  return q !== null && typeof q === "object" && "value" in q ? quantity(q.value, q.unit) : value(q);
}
