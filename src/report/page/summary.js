// summary.js: the verdict, the pivot with both sources, why, the certified prefix, the other candidates.

// The candidate's row as the list has it, with two on each side: the list itself begins below the first screen.
function neighbours(laneIndex, row) {
  const box = el('div', 'around');
  const from = Math.max(0, row - 2), to = Math.min(lanes[laneIndex].size, row + 3);
  for (let at = from; at < to; ++at) {
    const element = makeRow();
    element.setAttribute('role', 'link');
    fillRow(element, laneIndex, at, at > from ? at - 1 : -1);
    element.addEventListener('click', () => goToRow([laneIndex, at]));
    box.append(element);
  }
  return box;
}

function pivotSection(candidate) {
  const at = candidate.a || candidate.b;
  if (!at) return null;
  const [laneIndex, row] = at;
  const title = el('h2', '', el('span', 'kind', candidate.kind), el('b', 'mono', candidate.boundary),
                   el('span', 'faint', describeCoordinates(laneIndex, row) + (candidate.slot ? ', slot ' + candidate.slot : '')),
                   jump('faint', 'show it among its neighbours (p)', () => goTo(0), 'show in the run ↓'));
  const sides = el('div', 'sides');
  for (let side = 0; side < 2; ++side) {
    const ref = side === 0 ? candidate.a : candidate.b;
    const call = candidate.calls[side];
    const elsewhere = candidate.elsewhere[side];
    const box = !call && !ref && elsewhere ? elsewhereBox(side, elsewhere, laneIndex, row)
                                           : sourceBox(side, call || (ref ? lanes[ref[0]].site(ref[1], side) : null));
    if (call && call.inner) box.append(el('p', 'inner faint mono', (call.text ? 'shows at: ' : 'in it: ') + call.inner));
    sides.append(box);
  }
  const section = el('section', 'pivot', title, candidate.why ? el('p', 'why', candidate.why) : null,
                     neighbours(laneIndex, row), sides);
  if (candidate.region) {
    section.append(el('h3', '', 'region'));
    candidate.region.forEach((text, side) => section.append(el('p', 'mono',
      el('span', 'tag ' + 'ab'[side], 'AB'[side]), ' ' + (text || 'nothing'))));
  }
  const one = !candidate.a || !candidate.b || (candidate.a[0] === candidate.b[0] && candidate.a[1] === candidate.b[1]);
  section.append(el('h3', '', one && candidate.a && candidate.b ? 'what differs' : 'what it left'));
  if (one) section.append(slotTable(laneIndex, row, false, 6));
  else for (const ref of [candidate.a, candidate.b]) section.append(slotTable(ref[0], ref[1], false, 3));
  for (const number of candidate.numbers || []) section.append(numberBox(number));
  if (candidate.proof) {
    const proof = candidate.proof;
    for (const tensor of proof.tensors) section.append(el('pre', 'mono', tensor));
    section.append(el('p', 'why', el('b', '', proofWord(proof) + ': '), proof.why));
  }
  if (data.head.drill && candidate === data.head.candidates[0]) {
    section.append(el('h3', '', 'inside it'), el('p', 'why', data.head.drill));
    for (const operator of data.head.drill_operators || []) section.append(el('pre', 'mono', operator));
  }
  const suspects = suspectBox(candidate);
  if (suspects) section.append(suspects);
  return section;
}

// The statements a number can come from, the nearest first.
function numberBox(number) {
  const box = el('div', 'origin', el('h3', '', number.title));
  for (const way of number.ways) {
    const list = el('ol', 'way');
    way.steps.forEach(([place, text], i) => list.append(el('li', '',
      el('span', 'tag ' + 'ab'[way.side], 'AB'[way.side]), ' ', el('span', 'faint mono', place + '  '), el('span', 'mono', text),
      i + 1 === way.steps.length && way.changed ? el('b', 'differs', '  differs') : null)));
    box.append(list);
  }
  return box;
}

