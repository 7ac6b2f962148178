// Who waits for whom.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Turns } from '../src/turns.js';

/** Work that has begun is in `begun`, and `end` ends one. */
function watched() {
  const [turns, begun, ends] = [new Turns(), [], new Map()];
  const take = (name, what) => turns.take(name, () => (begun.push(what), new Promise((resolve) => ends.set(what, resolve))));
  const end = async (what) => (ends.get(what)(), await setImmediate());
  return { begun, take, end };
}

test('what has one name is done one after the other, and nobody else waits for it', async () => {
  const { begun, take, end } = watched();
  for (const what of ['a1', 'a2', 'a3', 'b1']) take(what[0], what);
  assert.deepEqual(begun, ['a1', 'b1']);
  await end('a1');
  await end('a2');
  assert.deepEqual(begun, ['a1', 'b1', 'a2', 'a3']);
});

test('there are four together, and the next one begins when one of them ends', async () => {
  const { begun, take, end } = watched();
  for (const what of ['a', 'b', 'c', 'd', 'e', 'f']) take(what, what);
  assert.deepEqual(begun, ['a', 'b', 'c', 'd']);
  await end('c');
  assert.deepEqual(begun, ['a', 'b', 'c', 'd', 'e']);
});
