// A list of any length of which only the rows in sight are elements. The newest row stands first; who has scrolled away
// from it keeps what he looks at.

import { fill, h } from './dom.js';

const ROW_PX = 34;
/** Rows made above and below what is in sight. */
const SPARE = 8;
const KEYS = { ArrowDown: 1, ArrowUp: -1, PageDown: 12, PageUp: -12, Home: -Infinity, End: Infinity };

export class Rows {
  /**
   * - `draw(row)`: the cells of a row
   * - `key(row)`: what tells it from all others
   * - `chosen(row)`, `opened(row)`: called when one is selected, and when it is to be opened
   */
  constructor({ label, draw, key, chosen, opened }) {
    Object.assign(this, { draw, key, chosen, opened, rows: [], selected: null, frame: 0 });
    this.sheet = h('div', { class: 'sheet', role: 'presentation' });
    this.element = h(
      'div',
      {
        class: 'rows',
        role: 'listbox',
        tabindex: 0,
        'aria-label': label,
        onscroll: () => this.later(),
        onkeydown: (event) => this.pressed(event),
      },
      this.sheet,
    );
    this.resized = new ResizeObserver(() => this.later());
    this.resized.observe(this.element);
  }

  /** Shows these rows, the newest last, of which so many were added since. */
  show(rows, added = rows.length) {
    this.rows = rows;
    // Made higher first, or who stands at its end could not be moved along.
    this.sheet.style.height = `${rows.length * ROW_PX}px`;
    if (this.element.scrollTop > 0 && added > 0) this.element.scrollTop += added * ROW_PX;
    // At once: a frame between the two would show another place of the list, or nothing.
    this.paint();
  }

  /** Goes to the newest row. */
  toNewest() {
    this.element.scrollTop = 0;
  }

  close() {
    this.resized.disconnect();
    cancelAnimationFrame(this.frame);
  }

  later() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    const { scrollTop, clientHeight } = this.element;
    const many = this.rows.length;
    const first = Math.max(0, Math.floor(scrollTop / ROW_PX) - SPARE);
    const last = Math.min(many, Math.ceil((scrollTop + clientHeight) / ROW_PX) + SPARE);
    const inSight = [];
    for (let at = first; at < last; at += 1) inSight.push(this.elementOf(at));
    fill(this.sheet, inSight);
    const shown = this.selected !== null && inSight.some((row) => row.id === this.idOf(this.selected));
    if (shown) this.element.setAttribute('aria-activedescendant', this.idOf(this.selected));
    else this.element.removeAttribute('aria-activedescendant');
  }

  elementOf(at) {
    const row = this.rows[this.rows.length - 1 - at];
    const chosen = this.selected !== null && this.key(row) === this.key(this.selected);
    const element = h(
      'div',
      {
        class: 'row',
        id: this.idOf(row),
        role: 'option',
        'aria-selected': String(chosen),
        'aria-setsize': this.rows.length,
        'aria-posinset': at + 1,
        // A click needs the same element below the pointer when it goes up, and rows that come move it away.
        onmousedown: ({ button, detail }) => button === 0 && this.pointed(row, detail === 2),
      },
      this.draw(row),
    );
    element.style.transform = `translateY(${at * ROW_PX}px)`;
    return element;
  }

  idOf(row) {
    return `row-${this.key(row)}`;
  }

  pointed(row, isDouble) {
    if (isDouble && this.selected !== null) this.opened(this.selected);
    else this.select(row);
  }

  select(row) {
    this.selected = row;
    this.chosen(row);
    this.later();
  }

  pressed(event) {
    if (event.key === 'Enter' && this.selected) {
      this.opened(this.selected);
      return;
    }
    const step = KEYS[event.key];
    if (step === undefined || this.rows.length === 0) return;
    event.preventDefault();
    const many = this.rows.length;
    const found = this.selected === null ? -1 : this.rows.findLastIndex((row) => this.key(row) === this.key(this.selected));
    const now = found < 0 ? -1 : many - 1 - found;
    const at = Math.max(0, Math.min(many - 1, now + step));
    const { scrollTop, clientHeight } = this.element;
    if (at * ROW_PX < scrollTop) this.element.scrollTop = at * ROW_PX;
    else if ((at + 1) * ROW_PX > scrollTop + clientHeight) this.element.scrollTop = (at + 1) * ROW_PX - clientHeight;
    this.select(this.rows[many - 1 - at]);
  }
}
