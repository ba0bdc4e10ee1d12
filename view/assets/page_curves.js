// Training curves of one or several runs, live.
import { h, labelled, choose, fail, plural } from './dom.js';
import { get, reportNotes } from './data.js';
import { drawChart, smooth } from './chart.js';
import { address } from './list.js';

const usual = ['lm_loss', 'loss', 'exact_accuracy', 'accuracy'];
const poll = 2000;
const liveFor = 60;

const many = [['', 'automatic'], ['1', 'none'], ['5', '5 points'], ['20', '20 points'], ['100', '100 points']];

export function curvesPage(state) {
  const runs = state.items.filter((i) => i.kind === 'run');
  const infos = new Map();
  const had = new Map(); // run and metric -> last answer
  const heading = h('div', { class: 'controls' });
  const status = h('ul', { class: 'run-status', 'aria-live': 'off' });
  const charts = h('div', { class: 'charts' });
  const more = h('div', { class: 'more-of-runs' });
  const element = h('div', { class: 'curves' }, h('h1', {}, 'Curves'), heading, status, charts, more);
  let query = {};
  let chosen = [];
  let timer = 0;
  let asked = 0;

  const metricsOf = () => {
    const names = new Set();
    for (const id of chosen) for (const list of Object.values(infos.get(id)?.metrics || {})) list.forEach((m) => names.add(m));
    return [...names].filter((m) => m !== 'count').sort((a, b) => (usual.indexOf(a) + 99) % 99 - (usual.indexOf(b) + 99) % 99 || a.localeCompare(b));
  };
  const wanted = () => {
    const all = metricsOf();
    const asked_ = (query.m || '').split(',').filter((m) => all.includes(m));
    return asked_.length ? asked_ : ['lm_loss', 'exact_accuracy'].filter((m) => all.includes(m)).concat(all).filter((m, i, l) => l.indexOf(m) === i).slice(0, 2);
  };
  const to = (changes, ids = chosen) => { location.hash = address('/curves', ids.join(','), { ...query, ...changes }); };

  function controls() {
    const metrics = wanted();
    const toggle = (list, x) => (list.includes(x) ? list.filter((y) => y !== x) : [...list, x]);
    heading.replaceChildren(
      h('fieldset', {}, h('legend', {}, 'Runs'), runs.map((r) => h('label', { class: 'check' },
        h('input', { type: 'checkbox', checked: chosen.includes(r.id), onchange: () => to({}, toggle(chosen, r.id)) }), ' ' + r.name))),
      h('fieldset', {}, h('legend', {}, 'Metrics'), metricsOf().map((m) => h('label', { class: 'check' },
        h('input', { type: 'checkbox', checked: metrics.includes(m), onchange: () => to({ m: toggle(metrics, m).join(',') }) }), ' ' + m))),
      labelled('Smoothing', choose(many, query.smooth || '', (v) => to({ smooth: v }))),
      h('label', { class: 'check' }, h('input', { type: 'checkbox', checked: query.log === '1', onchange: (e) => to({ log: e.target.checked ? '1' : '' }) }), ' Logarithmic'));
  }

  async function refresh(first) {
    const mine = ++asked;
    let fresh = first;
    try {
      for (const id of chosen) {
        if (first || !reportNotes) infos.set(id, await get(`/api/run/${id}`));
      }
      if (first) controls();
      for (const id of chosen) {
        for (const m of wanted()) {
          const key = `${id} ${m}`;
          const since = had.get(key)?.version;
          const path = `/api/run/${id}/curves?metric=${encodeURIComponent(m)}`;
          const answer = await get(since && !reportNotes ? `${path}&since=${since}` : path);
          if (!answer.same) {
            had.set(key, answer);
            fresh = true;
          }
        }
      }
    } catch (error) {
      if (mine === asked) status.replaceChildren(h('li', {}, fail(error)));
      if (first) charts.replaceChildren();
      if (mine === asked) schedule();
      return;
    }
    if (mine !== asked || !element.isConnected) return;
    sayStatus();
    if (fresh && !charts.contains(document.activeElement)) draw();
    schedule();
  }

  function schedule() {
    clearTimeout(timer);
    if (!reportNotes) timer = setTimeout(() => element.isConnected && (document.hidden ? schedule() : refresh(false)), poll);
  }

  function sayStatus() {
    status.replaceChildren(...chosen.map((id) => {
      const info = infos.get(id);
      const live = info.quiet !== null && info.quiet < liveFor && !reportNotes;
      const stop = info.sessions.length ? info.sessions[info.sessions.length - 1].event : '';
      return h('li', {}, h('span', { class: live && stop !== 'stop' ? 'badge live' : 'badge' }, live && stop !== 'stop' ? '● live' : stop === 'stop' ? 'ended' : 'at rest'), ` ${info.name} `, h('b', {}, `step ${info.step.toLocaleString('en')}`));
    }));
    more.replaceChildren(...chosen.map((id) => {
      const info = infos.get(id);
      return h('details', {}, h('summary', {}, `${info.name}: configuration and ${plural(info.sessions.length, 'event')}`), h('p', { class: 'path' }, info.path),
        h('ul', { class: 'sessions' }, info.sessions.map((s) => h('li', {}, `${s.time.slice(0, 19).replace('T', ' ')} ${s.event} at step ${s.step}${s.tokens_s ? `, ${Math.round(s.tokens_s).toLocaleString('en')} tokens/s` : ''}${s.note ? `, ${s.note}` : ''}`))),
        h('pre', {}, info.config));
    }));
  }

  function draw() {
    const several = chosen.length > 1;
    charts.replaceChildren(...wanted().map((m) => {
      const lines = [];
      for (const id of chosen) {
        const answer = had.get(`${id} ${m}`);
        const index = runs.findIndex((r) => r.id === id);
        for (const [event, name] of [['train', 'training'], ['eval', 'evaluation']]) {
          const c = answer?.curves[event]?.[m];
          if (!c) continue;
          const line = { name: several ? `${infos.get(id).name}, ${name}` : name, index, x: c.step, y: c.mean, points: event === 'eval' };
          if (event === 'train') {
            const width = Number(query.smooth) || Math.max(1, Math.round(c.step.length / 40));
            line.y = smooth(c.mean, width);
            if (width > 1) line.raw = c.mean;
            if (c.width > 1) [line.low, line.high] = [c.low, c.high];
          }
          if (!several && event === 'eval') line.index = index + 1;
          lines.push(line);
        }
      }
      const fraction = /accuracy/.test(m);
      return drawChart(lines, { title: m, xName: 'step', log: query.log === '1' && !fraction, whole: fraction ? 0.01 : 0, yName: fraction ? (v) => (100 * v).toPrecision(3).replace(/\.?0+$/, '') + '%' : undefined });
    }));
  }

  return {
    element,
    show({ at, query: q }) {
      query = q;
      const known = new Set(runs.map((r) => r.id));
      chosen = (at || '').split(',').filter((id) => known.has(id));
      if (chosen.length === 0 && !at && runs.length) chosen = [runs[0].id];
      controls();
      if (chosen.length === 0) {
        charts.replaceChildren(h('p', { class: 'note' }, runs.length ? 'Choose a run.' : 'There are no runs here.'));
        status.replaceChildren();
        return;
      }
      return refresh(true);
    },
    keys(key) {
      if (key === 'l') return to({ log: query.log === '1' ? '' : '1' }), true;
      return false;
    },
    leave() {
      clearTimeout(timer);
      asked++;
    },
  };
}
