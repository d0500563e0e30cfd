// details.js: one event, or two: source with carets, tensors with fingerprints, arguments, times.

const kSides = ['a', 'b'];

// site null: that side has no such operator.
function sourceBox(side, site) {
  const tag = el('span', 'tag ' + kSides[side], kSides[side].toUpperCase());
  if (!site) return el('div', 'source', el('div', 'place', tag), el('div', 'none', 'has no such operator'));
  // The line is never cut off.
  const path = el(site.link ? 'a' : 'span', 'path mono', el('span', '', site.file || site.id),
                  site.file ? placeOf(site, false).slice(site.file.length) + site.label : '');
  path.title = (site.path || site.file) + site.label;
  if (site.link) Object.assign(path, {href: site.link, target: '_blank', rel: 'noreferrer'});
  const place = el('div', 'place', tag, path, site.in ? el('span', 'in mono', 'in ' + site.in) : null);
  if (site.in) place.lastChild.title = 'in ' + site.in;
  if (!site.source.length) {
    return el('div', 'source', place, el('div', 'none', site.file ? 'its source is not at hand' : 'its place is not known'));
  }
  const lines = el('pre', '');
  for (const [number, before, marked, after] of site.source) {
    const code = el('code', marked ? '' : 'other', before, marked ? el('mark', '', marked) : null, after);
    lines.append(el('div', '', el('span', 'number', String(number)), code));
    if (!marked) continue;
    const carets = ' '.repeat([...before].length) + '^' + '~'.repeat(Math.max(0, [...marked].length - 1));
    lines.append(el('div', '', el('span', 'number'), el('code', 'caret', carets)));
  }
  return el('div', 'source', place, lines);
}

// What a side that lacks an operator shows in its half: the same boundary where that run has it.
// known: of a candidate, looked for in all of the run; else the nearest row of the lane.
function elsewhereBox(side, known, laneIndex, row) {
  const lane = lanes[laneIndex];
  let site = known, when = known && known.when;
  for (let away = 1; !site && away < lane.size; ++away)
    for (const at of [row - away, row + away]) {
      const found = at >= 0 && at < lane.size ? lane.site(at, side) : null;
      if (!found || found.id !== lane.site(row, 1 - side).id || lane.coordinates(at)[KIND] !== lane.coordinates(row)[KIND]) continue;
      site = found;
      when = describeCoordinates(laneIndex, at);
      break;
    }
  const box = sourceBox(side, site);
  if (site) box.append(el('p', 'inner faint', 'not here: it runs it in ' + when));
  return box;
}

// Eight digits of either half tell values apart; a search takes all, which the tooltip shows.
function valueButton(value, names) {
  const digits = fingerprint(value);
  if (!digits) return 'unreadable';
  return jump(names, digits + ': every event that holds this value', () => search(digits), digits.slice(0, 8) + ':' + digits.slice(17, 25));
}

// How two values of a slot differ, in words: a fingerprint only tells that they do.
function meaningOf(slot) {
  if (!slot.differs) return 'equal';
  if (slot.meta[0] === null || slot.meta[1] === null) return 'only in ' + kSides[slot.meta[0] === null ? 1 : 0];
  if (slot.meta[0] !== slot.meta[1]) return 'another shape';
  return onlyOrderDiffers(slot) ? 'other order of rows' : 'other values';
}

