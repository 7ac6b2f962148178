// The page's frame: which page the address names, the theme, and whether the server is there.

import { confirmed, dismiss } from './dialog.js';
import { fill, h } from './dom.js';
import { Figures } from './figures.js';
import { MEASURES } from './measures.js';
import { documentPage } from './pages/document.js';
import { feedPage } from './pages/feed.js';
import { overview } from './pages/overview.js';
import { subscribersPage } from './pages/subscribers.js';
import { showState } from './state.js';
import { themeButton } from './theme.js';

const main = document.getElementById('main');
const figures = new Figures(MEASURES);
// What the page knows, for who looks at it with the browser's tools.
globalThis.seqtide = { figures };
const ROUTES = [
  [/^\/?$/, overview],
  [/^\/feeds$/, subscribersPage],
  [/^\/db\/([^/]+)$/, feedPage],
  [/^\/db\/([^/]+)\/doc\/([^/]+)$/, documentPage],
];

let page = null;
/** The address that is shown. The browser's own is ahead of it from a click on a link to the event that tells of it. */
let shown = '';

/** Shows the page that the address names; its options stand behind a question mark. */
function route() {
  shown = location.hash;
  const [path, query = ''] = shown.replace(/^#/, '').split('?', 2);
  // A question is about what its page shows.
  dismiss();
  page?.close?.();
  page = pageOf(path, new URLSearchParams(query));
  globalThis.seqtide.page = page;
  document.title = page.title ? `${page.title} · Seqtide` : 'Seqtide';
  for (const link of document.querySelectorAll('nav a')) {
    const here = link.getAttribute('href').slice(1) === (path || '/');
    if (here) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  scrollTo(0, 0);
}

/** Who follows a link goes on at the beginning of what it leads to, unless something would be lost that is to be kept. */
async function routeOn() {
  if (page.isBusy && !(await isLeft())) return;
  route();
  main.focus({ preventScroll: true });
}

/** Asks whether the page is to be left, which keeps its address until that is answered. */
async function isLeft() {
  const wanted = location.href;
  history.replaceState(null, '', shown);
  const isLeft = await confirmed({ title: 'Leave without saving?', text: 'What you wrote is lost.', yes: 'Leave' });
  if (isLeft) history.pushState(null, '', wanted);
  return isLeft;
}

/** Keeps a page's options in its address, for a reload. Where another page has been asked for, that one's address stands. */
function keep(options) {
  if (location.hash !== shown) return;
  history.replaceState(null, '', `${shown.split('?', 1)[0]}?${options}`);
  shown = location.hash;
}

/** The page of a path; where there is none, one that says so. */
function pageOf(path, options) {
  const [pattern, make] = ROUTES.find(([pattern]) => pattern.test(path)) ?? [];
  if (!make) return unknown();
  let names;
  try {
    names = pattern.exec(path).slice(1).map(decodeURIComponent);
  } catch {
    return unknown('A % in its address stands for no letter. A percent sign itself is written %25.');
  }
  // No database has such a name, and in a path a browser takes it for a folder.
  if (/^\.\.?$/.test(names[0])) return unknown();
  return make({ main, figures, names, options, keep });
}

function unknown(why) {
  fill(main, h('h1', {}, 'There is no such page'), why && h('p', {}, why), h('p', {}, h('a', { href: '#/' }, 'To the overview')));
  return { title: 'No such page' };
}

const state = document.getElementById('server-state');
figures.follow(() => showState(state, figures.state));
themeButton(document.getElementById('theme'), () => page?.repaint?.());
document.getElementById('skip').addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener('hashchange', routeOn);
addEventListener('beforeunload', (event) => page.isBusy && event.preventDefault());
route();
