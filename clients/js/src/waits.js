/** The longest wait before another attempt, in milliseconds. */
const LONGEST = 30_000;

/**
 * How long to wait before the next attempt, after so many that failed one after the other: never less than the server
 * asked for, twice as long with each, and spread, so that many clients do not come back at once.
 */
export function backoff(failures, retry, random = Math.random) {
  const wait = Math.min(Math.max(LONGEST, retry), retry * 2 ** failures);
  return wait * (1 + random());
}

/** A timer that is asked for more than this, in milliseconds, goes off at once. */
const TIMER_MAX = 2 ** 31 - 1;

/** How many milliseconds a server asks for, where that is a time; else so many. */
export function millis(retry, otherwise) {
  return Number.isFinite(retry) && retry > 0 ? retry : otherwise;
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
