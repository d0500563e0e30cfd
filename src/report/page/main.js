// main.js: filters, search, keyboard; what is drawn when.

const bar = id => document.getElementById(id);
let query = '';

function showLane(index) {
  view.lane = index;
  view.selected = -1;
  bar('rank').value = String(index);
  fillFilters();
  const head = lanes[index].head;
  document.querySelectorAll('#columns .side').forEach((span, side) => {
    const log = side === 0 ? head.a : head.b;
    const name = data.head.revisions[side].revision ? data.head.runs[side] : log && log.log.split('/').pop();
    span.replaceChildren(el('span', 'tag ' + kSides[side], kSides[side].toUpperCase()), log ? '  ' + name : '  has no such process');
    span.title = log ? data.head.runs[side] + '\n' + log.log : '';
  });
  applyFilters();
}

function fillFilters() {
  const lane = lanes[view.lane];
  const steps = new Set(), phases = new Set();
  for (let row = 0; row < lane.size; ++row) {
    if (lane.state[row] === kLeftOut) continue;
    const c = lane.coordinates(row);
    steps.add(c[STEP]);
    phases.add(c[PHASE]);
  }
  const fill = (id, all, values, name) => {
    const kept = bar(id).value;
    bar(id).replaceChildren(new Option(all, ''), ...[...values].sort((x, y) => x - y).map(v => new Option(name(v), String(v))));
    bar(id).value = [...bar(id).options].some(option => option.value === kept) ? kept : '';
  };
  fill('step', 'all steps', steps, v => 'step ' + v);
  fill('phase', 'all phases', phases, v => kPhases[v]);
}

// Tables: which entries hold a word. A row holds it if any of what it refers to does.
function wordMatcher(word) {
  const holds = value => value.toLowerCase().includes(word);
  const strings = data.strings.map(holds);
  const sites = data.sites.map(table => table.map(
      site => holds(site.id) || holds(site.op) || holds(site.file + ':' + site.line) || holds(site.in) || holds(site.path)));
  const forms = data.forms.map(form => [0, 1].some(side => {
    const at = side * FORM_SIDE, site = form[at + SITE];
    return site >= 0 && (sites[side][site] || (form[at + SCALARS] >= 0 && strings[form[at + SCALARS]]) ||
                         (form[at + RESULTS] >= 0 && strings[form[at + RESULTS]]));
  }));
  const coordinates = data.coordinates.map(c => (c[NODE] >= 0 && strings[c[NODE]]) || (c[KIND] && holds(kEvents[c[KIND]])));
  const layouts = data.layouts.map(layout => {
    for (let i = 0; i < layout.length; i += SLOT_SIZE)
      if (strings[layout[i + 1]]) return true;
    return false;
  });
  const values = valueMatcher(word);
  return (lane, row) => {
    if (forms[lane.form[row]] || coordinates[lane.coordinate[row]] || layouts[lane.layout[row]]) return true;
    if (!values) return false;
    const size = data.layouts[lane.layout[row]].length / SLOT_SIZE * (lane.both[row] ? 2 : 1);
    for (let i = lane.firstValue[row]; i < lane.firstValue[row] + size; ++i) if (values[lane.values[i]]) return true;
    return false;
  };
}

// Six hex digits or more may begin a fingerprint.
function valueMatcher(word) {
  const digits = word.replace(':', '');
  if (!/^[0-9a-f]{6,32}$/.test(digits)) return null;
  const values = new Uint8Array(data.values.length / 32 + 1);
  let any = false;
  for (let i = 1; i < values.length; ++i) {
    const at = (i - 1) * 32;
    if (data.values.startsWith(digits, at) || (digits.length <= 16 && data.values.startsWith(digits, at + 16))) values[i] = 1, any = true;
  }
  return any ? values : null;
}

function applyFilters() {
  const lane = lanes[view.lane];
  const step = bar('step').value, phase = bar('phase').value, only = bar('only').checked;
  const words = query.toLowerCase().split(/\s+/).filter(word => word).map(wordMatcher);
  if (!step && !phase && !only && !words.length) view.rows = null;
  else {
    const rows = new Uint32Array(lane.size);
    let count = 0;
    for (let row = 0; row < lane.size; ++row) {
      if (only && !lane.differs(row)) continue;
      if (lane.state[row] === kLeftOut) {
        if (only && !step && !phase && !words.length && data.gaps[lane.coordinate[row]].slice(1).some(n => n)) rows[count++] = row;
        continue;
      }
      const c = lane.coordinates(row);
      if (step && c[STEP] !== Number(step)) continue;
      if (phase && c[PHASE] !== Number(phase)) continue;
      if (!words.every(matches => matches(lane, row))) continue;
      rows[count++] = row;
    }
    view.rows = rows.slice(0, count);
  }
  const counts = lane.head.counts, all = counts[0] + counts[1] + counts[2] + counts[3], different = all - counts[0];
  bar('count').textContent = view.rows ? grouped(view.rows.length) + ' of ' + grouped(all)
                                       : counted(all, 'event') + ', ' + counted(different, 'difference');
  resizeRows();
  if (view.selected >= 0) {
    const place = placeOfRow(view.selected);
    if (place >= 0) scrollToPlace(place, false);
  }
}

