// A model at work on one example: its answer after every segment, and what
// attends to what.
import { h, labelled, choose, fail, plural, percent } from './dom.js';
import { get, inReport, sigmoid } from './data.js';
import { drawGrid, cutCanvas, usedSide } from './grid.js';
import { drawChart } from './chart.js';
import { listPage, sizes, sizeFits } from './list.js';

export function modelPage(item, split, about, state) {
  const base = `/model/${item.id}/${split}`;
  const data = about.data;
  let trace = null;
  const page = listPage({
    base, path: `/api/dataset/${data}/${split}`,
    head: () => h('div', {}, h('h1', {}, `Inside ${item.name}`), h('p', { class: 'facts' }, `step ${about.step}, ${about.weights} weights · ${plural(about.parameters, 'parameter')} · ${plural(about.segments, 'segment')}`),
      h('p', { class: 'chips' }, ['train', 'test'].map((s) => h('a', { class: 'chip', href: `#/model/${item.id}/${s}`, 'aria-current': s === split ? 'page' : undefined }, s)))),
    filters: [{ key: 'size', label: 'Size', options: sizes }],
    text: (row) => row.id,
    matches: (row, q) => sizeFits(row.side, q.size),
    rowView: (row) => ({ text: row.id, note: String(row.side), dim: !inReport(`/api${base}/${row.row}`) }),
    at: (_, row) => row.row,
    redraw: (q) => [q.seg, q.call, q.block, q.head, q.cell, q.way, q.whole],
    detail: (_, row, q, change) => drawTrace(row.row, q, change),
    outside: (row, q, change) => drawTrace(row, q, change).catch(fail),
    keys(key, q, change) {
      if (!trace) return false;
      const now = segmentOf(q);
      if (key === 'ArrowRight' && now + 1 < trace.segments.length) return change({ seg: now + 2 }), true;
      if (key === 'ArrowLeft' && now > 0) return change({ seg: now }), true;
      return false;
    },
  });

  const segmentOf = (q) => Math.max(0, Math.min(trace.segments.length, Number(q.seg) || trace.segments.length) - 1);

  async function drawTrace(row, q, change) {
    const path = `/api${base}/${row}`;
    trace = await get(path, true);
    const t = trace;
    const k = segmentOf(q);
    const whole = q.whole === '1';
    const used = whole ? t.side : usedSide(t.side, t.input, t.label);
    const cut = (canvas) => cutCanvas(canvas, t.side, used);
    const segment = t.segments[k];
    const wrong = (canvas) => (r, c) => t.label[r * t.side + c] !== '.' && canvas[r * t.side + c] !== t.label[r * t.side + c];
    const ignored = (r, c) => t.label[r * t.side + c] === '.';
    const dead = t.labelled === 0;
    const beyond = dead ? 0 : [...t.label].filter((x, i) => x !== '.' && (Math.floor(i / t.side) >= used || i % t.side >= used)).length;
    return h('article', {}, h('h2', {}, t.name), h('p', { class: 'facts' }, `${t.split} row ${t.row}`,
      t.examples > 1 ? [` · example ${t.example + 1} of ${t.examples} `, t.example > 0 ? h('a', { href: `#${base}/${row - 1}` }, 'previous') : null, ' ', t.example + 1 < t.examples ? h('a', { href: `#${base}/${Number(row) + 1}` }, 'next') : null] : null),
    h('div', { class: 'controls' }, h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: whole, onchange: (e) => change({ whole: e.target.checked ? '1' : '' }) }), ` Whole ${t.side}×${t.side} canvas`)),
    h('div', { class: 'figures' },
      h('figure', {}, h('figcaption', {}, 'Input'), drawGrid(cut(t.input), { size: 230, label: 'input canvas' })),
      dead ? null : h('figure', {}, h('figcaption', {}, 'Truth'), drawGrid(cut(t.label), { size: 230, label: 'label canvas' })),
      h('figure', { id: 'answer' }, h('figcaption', {}, `Answer after segment ${k + 1}`), drawGrid(cut(segment.canvas), { size: 230, label: `answer after segment ${k + 1}`, wrong: dead ? undefined : wrong(segment.canvas), mute: dead ? undefined : ignored }))),
    beyond ? h('p', { class: 'note' }, 'Some of the answer lies outside of what is drawn; see the whole canvas.') : null,
    h('h3', {}, 'Segment by segment'),
    h('p', { class: 'legend' }, 'Left and right arrows step through them. ■ is where a training would stop; evaluation runs all segments. Cells that do not count are faint.'),
    h('ol', { class: 'segments' }, t.segments.map((s, i) => h('li', {}, h('button', { type: 'button', 'aria-pressed': String(i === k), onclick: () => change({ seg: i + 1 }), 'aria-label': `Segment ${i + 1}, ${right(s, t)}` },
      h('b', {}, String(i + 1)), drawGrid(cut(s.canvas), { size: 96, cell: Math.max(2, Math.floor(96 / used)), label: '', wrong: dead ? undefined : wrong(s.canvas), mute: dead ? undefined : ignored }),
      h('span', {}, right(s, t)), h('span', {}, i === 0 ? 'first answer' : s.changed === 0 ? 'no change' : `${s.changed} changed`), h('span', {}, `halt ${percent(sigmoid(s.q_halt), 0)}${s.halts ? ' ■' : ''}`))))),
    t.segments.length > 2 ? drawChart([
      ...(dead ? [] : [{ name: 'cells right', index: 0, points: true, x: t.segments.map((_, i) => i + 1), y: t.segments.map((s) => s.right / t.labelled) }]),
      { name: 'halt probability', index: 1, points: true, x: t.segments.map((_, i) => i + 1), y: t.segments.map((s) => sigmoid(s.q_halt)) },
    ], { title: 'By segment', xName: 'segment', counts: true, whole: 1, yName: (v) => percent(v, 0) }) : null,
    await drawAttention(path, t, k, used, q, change).catch(fail));
  }

  const right = (s, t) => (t.labelled ? `${percent(s.right / t.labelled, s.right === t.labelled ? 0 : 1)} right` : '');

  async function drawAttention(path, t, k, used, q, change) {
    const calls = about.calls.map((m, i) => [i, `${m}, call ${about.calls.slice(0, i + 1).filter((x) => x === m).length} of ${about.calls.filter((x) => x === m).length}`]);
    const call = Math.min(calls.length - 1, q.call === undefined || q.call === '' ? calls.length - 1 : Number(q.call) || 0);
    const blocks = about.blocks[about.calls[call]];
    const block = Math.min(blocks - 1, q.block ? Number(q.block) || 0 : blocks - 1);
    const head = q.head ? Number(q.head) : -1;
    const asked = `${path}/attention?segment=${k}&call=${call}&block=${block}&head=${head}`;
    const box = h('section', { class: 'attention' }, h('h3', {}, 'Attention'),
      h('p', { class: 'legend' }, 'H is the slow module, L the fast one. Choose a cell: the others show how much of it comes from them, or goes to them.'),
      h('div', { class: 'controls' },
        labelled('Module', choose(calls, call, (v) => change({ call: v, block: '' }))),
        labelled('Block', choose(Array.from({ length: blocks }, (_, i) => [i, `${i + 1} of ${blocks}`]), block, (v) => change({ block: v }))),
        labelled('Head', choose([[-1, 'mean of all'], ...Array.from({ length: about.heads }, (_, i) => [i, String(i + 1)])], head, (v) => change({ head: v === '-1' ? '' : v }))),
        labelled('Direction', choose([['', 'what the cell reads'], ['to', 'who reads the cell']], q.way || '', (v) => change({ way: v })))));
    let a;
    try {
      a = await get(asked, true);
    } catch (error) {
      box.append(fail(error));
      return box;
    }
    const bytes = Uint8Array.from(atob(a.data), (c) => c.charCodeAt(0));
    const weight = (from, to) => (bytes[from * a.n + to] / 255) * a.scale[from];
    let [r, c] = (q.cell || '0,0').split(',').map(Number);
    r = Math.max(0, Math.min(t.side - 1, r || 0));
    c = Math.max(0, Math.min(t.side - 1, c || 0));
    const position = a.prefix + r * t.side + c;
    const of = q.way === 'to' ? (i) => weight(i, position) : (i) => weight(position, i);
    let top = 0;
    let task = 0;
    let where = [0, 0];
    for (let i = 0; i < a.n; i++) {
      if (i < a.prefix) task += of(i);
      else if (of(i) > top) [top, where] = [of(i), [Math.floor((i - a.prefix) / t.side), (i - a.prefix) % t.side]];
    }
    const draw = (canvas, label) => drawGrid(cutCanvas(canvas, t.side, used), {
      size: 300, label, at: r < used && c < used ? [r, c] : undefined, onCell: (y, x) => change({ cell: `${y},${x}` }),
      heat: (y, x) => (top ? of(a.prefix + y * t.side + x) / top : 0),
    });
    const said = (x) => (x < 0.0005 ? '< 0.1%' : percent(x));
    box.append(h('div', { class: 'figures' }, h('figure', {}, h('figcaption', {}, 'Over the input'), draw(t.input, 'attention over the input')),
      h('figure', {}, h('figcaption', {}, 'Over the answer'), draw(t.segments[k].canvas, 'attention over the answer'))),
    h('p', { class: 'facts', role: 'status' }, `Row ${r + 1}, column ${c + 1} ${q.way === 'to' ? 'is read most by' : 'reads most from'} row ${where[0] + 1}, column ${where[1] + 1} (${said(top)})` +
      (a.prefix && q.way !== 'to' ? `, and ${said(task)} from the task embedding.` : '.')),
    h('div', { class: 'controls cells' }, ['↑', '↓', '←', '→'].map((sign, i) => h('button', {
      type: 'button', 'aria-label': ['Cell above', 'Cell below', 'Cell to the left', 'Cell to the right'][i],
      onclick: () => change({ cell: `${Math.max(0, Math.min(t.side - 1, r + [-1, 1, 0, 0][i]))},${Math.max(0, Math.min(t.side - 1, c + [0, 0, -1, 1][i]))}` }),
    }, sign))));
    return box;
  }

  return page;
}
