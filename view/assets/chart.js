// Line charts as SVG, with the values at the pointer in words below.
import { g, h } from './dom.js';

// Colours are classes k0 to k5 of the style sheet, safe for colour-blind
// readers; dashes are for who sees none.
const dashes = ['', '7 3', '2 2', '8 3 2 3', '12 3', '4 4'];
const colourOf = (i) => `k${i % 6}`;
const dashOf = (i) => dashes[i % dashes.length];

const high = 260;
const pad = { left: 52, right: 12, top: 10, bottom: 30 };

function ticks(low, high, want) {
  const raw = (high - low) / want || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const list = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-6; v += step) list.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return list;
}

function logTicks(low, high) {
  const list = [];
  for (let p = Math.floor(Math.log10(low)); p <= Math.ceil(Math.log10(high)); p++) {
    for (const m of high / low > 100 ? [1] : [1, 2, 5]) {
      const v = m * 10 ** p;
      if (v >= low && v <= high) list.push(v);
    }
  }
  return list.length >= 2 ? list : ticks(low, high, 4);
}

export function shortNumber(v) {
  const a = Math.abs(v);
  if (v === 0) return '0';
  if (a >= 1e6) return +(v / 1e6).toPrecision(3) + 'M';
  if (a >= 1e4) return +(v / 1e3).toPrecision(3) + 'k';
  if (a < 1e-3) return v.toExponential(1);
  return String(+v.toPrecision(4));
}

