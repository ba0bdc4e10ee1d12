// The page as a whole: addresses, keys, light and dark.
import { h, fail } from './dom.js';
import { get, reportNotes } from './data.js';
import { setPalette } from './grid.js';
import { address } from './list.js';
import { homePage, linkTo } from './page_home.js';
import { tasksPage } from './page_tasks.js';
import { datasetPage } from './page_dataset.js';
import { answersPage } from './page_answers.js';
import { curvesPage } from './page_curves.js';
import { modelPage } from './page_model.js';

const main = document.getElementById('main');
const nav = document.getElementById('nav');
const keysDialog = document.getElementById('keys');
const state = { items: [], canModel: false };
let here = { key: '', page: null };

const keyHelp = [
  ['j k or ↓ ↑', 'next and previous of a list'],
  ['← →', 'next and previous copy or segment'],
  ['/', 'filter the list by name'],
  ['d', 'mark wrong cells or not'],
  ['l', 'logarithmic curves or not'],
  ['Esc', 'back to the list'],
  ['h', 'everything there is'],
  ['?', 'these keys'],
];

function parse() {
  const [path, search] = location.hash.replace(/^#/, '').split('?');
  return { parts: path.split('/').filter(Boolean).map(decodeURIComponent), query: Object.fromEntries(new URLSearchParams(search || '')) };
}

// pageFor makes the page of an address, and says what of the address it is
// made for and what it shows.
async function pageFor(parts) {
  const [kind, id, third, fourth] = parts;
  const item = state.items.find((i) => i.id === id);
  const need = (k) => {
    if (!item || item.kind !== k) throw new Error(`There is no ${k} called ${id || 'nothing'} here.`);
  };
  const splitOr = (s) => (s === 'train' || s === 'test' ? s : 'test');
  switch (kind) {
    case undefined: return { key: 'home', make: () => homePage(state) };
    case 'curves': return { key: 'curves', at: id, title: 'curves', make: () => curvesPage(state) };
    case 'tasks': need('tasks'); return { key: `tasks ${id}`, at: third, title: item.name, make: () => tasksPage(item) };
    case 'answers': need('answers'); return { key: `answers ${id}`, at: third, title: item.name, make: () => answersPage(item, state) };
    case 'dataset': need('dataset'); return { key: `dataset ${id} ${splitOr(third)}`, at: fourth, title: item.name, make: () => datasetPage(item, splitOr(third), state) };
    case 'model': {
      need('run');
      const about = await get(`/api/model/${id}`, true);
      if (!about.data) throw new Error(`The dataset ${about.dataset} is not among what is shown; name it too.`);
      return { key: `model ${id} ${splitOr(third)}`, at: fourth, title: `inside ${item.name}`, make: () => modelPage(item, splitOr(third), about, state) };
    }
  }
  throw new Error(`There is no page ${kind}.`);
}

let turn = 0;

async function route() {
  const mine = ++turn;
  const { parts, query } = parse();
  let page;
  try {
    if (parts[0] && !state.items.some((i) => i.id === parts[1])) await readItems(); // a new evaluation, say
    page = await pageFor(parts);
  } catch (error) {
    if (mine !== turn) return;
    here.page?.leave?.();
    here = { key: '', page: null };
    main.replaceChildren(fail(error));
    return;
  }
  if (mine !== turn) return;
  document.title = page.title ? `${page.title} · deeploop` : 'deeploop';
  fillNav(parts);
  const to = { at: page.at === undefined ? null : page.at, query };
  if (here.key !== page.key) {
    here.page?.leave?.();
    here = { key: page.key, page: page.make() };
    main.replaceChildren(here.page.element);
    scrollTo(0, 0);
    here.page.load?.();
  }
  here.page.show(to);
}

async function readItems() {
  const answer = await get('/api/items');
  state.items = answer.items;
  state.canModel = answer.can_model;
  setPalette(answer.palette);
}

function fillNav(parts) {
  const [kind, id] = parts;
  const entry = (href, text, current) => h('a', { href, 'aria-current': current ? 'page' : undefined }, text);
  const of = (k) => state.items.filter((i) => i.kind === k);
  const links = [];
  const pages = { answers: 'Answers', dataset: 'Datasets', tasks: 'Tasks' };
  if (of('run').length) {
    links.push(entry(kind === 'curves' ? location.hash : address('/curves', of('run')[0].id, {}), 'Curves', kind === 'curves'));
  }
  for (const [k, name] of Object.entries(pages)) {
    const items = of(k);
    if (items.length) links.push(entry(kind === k ? linkTo(items.find((i) => i.id === id) || items[0]) : linkTo(items[0]), name, kind === k));
  }
  const inside = of('run').find((r) => r.model && (kind !== 'model' || r.id === id));
  if (inside && state.canModel) links.push(entry(`#/model/${inside.id}/test`, 'Model', kind === 'model'));
  nav.replaceChildren(...links);
}

function showKeys() {
  keysDialog.replaceChildren(h('h2', { id: 'keys-title' }, 'Keys'), h('dl', {}, keyHelp.map(([k, what]) => h('div', {}, h('dt', {}, k), h('dd', {}, what)))),
    h('form', { method: 'dialog' }, h('button', {}, 'Close')));
  keysDialog.showModal();
}

document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || keysDialog.open) return;
  const typing = e.target.closest('input, select, textarea');
  if (typing) {
    if (e.key === 'Escape' || (e.key === 'Enter' && typing.type === 'search')) {
      typing.blur();
      e.preventDefault();
    }
    if (typing.type !== 'checkbox' || e.key === ' ') return;
  }
  if (e.key === '?') showKeys();
  else if (e.key === 'h') location.hash = '#/';
  else if (!here.page?.keys?.(e.key)) return;
  e.preventDefault();
});

const themes = ['auto', 'light', 'dark'];
const themeButton = document.getElementById('theme');

function setTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  themeButton.textContent = { auto: '◐', light: '☀', dark: '☾' }[theme];
  themeButton.setAttribute('aria-label', `Colours: ${theme === 'auto' ? 'as the system' : theme}`);
  themeButton.title = themeButton.getAttribute('aria-label');
  themeButton.value = theme;
  try {
    localStorage.setItem('deeploop-theme', theme);
  } catch {
    // a file's page may keep nothing
  }
}

themeButton.addEventListener('click', () => setTheme(themes[(themes.indexOf(themeButton.value) + 1) % themes.length]));
document.getElementById('help').addEventListener('click', showKeys);
keysDialog.addEventListener('click', (e) => { if (e.target === keysDialog) keysDialog.close(); });

function savedTheme() {
  try {
    const theme = localStorage.getItem('deeploop-theme');
    return themes.includes(theme) ? theme : 'auto';
  } catch {
    return 'auto';
  }
}

async function start() {
  setTheme(savedTheme());
  try {
    await readItems();
  } catch (error) {
    main.replaceChildren(fail(error));
    return;
  }
  if (reportNotes) document.body.classList.add('report');
  window.addEventListener('hashchange', route);
  await route();
}

start();