function search(words) {
  query = words;
  bar('search').value = words;
  applyFilters();
  if (rowCount() && view.rows && rowsBox.getBoundingClientRect().top > window.innerHeight / 2) bar('bar').scrollIntoView();
}

// A candidate by its place in the list, and any row; filters that hide it are taken off.
function goTo(index) {
  const candidate = data.head.candidates[index];
  const at = candidate && candidateRow(candidate);
  if (at) goToRow(at);
}

function goToRow(at) {
  if (view.lane !== at[0]) showLane(at[0]);
  if (placeOfRow(at[1]) < 0) {
    bar('step').value = bar('phase').value = '';
    bar('only').checked = false;
    search('');
  }
  select(at[1], true);
}

function escape() {
  if (bar('help').open) bar('help').close();
  else if (query || document.activeElement === bar('search')) {
    search('');
    bar('search').blur();
  } else if (!bar('details').hidden) {
    hideDetails();
    select(-1, false);
  }
}

function showHelp() {
  const keys = [['j  k  ↓  ↑', 'next, previous event'], ['n  N', 'next, previous difference'], ['p', 'the pivot'], ['2 … 6', 'another candidate'],
                ['/', 'search: operator, file:line, argument, or the first digits of a fingerprint'],
                ['d', 'only differences'], ['Esc', 'clear the search, close the details']];
  const list = el('dl', '');
  for (const [key, meaning] of keys) list.append(el('dt', '', key), el('dd', '', meaning));
  bar('help').replaceChildren(list);
  bar('help').showModal();
}

const keys = {
  j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
  n: () => moveToDifference(1), N: () => moveToDifference(-1), p: () => goTo(0),
  d: () => { bar('only').checked = !bar('only').checked; applyFilters(); },
  '/': () => { bar('search').focus(); bar('search').select(); },
  '?': showHelp,
};
for (let i = 2; i <= 6; ++i) keys[String(i)] = () => goTo(i - 1);

document.addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === 'Escape') {
    escape();
    event.preventDefault();
    return;
  }
  const typing = event.target.matches('input[type="search"], select');
  if (typing || bar('help').open || !Object.hasOwn(keys, event.key)) {
    // From the search box, Enter and the arrow lead to what was found.
    if (event.target === bar('search') && (event.key === 'Enter' || event.key === 'ArrowDown')) {
      bar('search').blur();
      if (rowCount()) select(rowAt(0), true);
      event.preventDefault();
    }
    return;
  }
  keys[event.key]();
  event.preventDefault();
});

let waiting = 0;
bar('search').addEventListener('input', () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => search(bar('search').value), 60);
});
for (const id of ['step', 'phase', 'only']) bar(id).addEventListener('change', applyFilters);
bar('rank').addEventListener('change', () => showLane(Number(bar('rank').value)));
bar('next').addEventListener('click', () => moveToDifference(1));
bar('previous').addEventListener('click', () => moveToDifference(-1));
bar('pivot').addEventListener('click', () => goTo(0));
bar('keys').addEventListener('click', showHelp);
rowsBox.addEventListener('click', event => {
  const element = event.target.closest('.row');
  if (element) select(rowAt(element.place), false);
});
overviewCanvas.addEventListener('click', clickOverview);

let frame = 0;
window.addEventListener('scroll', () => {
  if (!frame) frame = requestAnimationFrame(() => { frame = 0; drawRows(false); });
}, {passive: true});
function redraw() {
  drawOverview();
  drawRows(true);
}
window.addEventListener('resize', redraw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

// On paper: the surroundings of every candidate.
window.addEventListener('beforeprint', () => {
  const paper = bar('paper');
  paper.replaceChildren();
  data.head.candidates.forEach((candidate, i) => {
    const at = candidateRow(candidate);
    if (!at) return;
    paper.append(el('h3', '', (i === 0 ? 'Around the pivot' : 'Around candidate ' + (i + 1)) + ', ' + laneName(at[0])));
    const from = Math.max(0, at[1] - 8), to = Math.min(lanes[at[0]].size, at[1] + 6);
    for (let row = from; row < to; ++row) {
      const element = makeRow();
      fillRow(element, at[0], row, row > from ? row - 1 : -1);
      paper.append(element);
    }
  });
});

bar('rank').append(...lanes.map((lane, index) => new Option(laneName(index), String(index))));
bar('rank').hidden = lanes.length < 2;
bar('pivot').hidden = !data.head.candidates.length;
showSummary();
const start = data.head.candidates.length && candidateRow(data.head.candidates[0]);
if (lanes.length) {
  drawOverview();
  showLane(start ? start[0] : 0);
} else {
  for (const part of ['#bar', '#overview', 'main']) document.querySelector(part).hidden = true;
}
