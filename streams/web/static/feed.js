// Server-sent events, and what happens when they stop: said at once, tried again with back-off.
//
// They are read with fetch and not with EventSource, which hides why it was refused, and the comments by which a guard
// with no news says that it lives.

import { ask, listen } from "./api.js";

const SILENCE_MS = 5_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 15_000;

export class Feed {
  #board;
  #events = null;
  #wait = FIRST_WAIT_MS;
  #timer = null;
  #turn = 0;
  #cursor = 0;

  constructor(board) {
    this.#board = board;
    setInterval(() => this.#listenForSilence(), 1_000);
    window.addEventListener("offline", () => this.#lost("this computer is offline"));
    window.addEventListener("online", () => this.start());
  }

  /** Loads the board and follows it; also what "try now" does. */
  async start() {
    this.#close();
    const turn = this.#turn;
    let document;
    try {
      document = await ask("/v1/board");
    } catch (error) {
      if (turn === this.#turn) this.#lost(error.message);
      return;
    }
    if (turn !== this.#turn) return;
    this.#board.heard();
    this.#board.load(document);
    this.#cursor = document.cursor;
    this.#follow(turn);
  }

  async #follow(turn) {
    this.#events = new AbortController();
    const acts = {
      decisions: (document) => this.#take(document),
      board: (document) => this.#board.update(document),
      reset: () => this.start(),
    };
    let reason = "the stream of events ended";
    try {
      await listen(`/v1/events?cursor=${this.#cursor}`, this.#events.signal, () => this.#connected(),
        (name, data) => { if (turn === this.#turn) acts[name]?.(JSON.parse(data)); });
    } catch (error) {
      reason = error.message;
    }
    if (turn === this.#turn) this.#lost(reason);
  }

  /** The decisions after those that the board had: between two pulses a board is ahead of the events. */
  #take({ cursor, decisions }) {
    const fresh = Math.max(0, cursor - this.#cursor);
    this.#cursor = Math.max(this.#cursor, cursor);
    if (fresh > 0) this.#board.decisions(decisions.slice(-fresh));
  }

  #connected() {
    this.#wait = FIRST_WAIT_MS;
    this.#board.heard();
    if (this.#board.connection.state !== "connected") this.#board.connected("connected");
  }

  #lost(reason) {
    this.#close();
    const wait = this.#wait * (0.75 + Math.random() / 2);
    this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT_MS);
    this.#board.connected("lost", reason, Date.now() + wait);
    this.#timer = setTimeout(() => this.start(), wait);
  }

  #listenForSilence() {
    const { connection, heardAt } = this.#board;
    if (connection.state === "connected" && Date.now() - heardAt > SILENCE_MS) this.#lost("nothing heard for 5 s");
  }

  #close() {
    this.#turn += 1;
    clearTimeout(this.#timer);
    this.#events?.abort();
    this.#events = null;
  }
}
