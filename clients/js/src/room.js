/** Rows of a subscription that wait for whoever takes them; with more the connection is not read. */
const ROWS_MAX = 1000;

/** Counts the rows of a subscription that were not taken yet, and has whoever brings more wait while they are too many. */
export class Room {
  #untaken = 0;
  #isClosed = false;
  /** What all who wait wait for. */
  #waiting = null;
  #letIn = null;

  /** A row is there. */
  fill() {
    this.#untaken += 1;
  }

  /** A row was taken. */
  free() {
    this.#untaken -= 1;
    if (this.#untaken < ROWS_MAX / 2) this.#open();
  }

  /** Nothing comes any more: nobody waits. */
  close() {
    this.#isClosed = true;
    this.#open();
  }

  /** Waits until there is room for more rows; `undefined` when there is. */
  wait() {
    if (this.#untaken < ROWS_MAX || this.#isClosed) return undefined;
    this.#waiting ??= new Promise((resolve) => (this.#letIn = resolve));
    return this.#waiting;
  }

  #open() {
    this.#letIn?.();
    this.#waiting = this.#letIn = null;
  }
}
