// dom.js: elements from text. No markup is ever made from data: text goes in as text.

// el('div', 'class names', child, ...): a child is an element, a text, or null for none.
function el(tag, names, ...children) {
  const element = document.createElement(tag);
  if (names) element.className = names;
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}

// A button that reads as text.
function jump(names, title, action, ...children) {
  const button = el('button', 'jump ' + names, ...children);
  button.type = 'button';
  button.title = title;
  button.addEventListener('click', event => { event.stopPropagation(); action(); });
  return button;
}

function grouped(number) { return String(number).replace(/\B(?=(\d{3})+$)/g, ','); }
function counted(number, noun) { return grouped(number) + ' ' + noun + (number === 1 ? '' : 's'); }

// The last two parts of a path: enough to know it by.
function shortPath(path) { return path.split('/').slice(-2).join('/'); }
function placeOf(site, short) {
  if (!site.file) return site.id;
  return (short ? shortPath(site.file) : site.file) + ':' + site.line + (!short && site.column ? ':' + site.column : '');
}

function duration(ns) {
  if (ns < 1e4) return ns + ' ns';
  if (ns < 1e7) return (ns / 1e3).toFixed(1) + ' µs';
  if (ns < 1e10) return (ns / 1e6).toFixed(1) + ' ms';
  return (ns / 1e9).toFixed(2) + ' s';
}

function laneName(index) {
  const head = lanes[index].head;
  return 'rank ' + head.rank + (head.ordinal ? ' (process ' + (head.ordinal + 1) + ')' : '');
}

function describeCoordinates(lane, row) {
  const c = lanes[lane].coordinates(row);
  const words = [kPhases[c[PHASE]]];
  if (c[KIND] === 1) words[0] += ' (' + text(c[NODE]) + ')';
  else if (c[KIND] !== 0) words[0] += ' (' + kEvents[c[KIND]] + ')';
  words.push('step ' + c[STEP]);
  if (c[PHASE] !== 3) words.push('micro-batch ' + c[MICRO]);
  words.push(laneName(lane));
  if (c[THREAD]) words.push('thread ' + c[THREAD]);
  if (c[SEQUENCE]) words.push('collective ' + c[SEQUENCE] + ' of group ' + text(c[GROUP]));
  return words.join(', ');
}
