// Grids and canvases as SVG. A grid is text, rows of digits with a slash
// between them; a canvas is one text of side*side characters: a digit for a
// colour, "." for padding, "|" for an end marker.
import { g } from './dom.js';

let palette = [];

export function setPalette(colours) {
  palette = colours;
}

const colourNames = ['black', 'blue', 'red', 'green', 'yellow', 'grey', 'magenta', 'orange', 'light blue', 'maroon'];

export const rowsOf = (text) => (text === '' ? [] : text.split('/'));

export function canvasRows(text, side) {
  const rows = [];
  for (let r = 0; r < side; r++) rows.push(text.slice(r * side, (r + 1) * side));
  return rows;
}

// usedSide is the part of canvases that any of them uses, so that a small
// grid on a large canvas is not lost in padding; one cell of it stays.
export function usedSide(side, ...canvases) {
  let used = 1;
  for (const text of canvases) {
    for (let i = 0; i < text.length; i++) {
      if (text[i] !== '.') used = Math.max(used, Math.floor(i / side) + 1, (i % side) + 1);
    }
  }
  return Math.min(side, used + 1);
}

export function cutCanvas(text, side, used) {
  return canvasRows(text, side).slice(0, used).map((row) => row.slice(0, used));
}

function cellSize(rows, options) {
  const longest = Math.max(rows.length, rows[0].length, options.longest || 0);
  return options.cell || Math.max(6, Math.min(30, Math.floor((options.size || 200) / longest)));
}

let drawn = 0;

// drawGrid draws rows of cells. Options: size, the wished length of the longer
// side in pixels; longest, the cells that side has elsewhere, for one scale;
// wrong(r, c), which cells to mark; label, a name for who cannot see it; heat
// (r, c) from 0 to 1, drawn as the area of a disc; mute(r, c), which cells do
// not count; onCell(r, c), called when a cell is pointed at.
export function drawGrid(rows, options = {}) {
  if (rows.length === 0) {
    return g('svg', { class: 'grid none', viewBox: '0 0 3 3', width: 60, height: 60, role: 'img', 'aria-label': `${options.label || 'grid'}: empty` },
      g('path', { d: 'M0 0h3v3h-3zM0 0l3 3M3 0l-3 3', fill: 'none', 'vector-effect': 'non-scaling-stroke' }));
  }
  const width = rows[0].length;
  const height = rows.length;
  const cell = cellSize(rows, options);
  const id = `g${++drawn}`;
  const byKind = new Map();
  const marked = [];
  for (let r = 0; r < height; r++) {
    for (let c = 0; c < width; c++) {
      const kind = rows[r][c];
      byKind.set(kind, (byKind.get(kind) || '') + `M${c} ${r}h1v1h-1z`);
      if (options.wrong && options.wrong(r, c)) marked.push([r, c]);
    }
  }
  const parts = [];
  let weights = [];
  if (byKind.has('.') || byKind.has('|')) {
    parts.push(g('defs', {},
      g('pattern', { id: id + 'p', width: 1, height: 1, patternUnits: 'userSpaceOnUse' },
        g('rect', { class: 'pad', width: 1, height: 1 }), g('circle', { class: 'dot', cx: 0.5, cy: 0.5, r: 0.09 })),
      g('pattern', { id: id + 'e', width: 1, height: 1, patternUnits: 'userSpaceOnUse' },
        g('rect', { class: 'pad', width: 1, height: 1 }), g('path', { class: 'end', d: 'M.5 .15L.85 .5L.5 .85L.15 .5z' }))));
  }
  for (const [kind, d] of byKind) {
    const fill = kind === '.' ? `url(#${id}p)` : kind === '|' ? `url(#${id}e)` : palette[kind] || '#f0f';
    parts.push(g('path', { d, fill, 'fill-opacity': options.heat ? 0.45 : undefined }));
  }
  if (options.heat) {
    weights = [];
    for (let r = 0; r < height; r++) {
      for (let c = 0; c < width; c++) {
        const x = options.heat(r, c);
        if (x > 0.004) weights.push(g('circle', { class: 'heat', cx: c + 0.5, cy: r + 0.5, r: (0.46 * Math.sqrt(x)).toFixed(3), 'vector-effect': 'non-scaling-stroke' }));
      }
    }
  }
  if (cell >= 5) {
    let lines = '';
    for (let r = 1; r < height; r++) lines += `M0 ${r}h${width}`;
    for (let c = 1; c < width; c++) lines += `M${c} 0v${height}`;
    parts.push(g('path', { class: 'lines', d: lines, 'vector-effect': 'non-scaling-stroke' }));
  }
  if (options.mute) {
    let d = '';
    for (let r = 0; r < height; r++) for (let c = 0; c < width; c++) if (options.mute(r, c)) d += `M${c} ${r}h1v1h-1z`;
    if (d) parts.push(g('path', { class: 'mute', d }));
  }
  parts.push(...weights);
  if (marked.length > 0) parts.push(...wrongMarks(id, marked));
  if (options.at) {
    const [r, c] = options.at;
    parts.push(g('rect', { class: 'at under', x: c, y: r, width: 1, height: 1, 'vector-effect': 'non-scaling-stroke' }),
      g('rect', { class: 'at', x: c, y: r, width: 1, height: 1, 'vector-effect': 'non-scaling-stroke' }));
  }
  const svg = g('svg', {
    class: 'grid', viewBox: `0 0 ${width} ${height}`, width: width * cell, height: height * cell, role: 'img',
    'aria-label': describe(rows, options, marked.length),
  }, parts);
  if (options.onCell) pointAt(svg, width, height, options.onCell);
  return svg;
}

