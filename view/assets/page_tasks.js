// Tasks as they are.
import { h, plural } from './dom.js';
import { get } from './data.js';
import { drawGrid, rowsOf, longestSide } from './grid.js';
import { listPage, sizes, sizeFits } from './list.js';

// drawPairs draws pairs side by side, all at one scale.
export function drawPairs(pairs, name, longest) {
  return h('div', { class: 'pairs' }, pairs.map((p, i) => h('figure', { class: 'pair' },
    h('figcaption', {}, pairs.length > 1 ? `${name} ${i + 1}` : name),
    h('div', { class: 'flow' }, drawGrid(rowsOf(p.input), { size: 190, longest, label: `${name} ${i + 1}, input` }),
      h('span', { class: 'arrow', 'aria-hidden': 'true' }, '→'),
      p.output === '' ? h('span', { class: 'unknown', role: 'img', 'aria-label': 'output not known' }, '?')
        : drawGrid(rowsOf(p.output), { size: 190, longest, label: `${name} ${i + 1}, output` })))));
}

export function tasksPage(item) {
  const path = `/api/tasks/${item.id}`;
  return listPage({
    base: `/tasks/${item.id}`, path,
    head: (first) => h('div', {}, h('h1', {}, item.name), first.warnings.length
      ? h('details', {}, h('summary', {}, plural(first.warnings.length, 'remark')), h('ul', {}, first.warnings.map((w) => h('li', {}, w)))) : null),
    filters: [{ key: 'size', label: 'Size', options: sizes }],
    text: (row) => `${row.id} ${row.split || ''}`,
    matches: (row, q) => sizeFits(row.side, q.size),
    rowView: (row) => ({ text: row.id, note: `${row.split ? row.split + ' · ' : ''}${row.train}+${row.test} · ${row.side}` }),
    async detail(i) {
      const t = await get(`${path}/${i}`, true);
      const longest = longestSide(...[...t.train_pairs, ...t.test_pairs].flatMap((p) => [p.input, p.output]));
      return h('article', {}, h('h2', {}, t.id), h('p', { class: 'facts' },
        [t.split, plural(t.train, 'demonstration'), plural(t.test, 'test'), t.hold_out ? 'tests held out' : 'tests are trained on', t.file].filter(Boolean).join(' · ')),
      t.note ? h('p', { class: 'note' }, t.note) : null,
      h('h3', {}, 'Demonstrations'), drawPairs(t.train_pairs, 'Demonstration', longest), h('h3', {}, 'Tests'), drawPairs(t.test_pairs, 'Test', longest));
    },
  });
}
