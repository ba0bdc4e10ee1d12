// Elements without a framework: h for HTML, g for SVG. Text is always set as
// text, never parsed.

function make(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false));
  return element;
}

export const h = (tag, attributes, ...children) => make(document.createElement(tag), attributes, children);

export const g = (tag, attributes, ...children) =>
  make(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);

export const plural = (n, thing, many) => `${n.toLocaleString('en')} ${n === 1 ? thing : many || thing + 's'}`;

export const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)}%`;

// labelled puts a control and its label together.
export function labelled(text, control) {
  return h('label', { class: 'field' }, h('span', {}, text), control);
}

export function choose(options, value, onchange) {
  return h('select', { onchange: (e) => onchange(e.target.value) },
    options.map(([v, text]) => h('option', { value: v, selected: String(v) === String(value) }, text)));
}

// fail is what stands where something could not be shown.
export function fail(error) {
  return h('p', { class: 'note error', role: 'alert' }, error.message || String(error));
}

// chips is a group of buttons of which one is chosen.
export function chips(label, options, value, onchange) {
  return h('div', { class: 'chips', role: 'group', 'aria-label': label },
    options.map(([v, text]) => h('button', { type: 'button', 'aria-pressed': String(v === value), onclick: () => onchange(v) }, text)));
}
