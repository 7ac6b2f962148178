/** The first wait behind an attempt that failed, and the longest, in milliseconds. */
const FIRST = 1000;
const LONGEST = 30_000;

/** A time and a random part of it, so that many clients do not come back at once. */
export const spread = (milliseconds, random = Math.random) => milliseconds * (1 + random());

/**
 * How long to wait before the next attempt, after so many that failed one after the other: twice as long with each, and never
 * less than the server `asked` for. What it asked for is not doubled: a server that stops names a time in which it is back.
 */
export function backoff(failures, asked, random = Math.random) {
  // Where a connection was lost the server has chosen for each client when it comes back.
  if (failures === 0 && asked > 0) return asked;
  return Math.max(asked, spread(Math.min(LONGEST, FIRST * 2 ** Math.max(0, failures - 1)), random));
}

/** The shortest silence that says something, in milliseconds: on its way an answer takes longer than what a server needs for it. */
const PATIENCE_MIN = 1000;

/** How long nothing may be heard of a server that says so often that it is there: two of its heartbeats. */
export const patience = (heartbeat) => Math.max(PATIENCE_MIN, 2 * heartbeat);

/** A timer that is asked for more than this, in milliseconds, goes off at once. */
const TIMER_MAX = 2 ** 31 - 1;

/** How many milliseconds a server says, where that is a time; else so many. */
export function millis(said, otherwise) {
  return Number.isFinite(said) && said > 0 ? said : otherwise;
}

/** Waits, unless `signal` says that it is not worth it any more. */
export function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const timer = setTimeout(done, Math.min(milliseconds, TIMER_MAX));
    function done() {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    }
    signal.addEventListener('abort', done);
  });
}

/** Calls `late` once nothing was heard for so long. */
export class Watchdog {
  #late;
  #timer;

  constructor(late) {
    this.#late = late;
  }

  heard(patience) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#late, Math.min(patience, TIMER_MAX));
  }

  stop() {
    clearTimeout(this.#timer);
  }
}
