// Who acts: the bearer token, asked for once and kept for this tab, and the name that the guard knows it by.

import { ask } from "./api.js";
import { dialog, labelled } from "./dialogs.js";
import { el, setText } from "./elements.js";

const KEPT = "wirelessops.token";

export class Operator {
  #token = sessionStorage.getItem(KEPT);
  #button;
  #board;
  name = null;

  constructor(board, button) {
    this.#board = board;
    this.#button = button;
    button.addEventListener("click", () => (this.name ? this.#signOut() : this.require()));
    this.#show();
    if (this.#token) this.#recognise(this.#token);
  }

  /** Whether this guard knows operators at all. */
  get possible() { return this.#board.acting; }

  /** Whether somebody can act: asks for a token where none is known yet. */
  async require() {
    if (!this.#board.acting) {
      await dialog("Nobody can act here", el("p", {}, "This guard was started without --operator-tokens: the page only shows. ",
        "Start it with a file of operators' tokens (wirelessops keys token --operator NAME), or use the command line."));
      return false;
    }
    if (this.name) return true;
    const token = el("input", { type: "password", required: true, autocomplete: "off", autofocus: true });
    return dialog("Who are you?", [
      el("p", { class: "quiet" }, "Your operator's token. It is kept until this tab is closed; every act is written down under your name."),
      labelled("Token", token),
    ], { confirm: "Continue", ready: () => token.value.trim() !== "", submit: () => this.#recognise(token.value.trim()) });
  }

  /** A POST as this operator. Throws Refused; a token that is not known any more is forgotten. */
  async post(path, body) {
    try {
      return await ask(path, { body, token: this.#token });
    } catch (error) {
      if (error.status === 401) this.#signOut();
      throw error;
    }
  }

  async #recognise(token) {
    try {
      const { operator } = await ask("/v1/operator", { token });
      this.#token = token;
      this.name = operator;
      sessionStorage.setItem(KEPT, token);
    } catch (error) {
      if (error.status === 401) {
        this.#signOut();
        return "The guard does not know this token.";
      }
      return error.message;
    } finally {
      this.#show();
    }
    return null;
  }

  #signOut() {
    this.#token = this.name = null;
    sessionStorage.removeItem(KEPT);
    this.#show();
  }

  #show() {
    setText(this.#button, this.name ? `${this.name} · sign out` : "Sign in");
    this.#button.title = this.name ? `acts are written down as ${this.name}` : "acting needs an operator's token; reading does not";
  }
}
