// A loop over rows that is left ends its subscription, wherever it is left.

import assert from 'node:assert/strict';
import { PassThrough, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { test } from 'node:test';
import { Seqtide } from '../src/index.js';
import { row, serve, take, until } from './server.js';

/** A subscription that has one row, and waits for more, and whether it and its connection have ended. */
async function waiting(t) {
  const server = await serve(t, [({ open, send }) => (open(), send(row('1', 1)))]);
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const subscription = seqtide.follow('db', { since: 0 });
  return { subscription, isOver: () => subscription.state === 'ended' && server.open === 0 };
}

// It waited for the row that never came, and the subscription stayed.
test('who leaves while a row is waited for is done, and so is who waits for it', async (t) => {
  const { subscription, isOver } = await waiting(t);
  const rows = subscription[Symbol.asyncIterator]();
  assert.equal((await rows.next()).value.seq, 1);
  const next = [rows.next(), rows.next()];
  assert.deepEqual(await rows.return('left'), { value: 'left', done: true });
  assert.deepEqual(await Promise.all(next), Array(2).fill({ value: undefined, done: true }));
  await until('it is over', isOver);
  assert.deepEqual(await take(subscription), [], 'a loop over what was left has no rows');
});

test('who leaves before the first row has ended it, too', async (t) => {
  const { subscription, isOver } = await waiting(t);
  await subscription[Symbol.asyncIterator]().return();
  await until('it is over', isOver);
  assert.deepEqual(await take(subscription), []);
});

test('a loop goes on where another took its first rows from the same iterator', async (t) => {
  const server = await serve(t, [({ open, send }) => (open(), send(row('1', 1), row('1', 2)))]);
  const rows = new Seqtide(server.url).follow('db', { since: 0, limit: 2 })[Symbol.asyncIterator]();
  assert.equal((await rows.next()).value.seq, 1);
  assert.deepEqual(await take(rows), [2]);
});

for (const [when, read] of Object.entries({
  'is read from': (stream) => new Promise((resolve) => stream.once('data', resolve)),
  'nobody has read from': () => {},
})) {
  test(`a stream that ${when} ends its subscription as it is destroyed`, async (t) => {
    const { subscription, isOver } = await waiting(t);
    const stream = Readable.from(subscription);
    await read(stream);
    const closed = new Promise((resolve) => stream.once('close', resolve));
    stream.destroy();
    await closed;
    await until('it is over', isOver);
  });
}

test('a pipeline that is given up ends its subscription', async (t) => {
  const { subscription, isOver } = await waiting(t);
  const stop = new AbortController();
  const through = new PassThrough({ objectMode: true });
  const done = pipeline(Readable.from(subscription), through, { signal: stop.signal });
  through.once('data', () => stop.abort());
  await assert.rejects(done, { name: 'AbortError' });
  await until('it is over', isOver);
});
