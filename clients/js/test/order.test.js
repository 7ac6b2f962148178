// In which order rows and events are told.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { Seqtide } from '../src/index.js';
import { row, serve, until } from './server.js';

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
