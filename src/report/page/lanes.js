// lanes.js: the rows of one rank, of which only those in sight are elements.

const kRowHeight = 22;

const view = {
  lane: 0,
  rows: null,    // indices of the rows that pass the filters, null: all
  selected: -1,  // row, not its place among those that pass
  pool: [],      // elements, reused: place p is shown by pool[p % pool.length]
};

const rowsBox = document.getElementById('rows');

function rowCount() { return view.rows ? view.rows.length : lanes[view.lane].size; }
function rowAt(place) { return view.rows ? view.rows[place] : place; }

// The place of a row among those shown, or of the first after it; -1 - place where it is not shown.
function placeOfRow(row) {
  if (!view.rows) return row;
  let low = 0, high = view.rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (view.rows[middle] < row) low = middle + 1; else high = middle;
  }
  return view.rows[low] === row ? low : -1 - low;
}

function describeGap(laneIndex, row) {
  const [equal, unlike, a, b] = data.gaps[lanes[laneIndex].coordinate[row]];
  const parts = [];
  if (equal) parts.push(counted(equal, 'equal pair'));
  if (unlike) parts.push(counted(unlike, 'differing pair'));
  if (a) parts.push(grouped(a) + ' only in a');
  if (b) parts.push(grouped(b) + ' only in b');
  return parts.join(', ') + ' not listed in this page';
}

function makeRow() {
  const cell = side => el('div', 'cell ' + side, el('span', 'place', el('span', 'file'), el('span')), el('span', 'op'), el('span', 'shape'));
  const element = el('div', 'row', el('span', 'when'), cell('a'), el('span', 'link'), cell('b'));
  element.setAttribute('role', 'option');
  element.when = element.children[0];
  element.link = element.children[2];
  element.cells = [element.children[1], element.children[3]];
  return element;
}

// The result's shape tells most; an operator without one shows what it read.
function mainShape(lane, row, side) {
  const layout = data.layouts[lane.layout[row]];
  let found = -1;
  for (let i = 0; i < layout.length; i += SLOT_SIZE) {
    const meta = layout[i + 2 + side];
    if (meta < 0) continue;
    if (layout[i] === 1) return data.metas[meta];
    if (found < 0) found = meta;
  }
  return found < 0 ? '' : data.metas[found];
}

function fillCell(cell, laneIndex, row, side) {
  const lane = lanes[laneIndex];
  const site = lane.site(row, side);
  const [place, op, shape] = cell.children;
  if (!site) {
    place.children[0].textContent = place.children[1].textContent = op.textContent = shape.textContent = cell.title = '';
    return;
  }
  const c = lane.coordinates(row);
  // The line is never cut off.
  place.children[0].textContent = site.file ? shortPath(site.file) : site.id;
  place.children[1].textContent = site.file ? ':' + site.line : '';
  op.textContent = c[KIND] === 1 ? site.op + '  ' + text(c[NODE]) : c[KIND] === 0 ? site.op : site.op + '  ' + kEvents[c[KIND]];
  shape.textContent = mainShape(lane, row, side);
  // All that a narrow cell cuts off.
  cell.title = [placeOf(site, false) + site.label, op.textContent, shape.textContent].filter(part => part).join('\n');
}

// "step 3 backward" where it changes.
function whenText(laneIndex, row, before) {
  const lane = lanes[laneIndex];
  if (lane.state[row] === kLeftOut) return '';
  const c = lane.coordinates(row);
  if (before >= 0 && lane.state[before] !== kLeftOut) {
    const d = lane.coordinates(before);
    if (c[STEP] === d[STEP] && c[PHASE] === d[PHASE]) return '';
    if (c[STEP] === d[STEP]) return kPhases[c[PHASE]];
  }
  return 'step ' + c[STEP] + ' ' + kPhases[c[PHASE]];
}

function fillRow(element, laneIndex, row, before) {
  const lane = lanes[laneIndex];
  let names = 'row ' + stateClass(laneIndex, row);
  if (row === view.selected && laneIndex === view.lane) names += ' selected';
  const edge = data.head.boundary;
  if (edge && edge[0] === laneIndex && edge[1] === row) names += ' certified';
  element.className = names;
  element.setAttribute('aria-selected', String(row === view.selected));
  element.when.textContent = whenText(laneIndex, row, before);
  if (lane.state[row] === kLeftOut) {
    for (const cell of element.cells) for (const part of cell.querySelectorAll('span:not(.place)')) part.textContent = '';
    element.cells[0].title = element.cells[0].children[1].textContent = describeGap(laneIndex, row);
    element.link.textContent = '';
    return;
  }
  element.link.textContent = names.includes('first') ? '≠' : '';
  fillCell(element.cells[0], laneIndex, row, 0);
  fillCell(element.cells[1], laneIndex, row, 1);
}

