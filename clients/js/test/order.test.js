// In which order rows and events are told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Seqtide } from '../src/index.js';
import { row, serve, take, until } from './server.js';

const event = (name, seq) => ({ sub: '1', event: name, seq });

test('events are told in their places among the rows, and the end when all of them are taken', async (t) => {
  const said = [event('opened', 0), row('1', 1), event('snapshot-end', 1), row('1', 2), { ...event('end', 3), reason: 'done' }];
  const server = await serve(t, [({ open, send }) => (open(), send(...said))]);
  const told = [];
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const subscription = seqtide.follow('db', {
    since: 0,
    onRow: async ({ seq }, { token }) => {
      // All of it has come by now.
      await setImmediate();
      told.push(`${seq} behind ${token}`);
    },
    onEvent: ({ event }, { token }) => told.push(`${event} behind ${token}`),
    onState: (state) => state === 'ended' && told.push(state),
  });
  await until('it has ended', () => subscription.state === 'ended');
  assert.deepEqual(told, ['opened behind 0', '1 behind 0', 'snapshot-end behind 1', '2 behind 1', 'end behind 2', 'ended']);
  assert.equal(subscription.token, 3, 'where the feed ended');
  await until('the connection is gone', () => server.open === 0);
});

test('that the connection is lost is told at once, whatever waits to be taken', async (t) => {
  const server = await serve(t, [
    ({ open, answer, send }) => (open({ retry: 60_000 }), send(row('1', 1), event('caught-up', 1)), answer.end()),
  ]);
  const told = [];
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const subscription = seqtide.follow('db', { since: 0, onEvent: ({ event }) => told.push(event) });
  await until('it is lost', () => subscription.state === 'connecting' && told.length > 0);
  assert.deepEqual(told, ['connecting']);
  for await (const { seq } of subscription) {
    assert.equal(seq, 1);
    // It is taken when the next one is asked for.
    setImmediate().then(() => subscription.close());
  }
  assert.deepEqual(told, ['connecting', 'caught-up']);
});

test('behind a row that nobody takes events do not pile up', async (t) => {
  const changing = Array.from({ length: 5000 }, (_, at) => event(at % 2 ? 'live' : 'lagging', 1));
  const server = await serve(t, [({ open, send }) => (open(), send(row('1', 1), ...changing, event('caught-up', 1), row('1', 2), row('2', 7)))]);
  const told = [];
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const subscription = seqtide.follow('one', { since: 0, onEvent: ({ event }) => told.push(event) });
  assert.deepEqual(await take(seqtide.follow('two', { since: 0 }), 1), [7]);
  assert.deepEqual(await take(subscription, 2), [1, 2]);
  assert.deepEqual(told, ['lagging', 'live', 'caught-up'], 'the last of each kind');
});

test('one that has had all it wanted keeps nobody from reading on, and closing everything ends it', async (t) => {
  const rows = Array.from({ length: 1000 }, (_, at) => row('1', at + 1));
  const server = await serve(t, [({ open, send }) => (open(), send(...rows, row('2', 7)))]);
  const seqtide = new Seqtide(server.url);
  const taken = [];
  const one = seqtide.follow('one', { since: 0, limit: 1000 });
  assert.deepEqual(await take(seqtide.follow('two', { since: 0 }), 1), [7]);
  for await (const { seq } of one) {
    taken.push(seq);
    if (seq === 3) seqtide.close();
  }
  assert.deepEqual([taken, one.state], [[1, 2, 3], 'ended']);
});
