"use strict";
// Ranks from top to bottom, steps from left to right; a rank's colour from its first difference on.
// Of what is smaller than a pixel the gravest is shown: one rank of 10,000 on which it began is seen.
// A frame costs two rectangles a row of pixels, however many ranks and steps there are.

const data = JSON.parse(document.getElementById("data").textContent);
const KINDS = ["equal", "open", "unknown", "received", "origin"]; // by gravity
const LEFT = 64, TOP = 22; // pixels, for the numbers
const count = data.rank.length, steps = Math.max(1, data.steps);
const canvas = document.getElementById("map"), pen = canvas.getContext("2d"), here = document.getElementById("here");
let order = [...Array(count).keys()]; // rows -> places in data
let grouping = "", edges = []; // the name by whose groups they are ordered, and the rows at which groups begin
const view = { x: 0, y: 0, width: steps, height: Math.max(1, count) }; // in steps and rows
let colours = {}, size = { width: 0, height: 0 }, waiting = false;

function element(tag, text, kind) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
}

function summarise() {
  const summary = document.getElementById("summary");
  summary.append(element("h1", data.headline, data.verdict), element("p", data.counts, "faint"));
  if (data.pivot) summary.append(element("h2", data.pivot));
  summary.append(element("p", `run a: ${data.a}   run b: ${data.b}`, "faint"));
  if (data.missing) summary.append(element("p", data.missing));
  const lines = document.getElementById("lines");
  for (const line of data.lines) {
    const row = element("p", "");
    const jump = element("button", line.ranks);
    jump.type = "button";
    jump.addEventListener("click", () => show(line.first));
    row.append(jump, ": " + line.text);
    lines.append(row);
  }
  if (data.more) lines.append(element("p", data.more, "faint"));
}

// The groups that the program named, as one more order each.
function offerGroups() {
  const offered = document.getElementById("groups");
  for (const name of Object.keys(data.groups)) {
    const option = element("option", name);
    option.value = "group " + name;
    offered.append(option);
  }
  offered.hidden = offered.children.length === 0;
}

const groupOf = (one) => data.groups[grouping]?.[one] ?? -1;

function readColours() {
  const style = getComputedStyle(document.documentElement);
  colours = Object.fromEntries([...KINDS, "back", "line", "text", "faint"].map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}

// Where a map's row and step lie on the canvas, in CSS pixels.
const xOf = (step) => LEFT + ((step - view.x) / view.width) * (size.width - LEFT);
const yOf = (row) => TOP + ((row - view.y) / view.height) * (size.height - TOP);

// The rank that a row of pixels shows: the gravest of rows [from, to), of these the first to differ.
function gravest(from, to) {
  let best = order[from];
  for (let row = from + 1; row < to; ++row) {
    const one = order[row], worse = data.kind[one] - data.kind[best];
    if (worse > 0 || (worse === 0 && data.at[one] >= 0 && data.at[one] < data.at[best])) best = one;
  }
  return best;
}

// What is seen at this height: a rank, or the gravest of those that share the row of pixels.
function seenAt(y) {
  const perPixel = view.height / (size.height - TOP), from = Math.floor(view.y + y * perPixel);
  if (from >= count || y < 0) return -1;
  return perPixel <= 1 ? order[from] : gravest(from, Math.max(from + 1, Math.min(count, Math.floor(view.y + (y + 1) * perPixel))));
}

function drawRow(one, top, height) {
  const kind = data.kind[one], end = data.end[one], at = kind === 0 ? end : Math.max(0, data.at[one]);
  const left = Math.max(LEFT, xOf(0)), middle = Math.min(size.width, Math.max(LEFT, xOf(at)));
  if (middle > left) {
    pen.fillStyle = colours.equal;
    pen.fillRect(left, top, middle - left, height);
  }
  if (kind === 0) return;
  // What cannot be told has no end; of others at least a pixel is seen.
  const right = Math.min(size.width, Math.max(xOf(kind === 1 ? steps : end), middle + 1));
  pen.fillStyle = colours[KINDS[kind]];
  if (right > middle) pen.fillRect(middle, top, right - middle, height);
}

// Of so many units on so many pixels, the distance of marks: 1, 2 or 5 times a power of ten.
function distance(units, pixels, wanted) {
  const least = Math.max(1, (units / pixels) * wanted), power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least);
}

