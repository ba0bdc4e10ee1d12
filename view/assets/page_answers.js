// Ranked answers of a predictions file.
import { h, plural, percent, fail } from './dom.js';
import { get } from './data.js';
import { drawGrid, rowsOf, differs, longestSide } from './grid.js';
import { drawChart } from './chart.js';
import { drawPairs } from './page_tasks.js';
import { listPage, sizes, sizeFits } from './list.js';

const shownAnswers = 6;

// solvedAt says whether all labelled tests have the right answer among the
// first k; null where none is labelled.
export function solvedAt(row, k) {
  const tests = row.tests.filter((t) => t.labelled);
  return tests.length === 0 ? null : tests.every((t) => t.rank > 0 && t.rank <= k);
}

function markOf(row, k) {
  const solved = solvedAt(row, k);
  if (solved === null) return { kind: 'open', sign: '?', title: 'not known' };
  if (solved) return { kind: 'solved', sign: '✓', title: 'solved' };
  return row.tests.some((t) => t.labelled && t.rank > 0 && t.rank <= k) ? { kind: 'partly', sign: '◐', title: 'some tests solved' } : { kind: 'unsolved', sign: '✗', title: 'unsolved' };
}

const share = (r) => (r.of ? percent(r.solved / r.of) : '–');

function scoreTable(first, k) {
  return h('table', { class: 'scores' }, h('caption', {}, 'Score when K answers may be tried'),
    h('thead', {}, h('tr', {}, ['K', 'all tests of a task', 'mean over tasks', 'outputs'].map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', {}, first.scores.map((s) => h('tr', { class: s.k === k ? 'chosen' : undefined }, h('th', { scope: 'row' }, s.k), [s.all_tests, s.task_mean, s.outputs].map((r) =>
      h('td', {}, h('b', {}, share(r)), h('small', {}, ` ${+r.solved.toFixed(2)}/${r.of}`)))))));
}

// costCharts are pass@K by the copies that vote and by segments.
function costCharts(curve) {
  const chart = (points, options) => {
    if (points.length < 2) return null;
    const lines = points[0].scores.map((_, index) => ({
      name: `pass@${points[0].scores[index].k}`, index, points: true, x: points.map((p) => p.n),
      y: points.map((p) => { const r = p.scores[index].all_tests; return r.of ? r.solved / r.of : 0; }),
    }));
    return drawChart(lines, { ...options, whole: 0.05, yName: (v) => percent(v, 0) });
  };
  return [
    chart(curve.copies, { title: 'Tasks solved, by copies that vote', xName: 'copies', logX: true, counts: true }),
    chart(curve.segments, { title: 'Tasks solved, by segments', xName: 'segments', counts: true }),
  ];
}

export function answersPage(item, state) {
  const path = `/api/answers/${item.id}`;
  const run = state.items.find((r) => r.id === item.run && r.model && state.canModel);
  const charts = h('div', { class: 'cost' });
  async function showCurve(e) {
    if (!e.target.open || charts.childNodes.length > 0) return;
    charts.replaceChildren(h('p', { class: 'note' }, 'Counting …'));
    try {
      charts.replaceChildren(...costCharts(await get(`${path}/curve`, true)).filter(Boolean));
    } catch (error) {
      charts.replaceChildren(fail(error));
    }
  }
  return listPage({
    base: `/answers/${item.id}`, path, waiting: 'Counting the votes …',
    head: (first) => h('div', {}, h('h1', {}, item.name), h('p', { class: 'facts' },
      [first.checkpoint ? `step ${first.step}, ${first.weights} weights` : '', plural(first.votes, 'vote'), first.halt_steps ? plural(first.halt_steps, 'segment') : ''].filter(Boolean).join(' · ')),
    h('details', { ontoggle: showCurve }, h('summary', {}, 'pass@2 ', h('b', {}, share(first.scores.find((s) => s.k === 2).all_tests)), ` of ${plural(first.scores[0].all_tests.of, 'task')}`),
      scoreTable(first, 2), charts, first.coverage.missing_tasks.length ? h('p', { class: 'note' }, `${plural(first.coverage.missing_tasks.length, 'task')} without an answer: ${first.coverage.missing_tasks.slice(0, 10).join(', ')}`) : null)),
    filters: [
      { key: 'show', label: 'Show', options: [['', 'all'], ['solved', 'solved'], ['unsolved', 'unsolved']] },
      { key: 'k', label: 'Tries that count', options: [['', '2 tries'], ['1', '1'], ['10', '10'], ['1000', 'any']] },
      { key: 'size', label: 'Size', options: sizes },
    ],
    text: (row) => `${row.id} ${row.split || ''}`,
    matches(row, q) {
      const solved = solvedAt(row, Number(q.k) || 2);
      return sizeFits(row.side, q.size) && (!q.show || (q.show === 'solved') === (solved === true));
    },
    rowView: (row, q) => ({ mark: markOf(row, Number(q.k) || 2), text: row.id, note: row.tests.map((t) => (t.labelled ? (t.rank ? `#${t.rank}` : '–') : '?')).join(' ') + ` · ${row.side}` }),
    redraw: (q) => [q.diff, q.all],
    async detail(i, row, q, change) {
      const t = await get(`${path}/${i}`, true);
      const longest = longestSide(...[...t.train_pairs, ...t.test_views].flatMap((p) => [p.input, p.output]));
      return h('article', {}, h('h2', {}, t.id),
        h('div', { class: 'controls' }, h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: q.diff !== '0', onchange: (e) => change({ diff: e.target.checked ? '' : '0' }) }), ' Mark wrong cells')),
        t.train_pairs.length ? h('details', { open: true }, h('summary', {}, plural(t.train_pairs.length, 'demonstration')), drawPairs(t.train_pairs, 'Demonstration', longest)) : null,
        t.test_views.map((test, j) => testSection(test, j, t.test_views.length, longest, q, change, run)));
    },
    keys(key, q, change) {
      if (key === 'd') return change({ diff: q.diff === '0' ? '' : '0' }), true;
      return false;
    },
  });
}

