"use strict";
(() => {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  const data = JSON.parse(document.getElementById("data").textContent);
  const cards = [...document.querySelectorAll(".card")];
  if (!cards.length) return;
  const count = (n) => n.toLocaleString("en-US");
  // Bounds above 1 say nothing; they are shown as 100 %.
  const percent = (v) => (v === null ? "–" : v >= 1 ? "100\u00a0%" : (100 * v).toFixed(1) + "\u00a0%");
  const { left, right, top, base } = data.plot;
  const positions = data.classes.map((c) => (c.curve ? c.curve.best : null));
  const best = positions.slice();
  const reset = document.getElementById("reset");

  // The first candidate at or above a threshold lets in the same rows as the threshold itself.
  const candidate = (theta, value) => {
    let low = 0, high = theta.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (theta[middle] < value - 1e-12) low = middle + 1; else high = middle;
    }
    return low;
  };

  const show = (j) => {
    const { curve, top: highest } = data.classes[j];
    const card = cards[j], k = positions[j];
    const none = k >= curve.theta.length;
    const theta = none ? 1 : curve.theta[k];
    const x = left + (right - left) * theta;
    card.querySelector(".n").textContent = count(none ? 0 : curve.n_trusted[k]);
    card.querySelector(".bound").textContent = percent(none ? null : curve.bound[k]);
    card.querySelector(".value").textContent = none ? "above all votes" : theta.toFixed(3);
    const line = card.querySelector(".theta"), dot = card.querySelector(".dot");
    line.setAttribute("x1", x);
    line.setAttribute("x2", x);
    dot.setAttribute("cx", x);
    dot.setAttribute("cy", none ? base : base - (base - top) * Math.min(curve.bound[k] / highest, 1));
    card.querySelectorAll(".votes").forEach((bar) =>
      bar.classList.toggle("in", !none && Number(bar.dataset.to) > theta - 1e-9));
  };

  const total = () => {
    let trusted = data.hidden.n_trusted, wrong = data.hidden.n_wrong;
    data.classes.forEach(({ curve }, j) => {
      if (curve && positions[j] < curve.theta.length) {
        trusted += curve.n_trusted[positions[j]];
        wrong += curve.bound[positions[j]] * curve.n_trusted[positions[j]];
      }
    });
    document.getElementById("total-trusted").textContent = count(trusted);
    document.getElementById("total-bound").textContent = percent(trusted ? wrong / trusted : null);
    reset.hidden = positions.every((k, j) => k === best[j]);
  };

  cards.forEach((card, j) => {
    const input = card.querySelector("input");
    if (!input) return;
    input.addEventListener("input", () => {
      positions[j] = candidate(data.classes[j].curve.theta, Number(input.value));
      show(j);
      total();
    });
  });

  reset.addEventListener("click", () => {
    cards.forEach((card, j) => {
      if (best[j] === null) return;
      positions[j] = best[j];
      card.querySelector("input").value = data.classes[j].curve.theta[best[j]];
      show(j);
    });
    total();
  });
})();
