// The first page: everything there is.
import { h, fail } from './dom.js';
import { reportNotes } from './data.js';

const kinds = [
  ['run', 'Runs', 'Trainings: their curves, and their model at work.'],
  ['answers', 'Predictions', 'Ranked answers of held-out tasks, from hrm eval.'],
  ['dataset', 'Datasets', 'What the model reads: augmented examples on canvases.'],
  ['tasks', 'Tasks', 'Demonstrations and tests as they are.'],
];

export const firstPage = { run: 'curves', answers: 'answers', dataset: 'dataset', tasks: 'tasks' };

export function linkTo(item) {
  switch (item.kind) {
    case 'run': return `#/curves/${item.id}`;
    case 'dataset': return `#/dataset/${item.id}/train`;
  }
  return `#/${firstPage[item.kind]}/${item.id}`;
}

export function homePage(state) {
  const element = h('div', { class: 'home' });
  return {
    element,
    show() {
      element.replaceChildren();
      if (state.items.length === 0) element.append(fail(new Error('Nothing to show.')));
      if (reportNotes) {
        element.append(h('section', { class: 'about' }, h('h1', {}, 'Report'), h('p', {}, reportNotes.made),
          reportNotes.cuts.length ? h('ul', {}, reportNotes.cuts.map((c) => h('li', {}, c))) : null));
      }
      for (const [kind, title, what] of kinds) {
        const items = state.items.filter((i) => i.kind === kind);
        if (items.length === 0) continue;
        element.append(h('section', {}, h('h2', {}, title), h('p', { class: 'what' }, what), h('ul', { class: 'cards' }, items.map((i) => h('li', {},
          h('a', { class: 'title', href: linkTo(i) }, i.name), h('span', { class: 'path' }, i.path || 'come with the program'),
          h('span', { class: 'links' },
            kind === 'run' && i.model && state.canModel ? h('a', { href: `#/model/${i.id}/test` }, 'Look inside') : null,
            kind === 'dataset' ? [h('a', { href: `#/dataset/${i.id}/train` }, 'Train'), h('a', { href: `#/dataset/${i.id}/test` }, 'Test')] : null))))));
      }
    },
  };
}
