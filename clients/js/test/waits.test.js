import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoff, millis, pause, Watchdog } from '../src/waits.js';

test('attempts wait longer each time, never less than was asked for, and not for ever', () => {
  assert.equal(backoff(0, 500, () => 0), 500);
  assert.equal(backoff(3, 500, () => 0), 4000);
  assert.equal(backoff(3, 500, () => 0.5), 6000);
  assert.equal(backoff(50, 500, () => 0), 30_000);
  assert.equal(backoff(0, 90_000, () => 0), 90_000, 'the server asked for more');
});

test('a wait that is no time, or longer than a timer can be, is no reason to ask at once', async () => {
  for (const retry of [0, -5, 'x', NaN, null, undefined]) assert.equal(millis(retry, 1000), 1000);
  const stop = new AbortController();
  const began = Date.now();
  setTimeout(() => stop.abort(), 50);
  await pause(1e15, stop.signal);
  assert.ok(Date.now() - began >= 45, 'it lasts until it is ended');
});

test('a pause ends early when it is not worth it any more', async () => {
  const stop = new AbortController();
  const paused = pause(3_600_000, stop.signal);
  stop.abort();
  await paused;
  await pause(3_600_000, stop.signal);
});

test('a watchdog that hears something is quiet', async () => {
  await new Promise((resolve, reject) => {
    const quiet = new Watchdog(() => reject(new Error('it was heard')));
    quiet.heard(1);
    quiet.heard(3_600_000);
    new Watchdog(() => {
      quiet.stop();
      resolve();
    }).heard(20);
  });
});