// Where the sources differ and ran before.
function suspectBox(candidate) {
  if (!(candidate.suspects || []).length) return null;
  const box = el('div', 'suspects', el('h3', '', 'suspects: where the sources differ and ran before it, the nearest first'));
  for (const suspect of candidate.suspects) {
    const lines = el('pre', 'mono hunk');
    for (const text of suspect.a) lines.append(el('span', 'old', '- ' + text + '\n'));
    for (const text of suspect.b) lines.append(el('span', 'new', '+ ' + text + '\n'));
    box.append(el('p', 'why', el('b', 'mono', suspect.place), ': ' + suspect.near));
    if (suspect.a.length + suspect.b.length) box.append(lines);
  }
  if (candidate.more_suspects) box.append(el('p', 'faint', 'and ' + counted(candidate.more_suspects, 'more place')));
  return box;
}

// What running again found.
function proofWord(proof) {
  return proof.causal === true ? (proof.proven ? 'proven' : 'takes part') : proof.causal === false ? 'proven harmless' : 'not proven';
}

function certifiedText() {
  const head = data.head;
  let words = grouped(head.certified) + ' of ' + counted(head.pairs, 'pair') + ' certified equal';
  if (head.boundary) {
    const [laneIndex, row] = head.boundary;
    words += ', up to ' + placeOf(lanes[laneIndex].site(row, 0), false) + ', ' + describeCoordinates(laneIndex, row);
  }
  return words;
}

function facts() {
  const head = data.head, list = el('dl', 'fact');
  const add = (name, ...value) => list.append(el('dt', '', name), el('dd', '', ...value));
  add('certified', certifiedText());
  if (head.unequal) add('unequal', counted(head.unequal, 'pair') + (head.harmless ? '; ' + counted(head.harmless, 'differing event') +
      ' before the pivot that were not met on the way back to it' : ''));
  const [hidden, following] = head.hidden;
  if (hidden + following) add('hidden', counted(hidden, 'pair') + ' by rules' + (following ? ', ' + grouped(following) + ' more that read what rules hide' : ''));
  let a = 0, b = 0;
  for (const lane of lanes) a += lane.head.counts[2], b += lane.head.counts[3];
  if (a + b) add('one-sided', counted(a, 'event') + ' only in a, ' + counted(b, 'event') + ' only in b');
  const [attributed, activities, unmatched] = head.coverage;
  if (activities) add('coverage', (Math.floor(attributed * 1000 / activities) / 10).toFixed(1) +
      '% of the device work belongs to an instrumented operator, ' + counted(unmatched, 'unmatched site'));
  return list;
}

function candidateList() {
  const rest = data.head.candidates.slice(1);
  if (!rest.length) return null;
  const list = el('ol', '');
  rest.forEach((candidate, i) => {
    const at = candidate.a || candidate.b;
    if (!at) return;
    const site = candidate.calls[candidate.a ? 0 : 1] || lanes[at[0]].site(at[1], candidate.a ? 0 : 1);
    const why = candidate.why + (candidate.proof ? '; ' + proofWord(candidate.proof) + ': ' + candidate.proof.why : '');
    const item = jump('', placeOf(site, false) + '  ' + site.op + '\n' + why, () => goTo(i + 1), el('span', 'faint', (i + 2) + '  '), candidate.kind + '  ',
                      el('span', 'mono', placeOf(site, true) + '  ' + site.op), el('span', 'faint', '  ' + why));
    list.append(el('li', '', item));
  });
  return el('section', '', el('h3', '', 'Other candidates, in order'), list);
}

// Where it began and how it came to the other ranks.
function rankShares() {
  if (!data.head.ranks.length) return null;
  const list = el('ol', 'shares');
  for (const share of data.head.ranks) {
    const words = [el('b', '', share.ranks), ': ' + share.text];
    list.append(el('li', share.role, share.row ? jump('', 'show it', () => goToRow(share.row), ...words) : words));
  }
  return el('section', '', el('h3', '', 'Across ranks'), list);
}

