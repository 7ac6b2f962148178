// The rows of a feed as they come, newest last: a bounded number of them, and while the page is paused those that wait.

/** Rows kept, and rows that wait; older ones are let go, the feed itself has them still. */
export const ROWS_MAX = 10_000;
/** Characters of the rows kept, and of those that wait. The newest row is kept however long it is. */
export const CHARACTERS_MAX = 32 << 20;

/** Let go in larger pieces, so that a full log does not move with each row. */
const SLACK = 1.1;

export class Log {
  constructor() {
    this.clear();
  }

  clear() {
    Object.assign(this, { rows: [], characters: 0, held: [], heldCharacters: 0, paused: false, dropped: 0 });
  }

  /** Takes a row, which has its `text`. Says whether there is room for more: a full waiting room ends the feed until the page goes on. */
  add(row) {
    if (this.paused) {
      this.held.push(row);
      this.heldCharacters += row.text.length;
      return this.held.length < ROWS_MAX && this.heldCharacters < CHARACTERS_MAX;
    }
    this.rows.push(row);
    this.characters += row.text.length;
    if (this.rows.length > ROWS_MAX * SLACK || this.characters > CHARACTERS_MAX * SLACK) this.trim();
    return true;
  }

  pause() {
    this.paused = true;
  }

  /** Goes on with what has waited. */
  resume() {
    this.paused = false;
    this.rows.push(...this.held);
    this.characters += this.heldCharacters;
    Object.assign(this, { held: [], heldCharacters: 0 });
    this.trim();
  }

  trim() {
    let over = 0;
    const isTooMuch = () => this.rows.length - over > ROWS_MAX || this.characters > CHARACTERS_MAX;
    for (; isTooMuch() && over < this.rows.length - 1; over += 1) this.characters -= this.rows[over].text.length;
    this.rows.splice(0, over);
    this.dropped += over;
  }
}