// Rows of a table for one slot: one line where both sides agree, else one a side.
function slotRows(slot, oneSided) {
  const rows = [];
  const add = (name, side, meta, value, names, unlike) => {
    const shape = el('td', 'shape' + (unlike && slot.meta[0] !== slot.meta[1] ? ' unlike' : ''), meta === null ? 'absent' : meta);
    const number = el('td', '', meta === null ? '' : valueButton(value, unlike && slot.value[0] !== slot.value[1] ? 'unlike' : ''));
    const meaning = el('td', 'meaning', name && oneSided < 0 ? meaningOf(slot) : '');
    rows.push(el('tr', names, el('th', '', name), meaning, el('td', '', side), shape, number));
  };
  if (oneSided >= 0) add(slot.name, kSides[oneSided], slot.meta[oneSided], slot.value[oneSided], 'first', false);
  else if (slot.differs) {
    add(slot.name, 'a', slot.meta[0], slot.value[0], 'first', true);
    add('', 'b', slot.meta[1], slot.value[1], '', true);
  } else if (slot.meta[0] === null || slot.meta[1] === null || slot.value[0] !== slot.value[1]) {
    add(slot.name, 'a', slot.meta[0], slot.value[0], 'first equal', false);
    add('', 'b', slot.meta[1], slot.value[1], 'equal', false);
  } else add(slot.name, '=', slot.meta[0], slot.value[0], 'equal', false);
  return rows;
}

// og1's second half counts rows wherever they stand: docs/formats/record-format.md.
function onlyOrderDiffers(slot) {
  if (!slot.differs || slot.meta[0] !== slot.meta[1]) return false;
  const [a, b] = slot.value.map(fingerprint);
  return a && b && a.slice(17) === b.slice(17) && a.slice(0, 16) !== b.slice(0, 16);
}

function textRows(name, lane, row, column) {
  const texts = [0, 1].map(side => lane.has(row, side) ? text(lane.side(row, side)[column]) : null);
  if (!texts[0] && !texts[1]) return [];
  const line = (head, side, value, names) =>
      el('tr', names, el('th', '', head), el('td', '', side), el('td', 'text' + (names.includes('unlike') ? ' unlike' : ''), value || 'none'));
  const make = (head, side, value, names) => {
    const tr = line(head, side, value, names);
    tr.lastChild.colSpan = 2;
    tr.insertBefore(el('td', 'meaning', names === 'first unlike' ? 'others' : ''), tr.children[1]);
    return tr;
  };
  if (texts[0] === null || texts[1] === null) {
    const side = texts[0] === null ? 1 : 0;
    return [make(name, kSides[side], texts[side], 'first')];
  }
  if (texts[0] === texts[1]) return [make(name, '=', texts[0], 'equal')];
  return [make(name, 'a', texts[0], 'first unlike'), make('', 'b', texts[1], 'unlike')];
}

// What one row holds. `all`: equal slots too.
function slotTable(laneIndex, row, all, limit) {
  const lane = lanes[laneIndex];
  const oneSided = lane.state[row] === kOnlyA ? 0 : lane.state[row] === kOnlyB ? 1 : -1;
  const slots = lane.slots(row);
  const table = el('table', 'slots');
  let shown = 0, equal = 0, left = 0, order = false;
  for (const slot of slots) {
    if (!all && oneSided >= 0 && slot.kind === 0) continue;
    if (!all && oneSided < 0 && !slot.differs) { ++equal; continue; }
    if (shown >= limit) { ++left; continue; }
    ++shown;
    table.append(...slotRows(slot, oneSided));
    order = order || onlyOrderDiffers(slot);
  }
  const unlike = (column) => oneSided >= 0 || lane.side(row, 0)[column] !== lane.side(row, 1)[column];
  if (all || unlike(SCALARS)) table.append(...textRows('arguments', lane, row, SCALARS));
  if (all || unlike(RESULTS)) table.append(...textRows('results', lane, row, RESULTS));
  const hints = [];
  if (!all && oneSided >= 0 && !table.rows.length) hints.push('no tensor');
  if (order) hints.push('the same rows in another order');
  if (left) hints.push('and ' + counted(left, 'more tensor'));
  if (equal) hints.push(counted(equal, 'other tensor') + (equal === 1 ? ' is' : ' are') + ' equal');
  const raised = [0, 1].map(side => lane.has(row, side) && (lane.side(row, side)[FLAGS] & kRaised) !== 0);
  if (raised[0] !== raised[1] && oneSided < 0) hints.push('it raised an exception in ' + kSides[raised[0] ? 0 : 1] + ' only');
  else if (raised[0] || raised[1]) hints.push('it raised an exception');
  return el('div', '', table, hints.length ? el('p', 'hint', hints.join('; ')) : null);
}

