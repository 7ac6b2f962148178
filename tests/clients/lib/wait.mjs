// Waiting for a condition, never for a length of time; and an end for a script that does not end.

import { setTimeout as pause } from 'node:timers/promises';

/** Polls `condition` (it may be async) until it holds, and fails with `state()` after `seconds`. */
export async function until(what, condition, { seconds = 60, state = () => '' } = {}) {
  const end = Date.now() + seconds * 1000;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what} ${await state()}`);
    await pause(50);
  }
}

/** Ends the process with exit code 1 if it still runs after `seconds`, whatever keeps it. */
export function deadline(seconds) {
  setTimeout(() => {
    console.error(`this script did not end within ${seconds} s`);
    process.exit(1);
  }, seconds * 1000).unref();
}
