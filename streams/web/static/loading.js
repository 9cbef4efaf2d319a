// Says when the page itself did not load, a network having changed under it, and loads it again: no script of it would.

const AGAIN_MS = 1_000;

document.querySelector("script[type=module]").addEventListener("error", () => {
  const say = () => {
    document.body.dataset.connection = "lost";
    document.getElementById("connection").textContent = "the page did not load; trying again";
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", say);
  else say();
  setTimeout(() => location.reload(), AGAIN_MS);
});
