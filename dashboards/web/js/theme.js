// Light, dark, or as the system has it; remembered in the browser.

import { h, fill } from './dom.js';

const THEMES = ['auto', 'light', 'dark'];
const KEY = 'seqtide-theme';

/** Makes a button switch the theme; `changed` is called whenever colours change. */
export function themeButton(button, changed) {
  const show = () => {
    const theme = remembered();
    if (theme === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    fill(button, h('span', { class: 'wide' }, 'Theme: '), theme);
    changed();
  };
  button.addEventListener('click', () => {
    const next = THEMES[(THEMES.indexOf(remembered()) + 1) % THEMES.length];
    localStorage.setItem(KEY, next);
    show();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  show();
}

function remembered() {
  const theme = localStorage.getItem(KEY);
  return THEMES.includes(theme) ? theme : 'auto';
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
