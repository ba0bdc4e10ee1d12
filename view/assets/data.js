// What the page shows comes as JSON, from the server or, in a report, from the
// page itself.

const inlined = (() => {
  const data = document.getElementById('data');
  return data ? JSON.parse(data.textContent) : null;
})();

// reportNotes is null on a server's page, else what the report says of itself.
export const reportNotes = inlined ? inlined.report : null;

export const inReport = (path) => !inlined || path in inlined.answers;

const kept = new Map();

// get asks for a path. What cannot change while the page is open is kept.
export async function get(path, keep = false) {
  if (inlined) {
    if (path in inlined.answers) return inlined.answers[path];
    throw new Error('This was left out of the report to keep it small; hrm view shows everything.');
  }
  if (kept.has(path)) return kept.get(path);
  let response;
  try {
    response = await fetch(path, { headers: { Accept: 'application/json' } });
  } catch {
    throw new Error('The server does not answer; is hrm view still running?');
  }
  const text = await response.text();
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error(text.slice(0, 300) || `The server answered ${response.status}.`);
  }
  if (!response.ok) throw new Error(value.error || `The server answered ${response.status}.`);
  if (keep) {
    kept.set(path, value);
    if (kept.size > 100) kept.delete(kept.keys().next().value);
  }
  return value;
}

// getPages asks for a list page by page and calls seen after each.
export async function getPages(path, seen) {
  for (let page = 0, pages = 1; page < pages; page++) {
    const part = await get(`${path}?page=${page}`);
    pages = part.pages;
    if (seen(part, page) === false) return;
  }
}

// sigmoid is the halt probability of a logit.
export const sigmoid = (x) => 1 / (1 + Math.exp(-x));
