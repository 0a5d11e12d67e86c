"use strict";
(() => {
  const root = document.documentElement;
  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // A definition stays inside the window.
  for (const term of document.querySelectorAll(".term")) {
    const place = () => {
      const tip = term.querySelector(".tip");
      tip.style.setProperty("--shift", "0px");
      const { left, width } = tip.getBoundingClientRect();
      const most = root.clientWidth - width - 8;
      tip.style.setProperty("--shift", `${Math.max(8, Math.min(left, most)) - left}px`);
    };
    term.addEventListener("mouseenter", place);
    term.addEventListener("focus", place);
    term.addEventListener("keydown", (event) => { if (event.key === "Escape") term.blur(); });
  }

  // Tables that are wider than their place say so.
  const hint = () => {
    for (const box of document.querySelectorAll(".scroll")) {
      const wide = box.scrollWidth > box.clientWidth + 1;
      let note = box.previousElementSibling;
      if (!note || !note.classList.contains("hint")) {
        if (!wide) continue;
        note = document.createElement("p");
        note.className = "hint";
        note.textContent = "Scroll the table sideways for more →";
        box.before(note);
      }
      note.hidden = !wide;
    }
  };
  addEventListener("resize", hint);
  for (const box of document.querySelectorAll("details")) box.addEventListener("toggle", hint);
  hint();

  // A click on a heading sorts by its column: numbers by value, everything else as text.
  const valueOf = (row, k) => {
    const text = (row.cells[k] || { textContent: "" }).textContent.trim();
    const number = parseFloat(text.replace(/,/g, ""));
    return /^[-\u2212\d]/.test(text) && Number.isFinite(number) ? number : text;
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number")
    ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
  for (const table of document.querySelectorAll("table.sortable")) {
    for (const head of table.tHead.querySelectorAll("th")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") !== "ascending";
        for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const k = head.cellIndex, body = table.tBodies[0];
        const rows = [...body.rows].sort((a, b) => compare(valueOf(a, k), valueOf(b, k)));
        body.append(...(up ? rows : rows.reverse()));
      });
    }
  }

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
