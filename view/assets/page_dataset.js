// Augmented examples as the model reads them.
import { h, plural } from './dom.js';
import { get, inReport } from './data.js';
import { drawGrid, cutCanvas, usedSide } from './grid.js';
import { listPage, sizes, sizeFits } from './list.js';

const turns = ['as it is', 'turned by 90°', 'turned by 180°', 'turned by 270°', 'mirrored left to right', 'mirrored up to down', 'transposed', 'mirrored at the other diagonal'];

// changeOf tells an augmentation in words.
export function changeOf(dihedral, colors) {
  const moved = [...colors].map((to, from) => [from, Number(to)]).filter(([a, b]) => a !== b);
  return turns[dihedral] + (moved.length ? `, colours ${moved.map(([a, b]) => `${a}→${b}`).join(' ')}` : ', colours kept');
}

export function datasetPage(item, split, state) {
  const base = `/dataset/${item.id}/${split}`;
  const path = '/api' + base;
  const runs = state.items.filter((r) => r.kind === 'run' && r.data === item.id && r.model && state.canModel);
  let copies = 1;
  return listPage({
    base, path,
    head: () => h('div', {}, h('h1', {}, item.name), h('p', { class: 'chips' }, ['train', 'test'].map((s) =>
      h('a', { class: 'chip', href: `#/dataset/${item.id}/${s}`, 'aria-current': s === split ? 'page' : undefined }, s)))),
    filters: [{ key: 'size', label: 'Size', options: sizes }],
    text: (row) => row.id,
    matches: (row, q) => sizeFits(row.side, q.size),
    rowView: (row) => ({ text: row.id, note: `${plural(row.copies - 1, 'copy', 'copies')} · ${row.side}` }),
    redraw: (q) => [q.copy, q.whole],
    async detail(i, row, q, change) {
      const k = Math.min(Number(q.copy) || 0, row.copies - 1);
      const p = await get(`${path}/${i}/${k}`, true);
      copies = p.copies;
      const whole = q.whole === '1';
      const used = whole ? p.side : usedSide(p.side, ...p.examples.flatMap((e) => [e.input, e.label]));
      const to = (n) => change({ copy: n || '' });
      const step = (n, text, label) => h('button', { type: 'button', disabled: n < 0 || n >= copies || !inReport(`${path}/${i}/${n}`), onclick: () => to(n), 'aria-label': label }, text);
      return h('article', {}, h('h2', {}, p.id),
        h('div', { class: 'controls' }, step(k - 1, '‹', 'Previous copy'), h('span', {}, k === 0 ? `The task itself, 1 of ${copies}` : `Copy ${k} of ${copies - 1}`), step(k + 1, '›', 'Next copy'),
          h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: whole, onchange: (e) => change({ whole: e.target.checked ? '1' : '' }) }), ` Whole ${p.side}×${p.side} canvas`)),
        h('p', { class: 'facts' }, `${changeOf(p.dihedral, p.colors)} · identifier ${p.identifier} · ${p.name}`),
        h('p', { class: 'legend' }, 'A dot is padding, a diamond marks where the grid ends; ', split === 'train' ? 'grids are moved about, one example of each copy stays at the corner.' : 'tests stay at the corner.'),
        h('div', { class: 'pairs' }, p.examples.map((e, n) => h('figure', { class: 'pair' }, h('figcaption', {}, `Row ${e.row}`),
          h('div', { class: 'flow' }, drawGrid(cutCanvas(e.input, p.side, used), { size: 240, label: `example ${n + 1}, input canvas` }), h('span', { class: 'arrow', 'aria-hidden': 'true' }, '→'),
            drawGrid(cutCanvas(e.label, p.side, used), { size: 240, label: `example ${n + 1}, label canvas` })),
          runs.length ? h('p', { class: 'links' }, runs.map((r) => h('a', { href: `#/model/${r.id}/${split}/${e.row}` }, `Look inside ${r.name}`))) : null))),
        p.total > p.examples.length ? h('p', { class: 'note' }, `${p.examples.length} of ${p.total} examples are shown.`) : null);
    },
    keys(key, q, change) {
      const k = Number(q.copy) || 0;
      if (key === 'ArrowRight' && k + 1 < copies) return change({ copy: k + 1 }), true;
      if (key === 'ArrowLeft' && k > 0) return change({ copy: k - 1 || '' }), true;
      return false;
    },
  });
}
