// The rows of a feed as they come, newest last: a bounded number of them, and while the page is paused those that wait.

/** Rows kept, and rows that wait; older ones are let go, the feed itself has them still. */
export const ROWS_MAX = 10_000;

export class Log {
  constructor() {
    this.clear();
  }

  clear() {
    Object.assign(this, { rows: [], held: [], paused: false, dropped: 0 });
  }

  /** Takes a row. Says whether there is room for more: a full waiting room ends the feed until the page goes on. */
  add(row) {
    if (this.paused) {
      this.held.push(row);
      return this.held.length < ROWS_MAX;
    }
    this.rows.push(row);
    // In larger pieces, so that a full log does not move with each row.
    if (this.rows.length > ROWS_MAX * 1.1) this.trim();
    return true;
  }

  pause() {
    this.paused = true;
  }

  /** Goes on with what has waited. */
  resume() {
    this.paused = false;
    this.rows.push(...this.held);
    this.held = [];
    this.trim();
  }

  trim() {
    const over = Math.max(0, this.rows.length - ROWS_MAX);
    this.rows.splice(0, over);
    this.dropped += over;
  }
}
