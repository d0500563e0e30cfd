// overview.js: all ranks at a glance: a strip of two lanes each, the worst state of each column of pixels.

const overviewCanvas = document.querySelector('#overview canvas');
const overviewBox = document.getElementById('overview');
const kLabel = 60;  // pixels for the ranks' names, where there are several
const viewport = document.getElementById('viewport');
let overviewWidth = 0;

function stripHeight() { return lanes.length <= 4 ? 9 : lanes.length <= 16 ? 5 : 3; }
function laneHeight() { return 2 * stripHeight() + 1 + (lanes.length > 1 ? 3 : 0); }
function labelWidth() { return lanes.length > 1 ? kLabel : 0; }

function colours() {
  const style = getComputedStyle(document.documentElement);
  const colour = name => style.getPropertyValue('--' + name).trim();
  return {equal: colour('trace'), later: colour('later-strip'), first: colour('pivot'), a: colour('only-a'), b: colour('only-b'), text: colour('faint')};
}

function drawOverview() {
  const width = overviewWidth = overviewBox.clientWidth - 40, height = lanes.length * laneHeight();
  const scale = window.devicePixelRatio || 1;
  overviewCanvas.width = Math.round(width * scale);
  overviewCanvas.height = Math.round(height * scale);
  overviewCanvas.style.height = height + 'px';
  const draw = overviewCanvas.getContext('2d');
  draw.setTransform(scale, 0, 0, scale, 0, 0);
  const colour = colours(), tall = stripHeight(), room = width - labelWidth();
  draw.font = '10px ' + getComputedStyle(document.body).fontFamily;
  draw.textBaseline = 'middle';
  lanes.forEach((lane, index) => {
    const top = index * laneHeight();
    // 0 nothing, 1 equal, 2 one-sided, 3 later, 4 first: the worst wins a pixel.
    const worst = [new Uint8Array(Math.max(1, Math.ceil(room))), new Uint8Array(Math.max(1, Math.ceil(room)))];
    for (let row = 0; row < lane.size; ++row) {
      const x = Math.floor(row / lane.size * room), end = Math.max(x, Math.ceil((row + 1) / lane.size * room) - 1);
      const first = candidateRows[index].get(row) === 0;
      for (let side = 0; side < 2; ++side) {
        const state = lane.state[row];
        if (state === (side ? kOnlyA : kOnlyB)) continue;
        const level = first ? 4 : lane.isState(row) || state === kLeftOut || state === kHidden ? 1 : state >= kOnlyA ? 2 : state ? 3 : 1;
        for (let i = x; i <= end; ++i) if (worst[side][i] < level) worst[side][i] = level;
      }
    }
    for (let side = 0; side < 2; ++side) {
      const paint = [null, colour.equal, side ? colour.b : colour.a, colour.later, colour.first];
      const y = top + side * (tall + 1);
      for (let i = 0; i < worst[side].length;) {
        let end = i;
        while (end < worst[side].length && worst[side][end] === worst[side][i]) ++end;
        if (worst[side][i] > 0) {
          draw.fillStyle = paint[worst[side][i]];
          const wide = worst[side][i] === 4 ? Math.max(3, end - i) : end - i;
          draw.fillRect(labelWidth() + i, y, wide, tall);
        }
        i = end;
      }
    }
    if (lanes.length > 1 && (laneHeight() >= 10 || index % 4 === 0)) {
      draw.fillStyle = colour.text;
      draw.fillText(laneName(index).replace('process ', '#'), 0, top + tall, kLabel - 6);
    }
  });
  drawn = [-1, -1];
}

// The stretch in sight, an element of its own: it moves with every frame, the strip stays.
function drawViewport(first, last) {
  const count = rowCount();
  viewport.hidden = !count;
  if (!count || !overviewWidth) return;
  const size = lanes[view.lane].size, room = overviewWidth - labelWidth();
  const from = rowAt(Math.min(first, count - 1)), to = rowAt(Math.min(Math.max(last - 1, 0), count - 1));
  viewport.style.transform = 'translate(' + (labelWidth() + from / size * room) + 'px,' + view.lane * laneHeight() + 'px)';
  viewport.style.width = Math.max(4, (to - from) / size * room) + 'px';
  viewport.style.height = 2 * stripHeight() + 1 + 'px';
}

function clickOverview(event) {
  const box = overviewCanvas.getBoundingClientRect();
  const index = Math.min(lanes.length - 1, Math.max(0, Math.floor((event.clientY - box.top) / laneHeight())));
  const part = (event.clientX - box.left - labelWidth()) / (box.width - labelWidth());
  if (index !== view.lane) showLane(index);
  const row = Math.max(0, Math.min(lanes[index].size - 1, Math.floor(part * lanes[index].size)));
  let place = placeOfRow(row);
  if (place < 0) place = Math.min(rowCount() - 1, -1 - place);
  if (place >= 0) scrollToPlace(place, true);
}
