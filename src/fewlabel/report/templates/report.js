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
  const slider = document.getElementById("max-error");
  if (!slider) return;
  const cards = [...document.querySelectorAll(".card")];
  const reset = document.getElementById("reset");
  const own = slider.value;
  const { top, base } = data.plot;

  // Every number is looked up; only heights of bars are computed, by the same square root as in
  // the page's first picture.
  const show = () => {
    const k = Number(slider.value), point = data.points[k];
    for (const name of ["goal", "n", "share", "wrong", "error", "confidence", "proof", "fewest"]) {
      document.getElementById(`live-${name}`).textContent = point[name];
    }
    slider.setAttribute("aria-valuetext", point.spoken);
    cards.forEach((card, j) => {
      const { tallest, accepted } = data.classes[j];
      const inside = accepted[k];
      card.querySelector(".n").textContent =
        inside.reduce((sum, n) => sum + n, 0).toLocaleString("en-US");
      card.querySelectorAll(".in").forEach((bar) => {
        const height = (base - top) * Math.sqrt(inside[bar.dataset.bin] / tallest);
        bar.setAttribute("y", base - height);
        bar.setAttribute("height", height);
      });
    });
    reset.hidden = slider.value === own;
  };

  slider.addEventListener("input", show);
  reset.addEventListener("click", () => {
    slider.value = own;
    show();
  });
})();
