// A list with a filter on the left and what is chosen of it on the right; on a
// phone one of the two. The address holds the choice and the filter.
import { h, plural, chips, fail } from './dom.js';
import { getPages } from './data.js';

const shownAtOnce = 300;

export function address(base, at, query) {
  const q = new URLSearchParams(Object.entries(query).filter(([, v]) => v !== '' && v !== undefined && v !== null)).toString();
  return `#${base}${at === undefined || at === null ? '' : '/' + at}${q ? '?' + q : ''}`;
}

// sizes are the choices of the filter by size, by the longest side of a grid.
export const sizes = [['', 'any size'], ['5', '≤ 5'], ['10', '≤ 10'], ['20', '≤ 20'], ['30', '> 20']];

export function sizeFits(side, choice) {
  switch (choice) {
    case '5': return side <= 5;
    case '10': return side <= 10;
    case '20': return side <= 20;
    case '30': return side > 20;
  }
  return true;
}

// listPage makes the page. Options: base, the address; path, of the list; head
// (first page) -> element above the list; groups of chips [{key, label,
// options}]; matches(row, query); rowView(row, query) -> {mark, text, note};
// at(i, row) -> what stands in the address for a row; detail(i, row, query,
// change) -> element or promise; waiting, what is said until the list is there.
export function listPage(o) {
  const rows = [];
  let total = 0;
  let query = {};
  let at = null;
  let matching = [];
  let most = shownAtOnce;
  let loaded = false;
  const head = h('div', { class: 'list-head' });
  const search = h('input', {
    type: 'search', class: 'search', placeholder: 'Filter by name', 'aria-label': 'Filter by name', autocomplete: 'off', spellcheck: 'false',
    oninput: () => change({ q: search.value }),
  });
  const filters = h('div', { class: 'filters' });
  const count = h('p', { class: 'count', 'aria-live': 'polite' });
  const ul = h('ul', { class: 'rows' });
  const more = h('button', { type: 'button', class: 'more', onclick: () => { most += shownAtOnce; fill(); } }, 'Show more');
  const detail = h('section', { class: 'detail', 'aria-label': 'Chosen' });
  const element = h('div', { class: 'list-page' }, h('aside', { class: 'list', 'aria-label': 'List' }, head, search, filters, count, ul, more), detail);
  const address_ = (i) => (o.at ? o.at(i, rows[i]) : i);

  function change(changes, replace = true) {
    const to = address(o.base, at, { ...query, ...changes });
    if (replace) history.replaceState(null, '', to);
    else location.hash = to;
    if (replace) show({ at, query: { ...query, ...changes } });
  }

  function fill() {
    matching = rows.map((_, i) => i).filter((i) => {
      const text = (query.q || '').toLowerCase();
      return (!text || o.text(rows[i]).toLowerCase().includes(text)) && o.matches(rows[i], query);
    });
    const chosen = current();
    ul.replaceChildren(...matching.slice(0, most).map((i) => {
      const v = o.rowView(rows[i], query, i);
      return h('li', {}, h('a', { href: address(o.base, address_(i), query), 'aria-current': i === chosen ? 'true' : undefined, class: v.dim ? 'dim' : undefined },
        v.mark ? h('span', { class: 'mark ' + v.mark.kind, title: v.mark.title, role: 'img', 'aria-label': v.mark.title }, v.mark.sign) : null,
        h('span', { class: 'name' }, v.text), h('span', { class: 'sub' }, v.note)));
    }));
    more.hidden = matching.length <= most;
    count.textContent = !loaded && total === 0 ? '' : rows.length < total ? `${rows.length} of ${plural(total, 'task')} …`
      : matching.length === rows.length ? plural(total, 'task') : `${matching.length} of ${plural(total, 'task')}`;
  }

  // current is the index of the chosen row, or -1.
  function current() {
    if (at === null) return -1;
    return rows.findIndex((_, i) => String(address_(i)) === String(at));
  }

  let showing = '';

  async function showDetail() {
    let i = current();
    if (i < 0 && at === null && matchMedia('(min-width: 800px)').matches && matching.length > 0) i = matching[0];
    element.classList.toggle('chosen', at !== null);
    const key = i < 0 ? String(at) : JSON.stringify([i, o.redraw ? o.redraw(query) : 0]);
    if (key === showing) return;
    if (i < 0) {
      if (o.outside && at !== null) {
        showing = key;
        detail.replaceChildren(back(), await o.outside(at, query, change));
        return;
      }
      showing = '';
      detail.replaceChildren(h('p', { class: 'note' }, !loaded ? (o.waiting || 'Reading …') : at === null ? 'Nothing chosen.' : `There is no ${at} here.`));
      return;
    }
    showing = key;
    let body;
    try {
      body = await o.detail(i, rows[i], query, change);
    } catch (error) {
      body = fail(error);
    }
    if (showing === key) {
      detail.replaceChildren(back(i), body);
      ul.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
    }
  }

  function back(i) {
    const place = matching.indexOf(i);
    const step = (to, text, label) => h('a', {
      class: 'step', 'aria-label': label, href: to === undefined ? undefined : address(o.base, address_(to), query), 'aria-disabled': to === undefined ? 'true' : undefined,
    }, text);
    return h('p', { class: 'back' }, h('a', { class: 'to-list', href: address(o.base, null, query) }, '← List'), h('span', { class: 'grow' }),
      step(place > 0 ? matching[place - 1] : undefined, '‹ Previous', 'Previous task'), step(place >= 0 ? matching[place + 1] : undefined, 'Next ›', 'Next task'));
  }

  function show(to) {
    at = to.at;
    query = to.query;
    if (document.activeElement !== search) search.value = query.q || '';
    filters.replaceChildren(...o.filters.map((f) => chips(f.label, f.options, query[f.key] || f.options[0][0], (v) => change({ [f.key]: v }))));
    fill();
    return showDetail();
  }

  function move(by) {
    if (matching.length === 0) return;
    const place = matching.indexOf(current());
    const first = at === null && matchMedia('(min-width: 800px)').matches ? 0 : -1;
    const to = Math.max(0, Math.min(matching.length - 1, (place < 0 ? first : place) + by));
    if (to >= most) most = to + shownAtOnce;
    location.hash = address(o.base, address_(matching[to]), query);
  }

  async function load() {
    try {
      await getPages(o.path, (part, page) => {
        rows.push(...part.rows);
        total = part.total;
        if (page === 0 && o.head) head.replaceChildren(o.head(part));
        fill();
        showDetail();
        return element.isConnected;
      });
      loaded = true;
      showDetail();
    } catch (error) {
      head.replaceChildren(fail(error));
      count.textContent = '';
      detail.replaceChildren();
    }
  }

  return {
    element, show, load,
    keys(key) {
      if (key === 'j' || key === 'ArrowDown') return move(1), true;
      if (key === 'k' || key === 'ArrowUp') return move(-1), true;
      if (key === '/') return search.focus(), search.select(), true;
      if (key === 'Escape' && at !== null) return (location.hash = address(o.base, null, query)), true;
      return o.keys ? o.keys(key, query, change) : false;
    },
  };
}