// drawChart draws lines [{name, x, y, low, high, raw, index, points}]: index
// chooses colour and dash, points draws marks, low and high a band, raw a thin
// line. Options: title, xName, log (of y), logX, counts (x has no fractions),
// yName(v), whole (y from 0 to that at least).
export function drawChart(lines, options) {
  lines = lines.filter((l) => l.x.length > 0);
  const wide = matchMedia('(max-width: 799px)').matches ? 400 : 640;
  const figure = h('figure', { class: 'chart' }, h('figcaption', {}, options.title));
  if (lines.length === 0) {
    figure.append(h('p', { class: 'note' }, 'No values yet.'));
    return figure;
  }
  const ok = (v) => Number.isFinite(v) && (!options.log || v > 0);
  let [x0, x1, y0, y1] = [Infinity, -Infinity, Infinity, -Infinity];
  for (const l of lines) {
    for (let i = 0; i < l.x.length; i++) {
      x0 = Math.min(x0, l.x[i]);
      x1 = Math.max(x1, l.x[i]);
      for (const v of [l.y[i], l.raw?.[i]]) {
        if (v !== undefined && ok(v)) {
          y0 = Math.min(y0, v);
          y1 = Math.max(y1, v);
        }
      }
    }
  }
  if (options.whole) [y0, y1] = [Math.min(0, y0), Math.max(y1, options.whole)];
  if (!(y1 > y0)) [y0, y1] = [y0 - (Math.abs(y0) || 1) / 10, y0 + (Math.abs(y0) || 1) / 10];
  if (!(x1 > x0)) [x0, x1] = options.logX ? [x0 / 2, x0 * 2] : [x0 - 1, x0 + 1];
  const scale = (v, a, b, log) => (log ? (Math.log(v) - Math.log(a)) / (Math.log(b) - Math.log(a)) : (v - a) / (b - a));
  const px = (v) => pad.left + scale(v, x0, x1, options.logX) * (wide - pad.left - pad.right);
  const py = (v) => high - pad.bottom - Math.max(-0.05, Math.min(1.05, scale(v, y0, y1, options.log))) * (high - pad.top - pad.bottom);
  const axis = [];
  for (const v of options.log ? logTicks(y0, y1) : ticks(y0, y1, 5)) {
    axis.push(g('path', { class: 'rule', d: `M${pad.left} ${py(v).toFixed(1)}H${wide - pad.right}` }),
      g('text', { x: pad.left - 6, y: py(v) + 4, 'text-anchor': 'end' }, (options.yName || shortNumber)(v)));
  }
  for (const v of (options.logX ? logTicks(x0, x1) : ticks(x0, x1, 6)).filter((t) => !options.counts || Number.isInteger(t))) {
    axis.push(g('text', { x: px(v), y: high - 10, 'text-anchor': 'middle' }, shortNumber(v)));
  }
  axis.push(g('path', { class: 'axis', d: `M${pad.left} ${pad.top}V${high - pad.bottom}H${wide - pad.right}` }));
  const drawn = [];
  for (const l of lines) {
    const colour = colourOf(l.index);
    const at = l.x.map((_, i) => i).filter((i) => ok(l.y[i]));
    const path = (list, y = l.y) => list.map((i, k) => `${k ? 'L' : 'M'}${px(l.x[i]).toFixed(1)} ${py(y[i]).toFixed(1)}`).join('');
    if (l.low && !l.points) {
      const safe = (v, i) => (ok(v) ? v : l.y[i]);
      const band = at.map((i, k) => `${k ? 'L' : 'M'}${px(l.x[i]).toFixed(1)} ${py(safe(l.high[i], i)).toFixed(1)}`).join('') +
        at.slice().reverse().map((i) => `L${px(l.x[i]).toFixed(1)} ${py(safe(l.low[i], i)).toFixed(1)}`).join('') + 'Z';
      drawn.push(g('path', { class: `band ${colour}`, d: band }));
    }
    if (l.raw) drawn.push(g('path', { class: `raw ${colour}`, d: path(at.filter((i) => ok(l.raw[i])), l.raw) }));
    drawn.push(g('path', { class: `line ${colour}`, d: path(at), 'stroke-dasharray': l.points ? '3 3' : dashOf(l.index), 'stroke-width': l.points ? 1.2 : 1.8 }));
    if (l.points || at.length === 1) {
      for (const i of at) drawn.push(g('circle', { cx: px(l.x[i]).toFixed(1), cy: py(l.y[i]).toFixed(1), r: 4, class: `point ${colour}` }));
    }
  }
  const cursor = g('path', { class: 'cursor', d: '' });
  const svg = g('svg', {
    viewBox: `0 0 ${wide} ${high}`, role: 'img', tabindex: 0,
    'aria-label': `${options.title}: ` + lines.map((l) => `${l.name}, ${l.x.length} values, last ${shortNumber(l.y[l.y.length - 1])} at ${options.xName} ${l.x[l.x.length - 1]}`).join('; ') + '. Arrow keys move along it.',
  }, axis, drawn, cursor);
  const output = h('ul', { class: 'values', 'aria-live': 'polite' });
  const say = (x) => {
    cursor.setAttribute('d', `M${px(x)} ${pad.top}V${high - pad.bottom}`);
    output.replaceChildren(h('li', { class: 'at' }, `${options.xName} ${x.toLocaleString('en')}`), ...lines.map((l) => {
      let best = 0;
      for (let i = 1; i < l.x.length; i++) if (Math.abs(l.x[i] - x) < Math.abs(l.x[best] - x)) best = i;
      return h('li', {}, sample(l), `${l.name} `, h('b', {}, (options.yName || shortNumber)(l.y[best])), l.x[best] === x ? '' : ` at ${l.x[best]}`);
    }));
  };
  const all = [...new Set(lines.flatMap((l) => l.x))].sort((a, b) => a - b);
  let place = all.length - 1;
  const nearest = (e) => {
    const box = svg.getBoundingClientRect();
    const want = ((e.clientX - box.left) / box.width) * wide;
    place = 0;
    for (let i = 1; i < all.length; i++) if (Math.abs(px(all[i]) - want) < Math.abs(px(all[place]) - want)) place = i;
    say(all[place]);
  };
  svg.addEventListener('pointermove', nearest);
  svg.addEventListener('pointerdown', nearest);
  svg.addEventListener('keydown', (e) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -all.length, End: all.length }[e.key];
    if (!by) return;
    e.preventDefault();
    e.stopPropagation();
    place = Math.max(0, Math.min(all.length - 1, place + by * (Math.abs(by) === 1 ? Math.max(1, Math.round(all.length / 100)) : 1)));
    say(all[place]);
  });
  say(all[place]);
  cursor.setAttribute('d', '');
  figure.append(svg, output);
  return figure;
}

function sample(l) {
  return g('svg', { class: `sample ${colourOf(l.index)}`, viewBox: '0 0 24 10', width: 24, height: 10, 'aria-hidden': 'true' },
    g('path', { d: 'M0 5H24', 'stroke-dasharray': l.points ? '3 3' : dashOf(l.index) }),
    l.points ? g('circle', { cx: 12, cy: 5, r: 3.5 }) : null);
}

// smooth is the mean of the n buckets that end with each.
export function smooth(values, n) {
  if (n <= 1) return values;
  let sum = 0;
  return values.map((v, i) => {
    sum += v;
    if (i >= n) sum -= values[i - n];
    return sum / Math.min(i + 1, n);
  });
}
