// Draws what the server says. Every text goes in as text: a cell is never read as markup.

export const el = (id) => document.getElementById(id);

export function make(tag, options = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "class") node.className = value;
    else if (name === "click") node.addEventListener("click", value);
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export const number = (n) => n.toLocaleString("en-US");

export function percent(share) {
  const value = 100 * share;
  return `${value >= 0.05 && value < 1.95 ? value.toFixed(1) : value.toFixed(0)} %`;
}

const goalText = (share) => `${Number((100 * share).toPrecision(4))} %`;
const count = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;

const WHY = {
  random: "drawn at random, for the estimate",
  typical: "typical of rows without a label",
  uncertain: "the model is unsure here",
  check: "drawn at random, for the check",
  "second look": "a second look",
};

export function drawCard(card) {
  el("row").hidden = !card;
  el("empty").hidden = Boolean(card);
  el("answer").hidden = !card;
  if (!card) return;
  el("row-title").textContent = `Row ${number(card.row + 1)}`;
  el("why").textContent = WHY[card.why] ?? card.why;
  el("why").className = `chip ${card.why === "second look" ? "look" : card.why}`;
  const said = card.said.filter((answer) => answer.label !== null);
  el("said").hidden = said.length === 0;
  el("said").textContent = said.length === 0 ? "" : `Answered so far: ${said.map((answer) =>
    `${answer.label}${answer.who ? ` (${answer.who})` : ""}`).join(", ")}`;
  const short = card.cells.every((cell) => cell.text.length < 40 && !cell.picture);
  el("cells").classList.toggle("many", short && card.cells.length > 12);
  el("cells").replaceChildren(...card.cells.flatMap((cell, column) => drawCell(card, cell, column)));
  el("cells").scrollTop = 0;
  el("left-out").hidden = !card.left_out;
  el("left-out").textContent = `${count(card.left_out, "more column")} not shown.`;
}

function drawCell(card, cell, column) {
  const kind = cell.text === "" ? "nothing" : cell.text.length > 120 ? "long" : "";
  const value = make("dd", { class: kind });
  if (cell.picture) {
    value.append(make("img", {
      src: `/picture/${card.row}/${column}`, alt: `${cell.name}: ${cell.text}`,
    }));
  }
  value.append(cell.text === "" ? "–" : cell.text);
  if (cell.cut) value.append(` … (${count(cell.cut, "more character")})`);
  return [make("dt", {}, cell.name), value];
}

export function found(classes, typed) {
  const words = typed.trim().toLowerCase();
  if (!words) return classes;
  const starts = classes.filter((name) => name.toLowerCase().startsWith(words));
  const within = classes.filter((name) =>
    !name.toLowerCase().startsWith(words) && name.toLowerCase().includes(words));
  return [...starts, ...within];
}

export function drawClasses(classes, typed, choose) {
  const shown = found(classes, typed);
  const name = typed.trim().replace(/\s+/g, " ");
  const items = shown.map((label, place) => {
    const key = classes.indexOf(label) + 1;
    const button = make("button", { type: "button", click: () => choose(label) }, label);
    if (key <= 9) {
      button.append(make("kbd", { "aria-hidden": "true" }, String(key)));
      button.setAttribute("aria-keyshortcuts", String(key));
    }
    return make("li", { class: name && place === 0 ? "first" : "" }, button);
  });
  if (name && !classes.includes(name)) {
    items.push(make("li", { class: `add${shown.length ? "" : " first"}` },
      make("button", { type: "button", click: () => choose(name) }, `Add the class “${name}”`)));
  }
  el("classes").replaceChildren(...items);
  el("no-classes").hidden = items.length > 0;
}

function figures(id, pairs) {
  el(id).replaceChildren(...pairs.filter(Boolean).flatMap(([name, value]) =>
    [make("dt", {}, name), make("dd", {}, value)]));
}