function timeTable(laneIndex, row) {
  const lane = lanes[laneIndex];
  const table = el('table', 'slots');
  for (let side = 0; side < 2; ++side) {
    if (!lane.has(row, side)) continue;
    table.append(el('tr', '', el('th', '', kSides[side]), el('td', '', 'event ' + grouped(lane.event[side][row])),
                    el('td', '', 'at ' + duration(lane.start[side][row] - lane.origin[side])),
                    el('td', '', 'for ' + duration(lane.time[side][row]))));
  }
  return table;
}

function showDetails(laneIndex, row) {
  const lane = lanes[laneIndex];
  const box = document.getElementById('details');
  box.replaceChildren();
  box.hidden = false;
  document.querySelector('main').classList.add('open');
  const close = jump('', 'close (Esc)', () => hideDetails(), '×');
  if (lane.state[row] === kLeftOut) {
    box.append(el('h2', '', el('b', '', 'Left out'), close), el('p', 'faint', describeGap(laneIndex, row)));
    return;
  }
  const site = lane.site(row, 0) || lane.site(row, 1);
  const state = stateClass(laneIndex, row);
  const rank = candidateRows[laneIndex].get(row);
  const words = [kStates[lane.state[row]]];
  if (rank === 0) words.unshift('pivot');
  else if (rank > 0) words.unshift('candidate ' + (rank + 1));
  box.append(el('h2', '', el('b', 'mono', site.op), el('span', 'faint mono id', site.id), close),
             el('p', '', el('span', 'state ' + state, words.join(': ')), ' ', el('span', 'faint', describeCoordinates(laneIndex, row))));
  if (rank !== undefined && data.head.candidates[rank].why) box.append(el('p', '', data.head.candidates[rank].why));
  const same = lane.has(row, 0) && lane.has(row, 1);
  const elsewhere = rank === undefined ? null : data.head.candidates[rank].elsewhere;
  for (let side = 0; side < 2; ++side) {
    // Of a candidate: what the other run did instead, which is another row.
    const other = rank === undefined ? null : side === 0 ? data.head.candidates[rank].a : data.head.candidates[rank].b;
    if (lane.has(row, side)) box.append(sourceBox(side, lane.site(row, side)));
    else if (other) box.append(sourceBox(side, lanes[other[0]].site(other[1], side)));
    else box.append(elsewhereBox(side, elsewhere && elsewhere[side], laneIndex, row));
  }
  const groups = [[], [], []];
  for (const slot of lane.slots(row)) groups[slot.kind].push(slot);
  const oneSided = same ? -1 : lane.has(row, 0) ? 0 : 1;
  groups.forEach((slots, kind) => {
    if (!slots.length) return;
    const table = el('table', 'slots');
    // What differs first; of thousands of parameters the rest is cut.
    slots.sort((x, y) => y.differs - x.differs);
    for (const slot of slots.slice(0, 200)) table.append(...slotRows(slot, oneSided));
    box.append(el('h3', '', kSlots[kind] + (slots.length > 200 ? ', the first 200 of ' + grouped(slots.length) : '')), table);
    if (slots.some(onlyOrderDiffers)) box.append(el('p', 'hint', 'the same rows in another order'));
  });
  const others = el('table', 'slots');
  others.append(...textRows('arguments', lane, row, SCALARS), ...textRows('results', lane, row, RESULTS));
  if (others.childElementCount) box.append(el('h3', '', 'not tensors'), others);
  box.append(el('h3', '', 'when'), timeTable(laneIndex, row));
  box.scrollTop = 0;
}

function hideDetails() {
  document.getElementById('details').hidden = true;
  document.querySelector('main').classList.remove('open');
}