function drawNumbers() {
  pen.fillStyle = colours.back;
  pen.fillRect(0, 0, size.width, TOP);
  pen.fillRect(0, 0, LEFT, size.height);
  pen.fillStyle = colours.faint;
  pen.font = "11px " + getComputedStyle(document.body).fontFamily;
  pen.textBaseline = "middle";
  pen.textAlign = "center";
  const across = distance(view.width, size.width - LEFT, 70);
  for (let step = Math.ceil(view.x / across) * across; step <= view.x + view.width; step += across)
    if (xOf(step) < size.width - 12) pen.fillText(String(step), xOf(step), TOP / 2);
  pen.textAlign = "right";
  const down = distance(view.height, size.height - TOP, 22);
  for (let row = Math.ceil(view.y / down) * down; row < Math.min(count, view.y + view.height); row += down)
    pen.fillText(String(data.rank[order[row]]), LEFT - 8, yOf(row + Math.min(0.5, view.height / 2)));
}

function draw() {
  waiting = false;
  pen.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  pen.fillStyle = colours.back;
  pen.fillRect(0, 0, size.width, size.height);
  const perPixel = view.height / (size.height - TOP);
  if (perPixel <= 1) {
    const last = Math.min(count, Math.ceil(view.y + view.height));
    for (let row = Math.max(0, Math.floor(view.y)); row < last; ++row) {
      const top = yOf(row), height = yOf(row + 1) - top;
      drawRow(order[row], top, height > 4 ? height - 1 : height);
    }
  } else {
    for (let y = 0; y < size.height - TOP; ++y) {
      const one = seenAt(y);
      if (one >= 0) drawRow(one, TOP + y, 1);
    }
  }
  drawEdges();
  drawNumbers();
}

// Where one group ends and the next begins, as long as they can be told apart.
function drawEdges() {
  const rows = view.height * (edges.length / count), apart = (size.height - TOP) / rows;
  if (apart < 4) return;
  pen.fillStyle = colours.text;
  for (const row of edges) if (row > view.y && row < view.y + view.height) pen.fillRect(LEFT, Math.round(yOf(row)) - 1, size.width - LEFT, 1);
}

function changed() {
  view.width = Math.min(steps, Math.max(Math.min(4, steps), view.width));
  view.height = Math.min(Math.max(1, count), Math.max(Math.min(4, count), view.height));
  view.x = Math.min(steps - view.width, Math.max(0, view.x));
  view.y = Math.min(count - view.height, Math.max(0, view.y));
  if (!waiting) requestAnimationFrame(draw);
  waiting = true;
}

function fit() {
  size = { width: canvas.clientWidth, height: canvas.clientHeight };
  canvas.width = Math.round(size.width * devicePixelRatio);
  canvas.height = Math.round(size.height * devicePixelRatio);
  changed();
}

function whole() {
  Object.assign(view, { x: 0, y: 0, width: steps, height: Math.max(1, count) });
  changed();
}

function zoom(by, x, y) {
  const atX = view.x + x * view.width, atY = view.y + y * view.height;
  view.width *= by;
  view.height *= by;
  changed(); // the limits first
  view.x = atX - x * view.width;
  view.y = atY - y * view.height;
  changed();
}

// One rank, with some around it, at its first difference.
function show(one) {
  const row = order.indexOf(one);
  view.height = Math.min(count, 40);
  view.width = Math.min(steps, Math.max(20, steps / 50));
  view.y = row - view.height / 2;
  view.x = Math.max(0, data.at[one]) - view.width / 2;
  changed();
  tell(one, Math.max(0, data.at[one]));
  pick(one);
}