export function drawState(state, look) {
  const model = state.model;
  drawLearning(state);
  drawError(model);
  el("error-more").textContent = errorMore(state);
  drawCurve(state);
  drawNeeded(state);
  figures("figures", [
    ["Labelled rows", `${number(state.labels)} of ${number(state.rows)}`],
    state.given ? ["already in the table", number(state.given)] : null,
    ["drawn at random", number(state.random)],
    state.unsure ? ["cannot tell", number(state.unsure)] : null,
    state.skipped ? ["skipped", number(state.skipped)] : null,
    ["Accepted of the others", model ? percent(model.accepted_share) : "–"],
  ]);
  const unknown = state.random_unknown;
  el("random-unknown").hidden = unknown === 0;
  el("random-unknown").textContent = `${count(unknown, "random row")} without a label: the estimate `
    + "leaves them out.";
  el("shares").tBodies[0].replaceChildren(...state.classes.map((one) => make("tr", {},
    make("td", {}, one.name), make("td", {}, number(one.labels)),
    make("td", {}, one.share ? `${percent(one.share[0])} (${range(one.share[1], one.share[2])})` : "–"))));
  el("looks").hidden = state.second_looks.length === 0 || state.phase === "check";
  el("look-list").replaceChildren(...state.second_looks.slice(0, 8).map((one) => make("li", {},
    make("button", { type: "button", class: "plain", click: () => look(one.row) },
      `Row ${number(one.row + 1)}: `
      + (one.why === "answers" ? `answered ${one.labels.join(" and ")}`
        : `the model contradicts ${one.labels[0]}`)))));
  for (const [list, button] of [["files", "write"], ["result-files", "result-write"]]) {
    el(list).replaceChildren(...state.files.map((name) => make("li", {},
      make("a", { href: `/download/${encodeURIComponent(name)}`, download: name }, name))));
    el(button).disabled = state.writing || !(model || state.check);
    el(button).textContent = state.writing ? "Making the files …" : "Make the files";
  }
  el("undo").disabled = !state.can_undo;
  el("show-belief").hidden = state.phase === "check" || !model;
  el("skip").hidden = state.phase === "check";
  drawCheck(state);
}

