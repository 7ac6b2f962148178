// A table, which where it has no room becomes a list of cards: each cell then stands behind the name of its column. A style
// sheet that lays a table out anew takes what it is from a screen reader, so all its parts say it themselves.

import { h } from './dom.js';

/** A table of columns `{name, isFigure, isUnseen}`. */
export function table(label, columns, caption, body) {
  const heads = columns.map(({ name, isFigure, isUnseen }) =>
    h('th', { scope: 'col', role: 'columnheader', class: isFigure && 'number' }, isUnseen ? h('span', { class: 'unseen' }, name) : name),
  );
  const head = h('thead', { role: 'rowgroup' }, h('tr', { role: 'row' }, heads));
  const drawn = h('table', { role: 'table', 'aria-label': label }, caption, head, body);
  const place = h('div', { class: 'table' }, drawn);
  const fit = () => {
    place.classList.remove('cards');
    place.classList.toggle('cards', drawn.offsetWidth > place.clientWidth);
  };
  // Its own width changes with what it holds.
  const resized = new ResizeObserver(fit);
  resized.observe(place);
  resized.observe(drawn);
  return place;
}

/** A row with what it is the row of. */
export const row = (name, cells) => h('tr', { role: 'row' }, h('th', { scope: 'row', role: 'rowheader' }, name), cells);

/** A cell, which knows the name of its column. */
export const cell = (column, properties = {}, ...children) => h('td', { role: 'cell', 'data-column': column, ...properties }, ...children);