function tell(one, step) {
  const group = groupOf(one) < 0 ? "" : `, ${grouping} ${data.members[groupOf(one)]}`;
  const place = (data.place[one] ? `, process ${data.place[one]}` : "") + group;
  const equal = data.kind[one] === 0 || (data.at[one] >= 0 && step < data.at[one]);
  here.textContent = `rank ${data.rank[one]}${place}, step ${step}: ${equal ? "equal" : data.texts[data.text[one]]}`;
  if (equal && data.kind[one] !== 0) here.textContent += `; from step ${data.at[one]} on: ${data.texts[data.text[one]]}`;
}

// The rank whose own page is offered; the pointer's way there leads over others.
function pick(one) {
  const own = document.getElementById("own");
  own.hidden = !data.page[one];
  if (own.hidden) return own.removeAttribute("href");
  own.textContent = `rank ${data.rank[one]}, operator by operator`;
  own.href = [...data.pages.split("/"), data.page[one]].map(encodeURIComponent).join("/");
}

function under(event) {
  const box = canvas.getBoundingClientRect();
  const x = (event.clientX - box.left - LEFT) / (size.width - LEFT), y = (event.clientY - box.top - TOP) / (size.height - TOP);
  return { x, y, step: Math.floor(view.x + x * view.width) };
}

let held = null;
canvas.addEventListener("pointerdown", (event) => {
  held = { x: event.clientX, y: event.clientY, viewX: view.x, viewY: view.y };
  canvas.setPointerCapture(event.pointerId);
  canvas.classList.add("held");
});
canvas.addEventListener("pointermove", (event) => {
  if (held) {
    view.x = held.viewX - ((event.clientX - held.x) / (size.width - LEFT)) * view.width;
    view.y = held.viewY - ((event.clientY - held.y) / (size.height - TOP)) * view.height;
    changed();
    return;
  }
  const at = under(event), one = seenAt(Math.floor(at.y * (size.height - TOP)));
  if (at.x >= 0 && one >= 0 && at.step < steps) tell(one, at.step);
});
for (const name of ["pointerup", "pointercancel"])
  canvas.addEventListener(name, (event) => {
    const at = under(event), one = seenAt(Math.floor(at.y * (size.height - TOP)));
    if (held && Math.hypot(event.clientX - held.x, event.clientY - held.y) < 4 && one >= 0) pick(one);
    held = null;
    canvas.classList.remove("held");
  });
canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  const at = under(event);
  zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), Math.max(0, at.x), Math.max(0, at.y));
}, { passive: false });
canvas.addEventListener("dblclick", whole);

const KEYS = {
  ArrowLeft: () => (view.x -= view.width / 8), ArrowRight: () => (view.x += view.width / 8),
  ArrowUp: () => (view.y -= view.height / 8), ArrowDown: () => (view.y += view.height / 8),
  "+": () => zoom(0.7, 0.5, 0.5), "-": () => zoom(1 / 0.7, 0.5, 0.5), 0: whole,
  o: () => data.origin >= 0 && show(data.origin), Enter: () => document.getElementById("own").click(),
};
canvas.addEventListener("keydown", (event) => {
  if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
  changed();
});

document.getElementById("whole").addEventListener("click", whole);
document.getElementById("origin").addEventListener("click", KEYS.o);
document.getElementById("origin").disabled = data.origin < 0;
document.getElementById("order").addEventListener("change", (event) => {
  const late = (one) => (data.kind[one] === 0 ? Infinity : Math.max(0, data.at[one]));
  const keys = { rank: () => 0, step: late, text: (one) => data.text[one] };
  grouping = keys[event.target.value] ? "" : event.target.value.slice("group ".length);
  const key = keys[event.target.value] ?? groupOf;
  order = [...Array(count).keys()].sort((a, b) => (key(a) === key(b) ? a - b : key(a) < key(b) ? -1 : 1));
  edges = [...Array(count).keys()].filter((row) => row > 0 && groupOf(order[row]) !== groupOf(order[row - 1]));
  whole();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  readColours();
  changed();
});
new ResizeObserver(fit).observe(canvas);

summarise();
offerGroups();
readColours();
fit();