function drawError(model) {
  const text = !model || model.error.value === null ? "Not known yet" : capital(model.error.text);
  const [first, limits] = text.split(" (");
  el("error").replaceChildren(first,
    ...(limits ? [" ", make("span", { class: "limits" }, `(${limits}`)] : []));
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const range = (low, high) => `${percent(low).replace(" %", "")}–${percent(high)}`;

function errorMore(state) {
  if (!state.model || state.model.error.value === null) {
    return state.random ? "The model is learning." : "Random rows with an answer tell it.";
  }
  const notes = state.model.error.notes.length ? ` Be careful: ${state.model.error.notes.join("; ")}.` : "";
  return `Of the rows without a label, by ${count(state.model.error.n, "random row")}. `
    + `The goal is ${goalText(state.goal)}.${notes}`;
}

function drawNeeded(state) {
  const button = el("start-check");
  button.hidden = state.phase === "check";
  button.disabled = !state.model || state.model.accepted === 0;
  button.classList.toggle("strong", state.goal_met);
  el("needed").hidden = state.phase === "check" || state.needed === null;
  if (state.goal_met) {
    el("needed").textContent = "The goal is met by the estimate: every label is accepted. Random "
      + "checks can prove it.";
  } else if (state.needed) {
    el("needed").textContent = `About ${count(rounded(state.needed), "more label")} to go.`;
  } else {
    el("needed").textContent = "";
  }
}

function rounded(n) {
  if (n < 20) return n;
  const step = 10 ** (Math.floor(Math.log10(n)) - (n >= 100 ? 1 : 0));
  return Math.round(n / step) * step;
}

function drawLearning(state) {
  const { busy, seconds, trouble } = state.learning;
  const text = trouble ? "" : busy && seconds > 1 ? "Learning …"
    : state.model ? `Learned from ${count(state.model.n_labels, "label")}` : "";
  if (el("learning").textContent !== text) el("learning").textContent = text;
}

function drawCheck(state) {
  const check = state.check;
  el("check").hidden = !check;
  el("result").hidden = !check || check.outcome === "open";
  el("take").hidden = Boolean(check && check.outcome === "proved");
  if (!check) return;
  el("check-text").textContent = `Are at most ${goalText(check.goal)} of the `
    + `${number(check.rows)} accepted labels wrong? Rows are drawn at random; the labels stay as `
    + "they are until the check ends. You may stop at any time: the limit holds at every moment.";
  figures("check-figures", [
    ["Checked", number(check.checked)],
    ["Wrong", number(check.wrong)],
    ["At most wrong", check.limit ?? "–"],
    check.wrong ? ["once corrected", check.limit_corrected] : null,
    check.needed && check.outcome === "open"
      ? ["Checks probably needed", `about ${number(rounded(check.needed))}`] : null,
  ]);
  el("stop-check").hidden = check.outcome !== "open";
  if (check.outcome === "open") return;
  const proved = check.outcome === "proved";
  el("result").classList.toggle("refuted", !proved);
  el("result-title").textContent = proved ? "Proved" : "Refuted";
  el("result-text").textContent = capital(check.statement) + ".";
  el("result-next").textContent = proved
    ? "The files hold these labels, with the wrong ones corrected."
    : `More than ${goalText(check.goal)} of the accepted labels are wrong. Label more rows; what was `
      + "checked is learned.";
}

const SVG = "http://www.w3.org/2000/svg";

function shape(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

export function drawCurve(state) {
  const svg = el("curve"), points = state.curve;
  svg.toggleAttribute("hidden", points.length < 2);
  if (points.length < 2) return;
  const [left, right, top, bottom] = [34, 312, 10, 108];
  const most = Math.max(2.2 * state.goal, ...points.map((p) => p.value), points.at(-1).high);
  const ceiling = Math.min(1, 1.05 * most);
  const first = points[0].n_labels, last = Math.max(points.at(-1).n_labels, first + 1);
  const x = (n) => left + (right - left) * (n - first) / (last - first);
  const y = (share) => bottom - (bottom - top) * Math.min(share, ceiling) / ceiling;
  const path = (list) => list.map(([a, b]) => `${a.toFixed(1)},${b.toFixed(1)}`).join(" ");
  const upper = points.map((p) => [x(p.n_labels), y(p.high)]);
  const lower = points.map((p) => [x(p.n_labels), y(p.low)]).reverse();
  const goal = y(state.goal);
  svg.replaceChildren(
    shape("polygon", { class: "band", points: path([...upper, ...lower]) }),
    shape("line", { class: "axis", x1: left, x2: right, y1: bottom, y2: bottom }),
    shape("line", { class: "goal", x1: left, x2: right, y1: goal, y2: goal }),
    shape("polyline", { class: "line", points: path(points.map((p) => [x(p.n_labels), y(p.value)])) }),
    shape("circle", { class: "dot", cx: x(points.at(-1).n_labels), cy: y(points.at(-1).value), r: 3.5 }),
    shape("text", { x: left - 6, y: top + 4, "text-anchor": "end" }, percent(ceiling)),
    shape("text", { x: left - 6, y: bottom + 4, "text-anchor": "end" }, "0"),
    shape("text", { x: right, y: goal - 5, "text-anchor": "end", class: "of-goal" },
      `goal ${goalText(state.goal)}`),
    shape("text", { x: left, y: bottom + 18 }, number(first)),
    shape("text", { x: right, y: bottom + 18, "text-anchor": "end" }, `${number(last)} labels`),
  );
  svg.setAttribute("aria-label", `Estimated share of wrong labels: ${points.map((p) =>
    `${percent(p.value)} after ${number(p.n_labels)} labels`).slice(-5).join(", ")}; goal ${goalText(state.goal)}`);
}

export function notices(list) {
  el("notices").replaceChildren(...list.map(({ text, items, bad }) => {
    const box = make("div", { class: bad ? "notice bad" : "notice", role: bad ? "alert" : "note" }, text);
    if (items?.length) box.append(make("ul", {}, ...items.map((item) => make("li", {}, item))));
    return box;
  }));
}