let drawn = [-1, -1];

// Elements for what is in sight. `all`: what they show has changed, not only the scroll position.
function drawRows(all) {
  const count = rowCount();
  const top = rowsBox.getBoundingClientRect().top;
  const height = window.innerHeight;
  const spare = 6;
  const first = Math.max(0, Math.min(count, Math.floor(-top / kRowHeight) - spare));
  const last = Math.min(count, Math.ceil((height - top) / kRowHeight) + spare);
  const needed = Math.ceil(height / kRowHeight) + 2 * spare + 2;
  while (view.pool.length < needed) {
    const element = makeRow();
    view.pool.push(element);
    rowsBox.append(element);
    all = true;
  }
  if (!all && first === drawn[0] && last === drawn[1]) return;
  for (let place = first; place < last; ++place) {
    if (!all && place >= drawn[0] && place < drawn[1]) continue;
    const element = view.pool[place % view.pool.length];
    element.place = place;
    element.hidden = false;
    element.style.transform = 'translateY(' + place * kRowHeight + 'px)';
    fillRow(element, view.lane, rowAt(place), place > 0 ? rowAt(place - 1) : -1);
  }
  for (const element of view.pool)
    if (!(element.place >= first && element.place < last)) element.hidden = true;
  drawn = [first, last];
  const here = Math.max(0, Math.min(count - 1, Math.ceil((67 - top) / kRowHeight)));
  const row = count ? rowAt(here) : -1;
  const lane = lanes[view.lane];
  const words = document.getElementById('here');
  words.textContent = row >= 0 && lane.state[row] !== kLeftOut ? 'step ' + lane.coordinates(row)[STEP] + ' ' + kPhases[lane.coordinates(row)[PHASE]] : '';
  words.title = words.textContent;
  drawViewport(first, last);
}

function resizeRows() {
  rowsBox.style.height = rowCount() * kRowHeight + 'px';
  let nothing = rowsBox.querySelector('.nothing');
  if (!rowCount() && !nothing) rowsBox.append(el('p', 'nothing', 'No event passes the filters.'));
  else if (rowCount() && nothing) nothing.remove();
  drawRows(true);
}

// Brings a place into the middle third of what is left of the window under the bar.
function scrollToPlace(place, always) {
  const top = rowsBox.getBoundingClientRect().top + window.scrollY;
  const bar = 67;
  const at = top + place * kRowHeight;
  const from = window.scrollY + bar, to = window.scrollY + window.innerHeight - 2 * kRowHeight;
  if (always || at < from || at > to) window.scrollTo(0, Math.max(0, at - bar - (window.innerHeight - bar) / 3));
}

function select(row, centre) {
  view.selected = row;
  if (row >= 0) {
    const place = placeOfRow(row);
    if (place >= 0) scrollToPlace(place, centre);
    showDetails(view.lane, row);
  }
  drawRows(true);
}

// by: 1 or -1, from the selected row, or from the first in sight.
function move(by) {
  const count = rowCount();
  if (!count) return;
  let place = view.selected < 0 ? -1 : placeOfRow(view.selected);
  if (view.selected < 0) place = Math.max(0, drawn[0]) - (by > 0 ? 1 : 0);
  else if (place < 0) place = by > 0 ? -2 - place : -1 - place;
  select(rowAt(Math.max(0, Math.min(count - 1, place + by))), false);
}

function moveToDifference(by) {
  const lane = lanes[view.lane];
  const count = rowCount();
  let place = view.selected < 0 ? (by > 0 ? -1 : count) : placeOfRow(view.selected);
  if (place < 0 && view.selected >= 0) place = by > 0 ? -2 - place : -1 - place;
  for (place += by; place >= 0 && place < count; place += by) {
    const row = rowAt(place);
    const told = !lane.isState(row) || candidateRows[view.lane].has(row);
    if (lane.differs(row) && lane.state[row] !== kLeftOut && told) {
      select(row, true);
      return;
    }
  }
}
