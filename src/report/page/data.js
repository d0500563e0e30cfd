// data.js: the report's data as page_data.cc wrote it, unpacked into one typed array a column.
'use strict';

const data = JSON.parse(document.getElementById('data').textContent);

const kHidden = 5, kOnlyA = 6, kOnlyB = 7, kLeftOut = 8, kBothValues = 16;
const kPhases = ['forward', 'recompute', 'backward', 'optimizer'];
const kEvents = ['op', 'node', 'accumulate', 'loss', 'optimizer', 'collective', 'state'];
const kSlots = ['read', 'returned', 'written'];
const kUnreadable = 1, kModelValue = 2, kUninitialised = 4, kParameter = 8;
const kRaised = 1;
const kStates = ['equal', 'results differ', 'arguments differ', 'inputs differ', 'shapes differ', 'hidden by rules', 'only in a', 'only in b'];

// Indices of a coordinate, a form's side and a layout's slot.
const STATE = 6;  // in kEvents
const STEP = 0, MICRO = 1, PHASE = 2, KIND = 3, NODE = 4, THREAD = 5, GROUP = 6, SEQUENCE = 7;
const SITE = 0, SCALARS = 1, RESULTS = 2, FLAGS = 3, FORM_SIDE = 4;
const SLOT_SIZE = 5;

class Lane {
  constructor(raw) {
    this.head = raw.head;
    const n = this.size = raw.state.length;
    this.state = new Uint8Array(n);
    this.both = new Uint8Array(n);  // b's values are stored apart from a's
    this.coordinate = new Uint32Array(n);
    this.form = new Uint32Array(n);
    this.layout = new Uint32Array(n);
    this.firstValue = new Uint32Array(n);
    this.values = Uint32Array.from(raw.values);
    this.event = [new Uint32Array(n), new Uint32Array(n)];
    this.start = [new Float64Array(n), new Float64Array(n)];
    this.time = [new Float64Array(n), new Float64Array(n)];
    const rawEvent = [raw.event_a, raw.event_b], rawStart = [raw.start_a, raw.start_b], rawTime = [raw.time_a, raw.time_b];
    const next = [0, 0], expected = [0, 0], clock = [0, 0];
    let listed = 0, value = 0;
    for (let i = 0; i < n; ++i) {
      const state = raw.state[i];
      this.state[i] = state & 15;
      this.both[i] = state & kBothValues ? 1 : 0;
      this.coordinate[i] = raw.coordinates[i];
      if (this.state[i] === kLeftOut) continue;
      this.form[i] = raw.forms[listed];
      this.layout[i] = raw.layouts[listed++];
      this.firstValue[i] = value;
      value += data.layouts[this.layout[i]].length / SLOT_SIZE * (this.both[i] ? 2 : 1);
      for (let side = 0; side < 2; ++side) {
        if (this.state[i] === (side === 0 ? kOnlyB : kOnlyA)) continue;
        const at = next[side]++;
        this.event[side][i] = expected[side] + rawEvent[side][at];
        expected[side] = this.event[side][i] + 1;
        this.start[side][i] = clock[side] += rawStart[side][at];
        this.time[side][i] = rawTime[side][at];
      }
    }
    // Times are shown from the first event listed of each side.
    this.origin = [0, 1].map(side => this.start[side].find((t, i) => t > 0 && this.has(i, side)) || 0);
  }

  has(row, side) { return this.state[row] < kLeftOut && this.state[row] !== (side === 0 ? kOnlyB : kOnlyA); }
  // A generator's state is background: it is told in the notes, and no first difference.
  isState(row) { return this.state[row] < kLeftOut && this.coordinates(row)[KIND] === STATE; }
  differs(row) { return this.state[row] !== 0 && this.state[row] !== kHidden; }
  coordinates(row) { return data.coordinates[this.coordinate[row]]; }
  side(row, side) { return data.forms[this.form[row]].slice(side * FORM_SIDE, (side + 1) * FORM_SIDE); }
  site(row, side) { return this.has(row, side) ? data.sites[side][this.side(row, side)[SITE]] : null; }

  // [{kind, name, flags, meta: [a, b], value: [a, b], differs}] in the order of the layout; meta null: that side has none.
  slots(row) {
    const layout = data.layouts[this.layout[row]];
    const result = [];
    let at = this.firstValue[row];
    for (let i = 0; i < layout.length; i += SLOT_SIZE) {
      const flags = layout[i + 4];
      const meta = [layout[i + 2], layout[i + 3]].map(index => index < 0 ? null : data.metas[index]);
      const first = this.values[at++];
      const second = this.both[row] ? this.values[at++] : first;
      const missing = meta[0] === null || meta[1] === null;
      const silent = flags & (kUnreadable | kUninitialised);
      result.push({
        kind: layout[i], name: data.strings[layout[i + 1]], flags, meta, value: [first, meta[0] === null ? first : second],
        differs: !silent && (missing ? this.state[row] < kOnlyA : first !== second || meta[0] !== meta[1]),
      });
    }
    return result;
  }
}

// "0123456789abcdef:0123456789abcdef", or null where there is no value.
function fingerprint(value) {
  if (value === 0) return null;
  const at = (value - 1) * 32;
  return data.values.slice(at, at + 16) + ':' + data.values.slice(at + 16, at + 32);
}

function text(index) { return index < 0 ? '' : data.strings[index]; }

const lanes = data.lanes.map(raw => new Lane(raw));
data.lanes = null;

// The rows of the pivot and the other candidates by lane: row -> rank among them, from 0.
const candidateRows = lanes.map(() => new Map());
data.head.candidates.forEach((candidate, i) => {
  for (const at of [candidate.a, candidate.b])
    if (at && !candidateRows[at[0]].has(at[1])) candidateRows[at[0]].set(at[1], i);
});

// Where a candidate is looked at: its earlier row, [lane, row], or null.
function candidateRow(candidate) {
  const {a, b} = candidate;
  return a && b && a[0] === b[0] ? [a[0], Math.min(a[1], b[1])] : a || b;
}

// The class of a row's colour.
function stateClass(lane, row) {
  const state = lanes[lane].state[row];
  if (state === kLeftOut) return 'gap';
  const pivot = candidateRows[lane].get(row) === 0 ? ' first' : '';
  if (!pivot && state !== 0 && lanes[lane].isState(row)) return 'background';
  if (state === kOnlyA) return 'only-a' + pivot;
  if (state === kOnlyB) return 'only-b' + pivot;
  return pivot ? 'first' : state === 0 ? 'equal' : state === kHidden ? 'hidden' : 'later';
}