// wrongMarks hatches and outlines cells, so that colour is not what tells.
function wrongMarks(id, cells) {
  const d = cells.map(([r, c]) => `M${c} ${r}h1v1h-1z`).join('');
  const inner = cells.map(([r, c]) => `M${c + 0.07} ${r + 0.07}h.86v.86h-.86z`).join('');
  return [
    g('defs', {}, g('pattern', { id: id + 'w', width: 0.34, height: 0.34, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
      g('rect', { width: 0.11, height: 0.34, fill: '#000' }), g('rect', { x: 0.11, width: 0.11, height: 0.34, fill: '#fff' }))),
    g('path', { class: 'wrong', d, fill: `url(#${id}w)` }),
    g('path', { class: 'ring', d, stroke: '#000', 'vector-effect': 'non-scaling-stroke', 'stroke-width': 3 }),
    g('path', { class: 'ring', d: inner, stroke: '#fff', 'vector-effect': 'non-scaling-stroke', 'stroke-width': 1.5 }),
  ];
}

function describe(rows, options, wrong) {
  const name = options.label || 'grid';
  const marks = options.wrong ? `, ${wrong} ${wrong === 1 ? 'cell' : 'cells'} wrong` : '';
  const size = `${rows.length} by ${rows[0].length}`;
  if (rows.length * rows[0].length > 120) {
    const colours = [...new Set(rows.join(''))].filter((k) => k >= '0' && k <= '9').map((k) => colourNames[k]);
    return `${name}, ${size}${marks}; colours ${colours.join(', ')}`;
  }
  return `${name}, ${size}${marks}: ${rows.join(', ')}`;
}

function pointAt(svg, width, height, onCell) {
  const cellOf = (e) => {
    const box = svg.getBoundingClientRect();
    const c = Math.floor(((e.clientX - box.left) / box.width) * width);
    const r = Math.floor(((e.clientY - box.top) / box.height) * height);
    return r >= 0 && r < height && c >= 0 && c < width ? [r, c] : null;
  };
  svg.classList.add('pointable');
  svg.addEventListener('click', (e) => {
    const at = cellOf(e);
    if (at) onCell(...at);
  });
}

// differs compares an answer with the truth: wrong(r, c) and how many cells of
// the answer are wrong; sizes that differ are said in words.
export function differs(answer, truth) {
  const a = rowsOf(answer);
  const t = rowsOf(truth);
  const wrong = (r, c) => a[r][c] !== (t[r] || '')[c];
  let count = 0;
  for (let r = 0; r < a.length; r++) for (let c = 0; c < a[r].length; c++) if (wrong(r, c)) count++;
  const size = (x) => (x.length === 0 ? 'empty' : `${x.length}×${x[0].length}`);
  return { wrong, count, cells: a.length ? a.length * a[0].length : 0, size: size(a) === size(t) ? '' : `${size(a)}, expected ${size(t)}` };
}

export const longestSide = (...texts) => Math.max(1, ...texts.map(rowsOf).map((x) => Math.max(x.length, x.length ? x[0].length : 0)));
