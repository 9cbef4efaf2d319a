// The newest decisions, and those of them that a filter lets through.

export const CAPACITY = 10_000;

/** Keeps the newest `CAPACITY` decisions, numbered from 0 in order of arrival, and counts them by action. */
export class Ring {
  #slots = [];
  #next = 0;
  counts = {};

  get oldest() { return Math.max(0, this.#next - CAPACITY); }
  get length() { return this.#next - this.oldest; }

  clear() {
    this.#slots = [];
    this.#next = 0;
    this.counts = {};
  }

  /** Takes summaries, newest last; gives their entries {n, d}. */
  add(summaries) {
    return summaries.map((d) => {
      const at = this.#next % CAPACITY;
      const gone = this.#slots[at];
      if (gone) this.counts[gone.d.action] -= 1;
      this.counts[d.action] = (this.counts[d.action] ?? 0) + 1;
      const entry = { n: this.#next, d };
      this.#slots[at] = entry;
      this.#next += 1;
      return entry;
    });
  }

  *[Symbol.iterator]() {
    for (let n = this.oldest; n < this.#next; n += 1) yield this.#slots[n % CAPACITY];
  }
}

/** Entries that pass a filter, read from the newest; kept up entry by entry, never sifted through again. */
export class Matches {
  #rows = [];
  #first = 0;
  #passes;

  constructor(passes, ring) {
    this.#passes = passes;
    this.add([...ring], ring.oldest);
  }

  get length() { return this.#rows.length - this.#first; }

  /** The i-th newest. */
  at(i) { return this.#rows[this.#rows.length - 1 - i]; }

  /** Takes new entries, forgets those below `oldest`; gives how many came in. */
  add(entries, oldest) {
    const before = this.#rows.length;
    for (const entry of entries) if (this.#passes(entry.d)) this.#rows.push(entry);
    const came = this.#rows.length - before;
    while (this.#first < this.#rows.length && this.#rows[this.#first].n < oldest) this.#first += 1;
    if (this.#first > CAPACITY) {
      this.#rows = this.#rows.slice(this.#first);
      this.#first = 0;
    }
    return came;
  }
}
