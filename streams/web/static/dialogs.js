// A modal dialog: the browser's own, so that focus stays in it and Escape closes it.

import { el } from "./elements.js";

let made = 0;

/**
 * Opens a dialog with a title and content. `submit` is called where its form is sent, and gives null where all went well
 * or what to say where not; the promise is true then, and false where it was closed.
 */
export function dialog(title, content, { confirm, submit, danger = false, ready = () => true } = {}) {
  return new Promise((resolve) => {
    const id = `dialog${(made += 1)}`;
    const fault = el("p", { class: "fault", role: "alert" });
    const go = confirm && el("button", { type: "submit", class: danger ? "kill" : "main" }, confirm);
    const form = el("form", { method: "dialog" }, el("h2", { id }, title), content, fault,
      el("div", { class: "buttons" }, el("button", { type: "button", class: "plain", on: { click: () => box.close() } }, confirm ? "Cancel" : "Close"), go));
    const box = el("dialog", { "aria-labelledby": id }, form);
    let done = false;
    const judge = () => { if (go) go.disabled = !ready(); };
    form.addEventListener("input", judge);
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      if (!go || go.disabled) return;
      go.disabled = true;
      fault.textContent = "";
      const wrong = await submit();
      if (wrong === null) {
        done = true;
        box.close();
      } else {
        fault.textContent = wrong;
        judge();
      }
    });
    box.addEventListener("close", () => {
      box.remove();
      resolve(done);
    });
    document.body.append(box);
    judge();
    box.showModal();
  });
}

/** A labelled control. */
export function labelled(text, control) {
  return el("label", { class: "labelled" }, el("span", {}, text), control);
}