function noteList() {
  if (!data.head.notes.length) return null;
  return el('section', '', el('h3', '', 'Notes'), el('ol', 'notes', data.head.notes.map(note => el('li', '', note))));
}

// Pairs that differ though the runs agree in all they are judged by.
function unreachedList() {
  const head = data.head;
  if (!head.unreached) return null;
  const rest = head.unreached - head.unreached_pairs.length;
  const items = head.unreached_pairs.map(text => el('li', 'mono', text));
  if (rest) items.push(el('li', '', 'and ' + counted(rest, 'more pair')));
  return el('section', '', el('h3', '', 'Pairs that differ and reach no model value'), el('ol', 'notes', items));
}

function ruleList() {
  if (!data.head.rules.length) return null;
  return el('section', '', el('h3', '', 'Rules'), el('ol', 'notes', data.head.rules.map(rule => el('li', '', rule))));
}

function rankTable() {
  if (lanes.length < 2) return null;
  const table = el('table', 'ranks', el('tr', '', ['rank', 'pairs', 'unequal', 'only a', 'only b', 'first difference'].map(name => el('th', '', name))));
  lanes.forEach((lane, index) => {
    const [equal, unlike, a, b] = lane.head.counts, first = lane.head.first;
    const site = first >= 0 ? lane.site(first, 0) || lane.site(first, 1) : null;
    const go = first >= 0 ? jump('mono', 'show it', () => { showLane(index); select(first, true); }, placeOf(site, true) + '  ' + site.op) : 'none';
    table.append(el('tr', '', el('td', '', jump('', 'show this rank', () => showLane(index), laneName(index).slice(5))),
                    [equal + unlike, unlike, a, b].map(n => el('td', '', grouped(n))), el('td', '', go)));
  });
  return el('section', '', el('h3', '', 'Ranks'), el('div', 'scroll', table));
}

// Two folders are named without what they share at the front.
function runNames([a, b]) {
  let same = 0, cut = 0;
  while (same < Math.min(a.length, b.length) && a[same] === b[same]) ++same;
  if (a[0] === '/' && b[0] === '/') cut = same === a.length && same === b.length ? a.lastIndexOf('/', a.length - 2) + 1 : a.lastIndexOf('/', same - 1) + 1;
  const name = (side, text) => el('span', 'run', el('span', 'tag ' + side, side.toUpperCase()), ' ' + text.slice(cut));
  const names = el('p', 'runs mono', name('a', a), name('b', b));
  names.title = a + '\n' + b;
  return names;
}

// Which opguard said it, when, and what it was asked.
function madeBy({opguard, command, date}) {
  const when = {day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', timeZone: 'UTC'};
  const day = date ? new Intl.DateTimeFormat('en-GB', when).format(new Date(date)) + ' UTC' : '';
  const line = el('p', 'made faint', el('span', '', 'opguard ' + opguard.version + (opguard.commit ? ' (' + opguard.commit + ')' : '')), el('span', '', day));
  if (command) line.append(el('code', '', command));
  line.title = command;
  return line;
}

function showSummary() {
  const head = data.head;
  document.title = head.verdict + ': ' + head.why + ' - opguard';
  const box = document.getElementById('summary');
  box.append(el('div', 'verdict', el('h1', head.verdict, head.verdict + (head.proof ? ', ' + head.proof[0] : '')),
    el('p', 'why', head.why + (head.proof && head.proof[0] !== 'proven' ? ' (' + head.proof[1] + ')' : '')),
                runNames(head.runs)), madeBy(head.identity));
  if (head.text) {  // within rounding nothing is paired by rows
    box.append(el('pre', 'mono told', head.text.slice(head.text.indexOf('\n') + 1).trim()));
    return;
  }
  if (head.candidates.length) box.append(pivotSection(head.candidates[0]) || '');
  box.append(facts());
  const more = [rankShares(), candidateList(), unreachedList(), rankTable(), ruleList(), noteList()].filter(section => section);
  if (more.length) box.append(el('div', 'more', ...more));
}
