// A page whose connection has died without a word: a relay in between goes on taking bytes and passes none on. The page's
// own watch over the heartbeats, as docs/operations.md has it, notices within two of them and goes on where it was.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventSource } from 'eventsource';
import { relayed } from './lib/relay.mjs';
import { createDatabase, writeDocuments } from './lib/server.mjs';
import { deadline, until } from './lib/wait.mjs';

deadline(120);

// On a machine that has much else to do one comes late, by seconds.
const HEARTBEAT = 5000;

test('a page notices a connection that has died and goes on behind its last row', async (t) => {
  await createDatabase('half-open');
  const relay = await relayed();
  const ids = [];
  let opened = 0;

  let source, watch, last = 'now';
  function alive({ lastEventId }) {
    if (lastEventId) last = lastEventId;
    clearTimeout(watch);
    watch = setTimeout(open, 2 * HEARTBEAT);
  }
  function open() {
    source?.close();
    source = new EventSource(`${relay.url}/half-open/_feed?heartbeat=${HEARTBEAT}&since=${last}`);
    for (const name of ['opened', 'message', 'heartbeat', 'caught-up']) source.addEventListener(name, alive);
    alive({});
    opened += 1;
    source.addEventListener('message', ({ data }) => ids.push(JSON.parse(data).id));
  }
  open();
  t.after(() => {
    clearTimeout(watch);
    source.close();
    relay.close();
  });

  await until('the page follows', () => last !== 'now');
  await writeDocuments('half-open', [{ _id: 'a' }]);
  await until('a row comes', () => ids.length === 1);
  assert.equal(opened, 1, 'heartbeats keep a quiet connection');

  relay.freeze();
  await writeDocuments('half-open', [{ _id: 'b' }, { _id: 'c' }]);
  await until('what was missed comes over another connection', () => ids.length === 3);
  assert.deepEqual(ids, ['a', 'b', 'c'], 'every row once, in order');
  assert.equal(opened, 2, 'the page connected once more, by itself');
});
