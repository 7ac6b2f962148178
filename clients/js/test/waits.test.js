import assert from 'node:assert/strict';
import { test } from 'node:test';
import { backoff, millis, patience, pause, Watchdog } from '../src/waits.js';

test('attempts that fail wait longer each time, never less than was asked for, and not for ever', () => {
  assert.equal(backoff(1, 0, () => 0), 1000);
  assert.equal(backoff(4, 0, () => 0), 8000);
  assert.equal(backoff(4, 0, () => 0.5), 12_000);
  assert.equal(backoff(50, 0, () => 0), 30_000);
  assert.equal(backoff(4, 9000, () => 0), 9000, 'the server asked for more');
  assert.equal(backoff(4, 90_000, () => 0.5), 90_000, 'and for more than the longest');
});

test('who has lost a connection comes back when the server has told it to', () => {
  assert.equal(backoff(0, 300, () => 0.5), 300);
  assert.equal(backoff(0, 0, () => 0.5), 1500, 'it has not told when');
});

test('silence is two heartbeats, and no less than a second', () => {
  assert.deepEqual([1, 500, 501, 30_000].map(patience), [1000, 1000, 1002, 60_000]);
});

test('a wait that is no time, or longer than a timer can be, is no reason to ask at once', async () => {
  for (const said of [0, -5, 'x', NaN, null, undefined]) assert.equal(millis(said, 1000), 1000);
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
