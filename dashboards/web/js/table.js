// A table, which on a narrow page becomes a list of cards: each cell then stands behind the name of its column. A style
// sheet that lays a table out anew takes what it is from a screen reader, so all its parts say it themselves.

import { h } from './dom.js';

/** A table of columns `{name, isFigure, isUnseen}`, which can be scrolled sideways where it is too wide. */
export function table(label, columns, caption, body) {
  const heads = columns.map(({ name, isFigure, isUnseen }) =>
    h('th', { scope: 'col', role: 'columnheader', class: isFigure && 'number' }, isUnseen ? h('span', { class: 'unseen' }, name) : name),
  );
  const head = h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, heads));
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, h('table', { role: 'table' }, caption, head, body));
}

/** A row with what it is the row of. */
export const row = (name, cells) => h('tr', { role: 'row' }, h('th', { scope: 'row', role: 'rowheader' }, name), cells);

/** A cell, which knows the name of its column. */
export const cell = (column, properties = {}, ...children) => h('td', { role: 'cell', 'data-column': column, ...properties }, ...children);