function testSection(test, j, of, longest, q, change, run) {
  const best = test.answers[0];
  const heading = of > 1 ? `Test ${j + 1} of ${of}` : 'Test';
  const verdict = !test.labelled ? 'the right answer is not known' : test.rank === 1 ? 'the first answer is right' : test.rank > 1 ? `the right answer is number ${test.rank}` : test.votes === 0 ? 'not answered' : 'no answer is right';
  const shown = q.all === '1' ? test.answers : test.answers.slice(0, shownAnswers);
  return h('section', { class: 'test' }, h('h3', {}, heading, h('span', { class: 'verdict' }, ` ${verdict}`)),
    h('div', { class: 'figures' },
      h('figure', {}, h('figcaption', {}, 'Input'), drawGrid(rowsOf(test.input), { size: 230, longest, label: 'test input' })),
      h('figure', {}, h('figcaption', {}, 'Truth'), test.output ? drawGrid(rowsOf(test.output), { size: 230, longest, label: 'right output' }) : h('span', { class: 'unknown', role: 'img', 'aria-label': 'not known' }, '?'))),
    h('p', { class: 'facts' }, `${plural(test.votes, 'vote')} for ${plural(test.distinct, 'answer')}`,
      run && test.row !== undefined ? [' · ', h('a', { href: `#/model/${run.id}/test/${test.row}` }, 'look inside the model')] : null),
    h('ol', { class: 'answers' }, shown.map((a, n) => answerCard(a, n, test, longest, q.diff !== '0'))),
    test.answers.length > shown.length ? h('button', { type: 'button', class: 'more', onclick: () => change({ all: '1' }) }, `Show ${test.answers.length - shown.length} more${test.distinct > test.answers.length ? ` (the best ${test.answers.length} of ${test.distinct})` : ''}`) : null,
    best ? null : h('p', { class: 'note' }, 'No copy of this test input was predicted.'));
}

function answerCard(a, n, test, longest, diff) {
  const d = test.labelled ? differs(a.grid, test.output) : null;
  const said = !d ? 'not known' : a.right ? '✓ right' : [d.size, d.size && d.count === 0 ? '' : `✗ ${d.count} of ${plural(d.cells, 'cell')} wrong`].filter(Boolean).join(' · ');
  return h('li', { class: a.right ? 'answer right' : 'answer' },
    h('div', { class: 'rank' }, h('b', {}, `#${n + 1}`), h('span', {}, said)),
    drawGrid(rowsOf(a.grid), { size: 230, longest, label: `answer ${n + 1}`, wrong: d && diff && !a.right ? d.wrong : undefined }),
    h('div', { class: 'votes' }, h('meter', { min: 0, max: test.votes, value: a.votes, 'aria-label': `${a.votes} of ${test.votes} votes` }), h('span', {}, `${a.votes} of ${plural(test.votes, 'vote')}`),
      h('span', { title: 'mean halt probability of the votes' }, `mean q ${a.mean_q === null ? 'not a number' : a.mean_q.toFixed(3)}`)));
}
