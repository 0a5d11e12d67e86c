// What a person does, and what the server answers. An answer counts when the server has stored it.

import { drawCard, drawClasses, drawState, el, found, notices, percent } from "./view.js";

const tab = sessionStorage.getItem("tab")
  ?? [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");
sessionStorage.setItem("tab", tab);

let card = null;
let classes = [];
let waiting = false;
let fetching = Promise.resolve();  // the row of another phase: an answer waits for it
let start = { notes: [] };
let phase = "label";
let offline = false;
let trouble = "";

async function ask(what, sent) {
  const answer = await fetch(`/api/${what}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-fewlabel": "1" },
    body: JSON.stringify({ tab, who: el("who").value, ...sent }),
  });
  if (answer.status === 403) throw new Error("This page is no longer valid: open the address that "
    + "fewlabel label printed.");
  const told = await answer.json();
  if (!answer.ok) throw new Error(`${told.error} ${told.remedy}`.trim());
  return told;
}

function say(text, bad = false) {
  el("feedback").textContent = text;
  el("feedback").classList.toggle("bad", bad);
}

// One request at a time: a key that is held down must not answer rows nobody has seen.
async function once(action) {
  if (waiting) return;
  waiting = true;
  try {
    await action();
  } catch (error) {
    const lost = error instanceof TypeError;
    say(lost ? "Not stored: the program does not answer. Start it again and reload this page."
      : error.message, true);
  } finally {
    waiting = false;
  }
}

function show(next) {
  card = next;
  drawCard(card);
  el("comment").value = "";
  el("find").value = "";
  listClasses();
}

const listClasses = () => drawClasses(classes, el("find").value, choose);

async function refresh() {
  try {
    const answer = await fetch("/api/state");
    if (!answer.ok) throw new Error(String(answer.status));
    const state = await answer.json();
    offline = false;
    trouble = state.learning.trouble;
    drawState(state, look);
    const names = state.classes.map((one) => one.name);
    if (names.join("\n") !== classes.join("\n")) {
      classes = names;
      listClasses();
    }
    if (state.phase !== phase || (card === null && state.check?.outcome !== "proved")) {
      const changed = state.phase !== phase;
      phase = state.phase;
      if (changed || !waiting) {
        fetching = once(async () => {
          const next = (await ask("next")).card;
          // A row that is being answered stays, with what was typed.
          if (next?.row !== card?.row || next?.why !== card?.why) show(next);
        });
        await fetching;
      }
      if (changed && phase === "check") {
        say(`${el("feedback").textContent} Now the check: the labels are final, and rows are drawn at `
          + "random to see how many are wrong.");
      }
    }
    if (state.check && state.check.outcome !== "open") drawCard(null), el("empty").hidden = true;
  } catch {
    offline = true;
  }
  notices([
    offline && { text: "The program does not answer. Answers that were stored are safe. Start it "
      + "again and reload this page.", bad: true },
    trouble && { text: `Learning failed: ${trouble}`, bad: true },
    ...start.notes.map((note) => ({ text: note.text, items: note.items })),
  ].filter(Boolean));
}

async function answer(kind, label) {
  const shown = card;
  await fetching;
  return once(async () => {
    if (!card || card !== shown) return;
    const sent = { row: card.row, kind, label, comment: el("comment").value,
      reveal: el("reveal").checked };
    const told = await ask("answer", sent);
    const what = kind === "label" ? told.label : kind === "skip" ? "skipped" : "cannot tell";
    say(`Row ${(card.row + 1).toLocaleString("en-US")}: ${what}. ${believed(told.belief)}`);
    show((await ask("next")).card);
    refresh();
  });
}

const choose = (label) => answer("label", label);

const believed = (belief) => !belief ? ""
  : `The model believed ${belief.label}, with a chance of ${percent(belief.chance)}.`;

const undo = () => once(async () => {
  const told = await ask("undo");
  if (told.undone === null) {
    say("There is nothing to undo.");
    return;
  }
  show(told.card);
  el("comment").value = told.undone.comment;
  say(told.undone.label === null ? "Taken back." : `Taken back: ${told.undone.label}.`);
  refresh();
});

const look = (row) => once(async () => {
  show((await ask("look", { row })).card);
  say("Answer once more: this answer counts.");
  el("row").focus();
});

const simply = (what) => () => once(async () => {
  await ask(what);
  await Promise.resolve();
  setTimeout(refresh, 0);
});

async function changePhase(what) {
  await once(async () => {
    await ask(what);
    say("");
  });
  await refresh();
  el("row").focus();
}

el("skip").addEventListener("click", () => answer("skip"));
el("unsure").addEventListener("click", () => answer("unsure"));
el("undo").addEventListener("click", undo);
el("write").addEventListener("click", simply("write"));
el("result-write").addEventListener("click", simply("write"));
el("start-check").addEventListener("click", () => changePhase("start_check"));
el("stop-check").addEventListener("click", () => changePhase("end_check"));
el("end-check").addEventListener("click", () => changePhase("end_check"));
el("show-belief").addEventListener("click", () => once(async () => {
  if (!card) return;
  const told = await ask("belief", { row: card.row });
  say(told.belief ? `The model believes ${told.belief.label}, with a chance of `
    + `${percent(told.belief.chance)}. This answer will not enter the estimate.`
    : "The model believes nothing yet.");
}));
el("find").addEventListener("input", listClasses);
el("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    event.preventDefault();
    const typed = el("find").value.trim();
    const exact = classes.find((name) => name.toLowerCase() === typed.toLowerCase());
    const best = exact ?? found(classes, typed)[0] ?? typed;
    if (typed) choose(best).then(() => el("find").blur());
  } else if (event.key === "Escape") {
    el("find").value = "";
    listClasses();
    el("find").blur();
  }
});
el("comment").addEventListener("keydown", (event) => {
  if (event.key === "Enter" || event.key === "Escape") el("comment").blur();
});
el("who").addEventListener("change", () => localStorage.setItem("who", el("who").value));
el("reveal").addEventListener("change", () => localStorage.setItem("reveal", el("reveal").checked ? "1" : ""));

const KEYS = {
  s: () => !el("skip").hidden && answer("skip"),
  n: () => answer("unsure"),
  u: undo,
  b: () => !el("show-belief").hidden && el("show-belief").click(),
  c: () => el("comment").focus(),
  "/": () => el("find").focus(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
  if (typing || event.altKey || event.repeat) return;
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
    event.preventDefault();
    undo();
  }
  if (event.ctrlKey || event.metaKey) return;
  const label = /^[1-9]$/.test(event.key) ? classes[Number(event.key) - 1] : undefined;
  if (label !== undefined && card) choose(label);
  else if (KEYS[event.key.toLowerCase()]) {
    event.preventDefault();
    KEYS[event.key.toLowerCase()]();
  }
});

async function begin() {
  el("reveal").checked = localStorage.getItem("reveal") === "1";
  start = await ask("start");
  document.title = `Label ${start.target}: fewlabel`;
  el("title").textContent = `${start.target} of ${start.table}`;
  el("who").value = localStorage.getItem("who") ?? start.who;
  const state = await (await fetch("/api/state")).json();
  phase = state.phase;
  classes = state.classes.map((one) => one.name);
  show((await ask("next")).card);
  await refresh();
  document.documentElement.dataset.ready = "1";
}

begin().catch((error) => say(error.message, true));
setInterval(refresh, 2000);
