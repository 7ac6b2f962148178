// Light, dark, or as the system has it; remembered in the browser where it lets a page do so, and else for as long as the page is open.

import { h, fill } from './dom.js';

const THEMES = ['auto', 'light', 'dark'];
const KEY = 'seqtide-theme';

/** Makes a button switch the theme; `changed` is called whenever colours change. */
export function themeButton(button, changed) {
  let theme = remembered();
  const show = () => {
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    fill(button, h('span', { class: 'wide' }, 'Theme: '), theme);
    changed();
  };
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    remember(theme);
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  show();
}

function remembered() {
  try {
    const theme = localStorage.getItem(KEY);
    return THEMES.includes(theme) ? theme : 'auto';
  } catch {
    return 'auto';
  }
}

function remember(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // A browser may keep nothing of a page, or have no room for it.
  }
}

/** The colour that a variable of the style sheet has now, as a canvas takes it. */
export function colour(name) {
  const probe = h('span');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
