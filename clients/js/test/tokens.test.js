// Where a subscription goes on at the next visit.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide, SeqtideError } from '../src/index.js';
import { row, serve, storageOf, until } from './server.js';

const quiet = ({ open }) => open();

test('the token is kept once a row is taken, and is where the next visit begins', async (t) => {
  const server = await serve(t, [
    ({ open, send }) => {
      open();
      send({ sub: '1', event: 'subscribed', seq: 0 }, row('1', 1), row('1', 2), { sub: '1', event: 'caught-up', seq: 2 });
      setTimeout(() => send({ event: 'heartbeat', seqs: { 1: 7 } }), 50);
    },
  ]);
  const storage = storageOf();
  const key = `seqtide:${server.url}/db`;
  const seqtide = new Seqtide(server.url);
  const steps = [];
  const onRow = async (row) => {
    await null;
    steps.push([row.seq, storage.kept.get(key)]);
  };
  seqtide.follow('db', { storage, onRow });
  await until('the heartbeat', () => storage.kept.get(key) === '7');
  assert.deepEqual(steps, [[1, '0'], [2, '1']], 'a row that is being taken is not behind us');
  seqtide.close();
  const again = new Seqtide(`${server.url}/`);
  again.follow('db', { storage, since: 0 });
  await until('the next visit', () => server.asked.length === 2);
  assert.equal(server.asked[1].subscriptions[0].since, '7');
  again.close();
});

// All of a database had one key: the next visit of each began where the other was.
test('another server, database or choice of rows has a token of its own', async (t) => {
  const placed = ({ open, send, subscriptions }) => {
    open();
    send(...subscriptions.map(({ subscribe: sub }) => ({ sub, event: 'subscribed', seq: Number(sub) })));
  };
  const servers = [await serve(t, [placed]), await serve(t, [placed])];
  const storage = storageOf();
  const choices = [
    {}, { prefix: 'a' }, { prefix: 'b' }, { selector: { total: 1 } }, { doc_ids: ['a'] }, { conflicts_only: true },
    { filter: 'app/mine', query: { owner: 'ann' } }, { filter: 'app/mine', query: { owner: 'bob' } }, { view: 'app/all' },
    { leave: true }, { style: 'all_docs' },
  ];
  const all = servers.map(({ url }) => new Seqtide(url));
  t.after(() => all.forEach((seqtide) => seqtide.close()));
  for (const seqtide of all) {
    for (const db of ['one', 'two', 'one/two']) for (const choice of choices) seqtide.follow(db, { storage, ...choice });
  }
  const followed = 2 * 3 * choices.length;
  await until('each has a place of its own', () => storage.kept.size === followed, () => storage.kept.size);
});

test('what says where rows begin or what is in them is none of the key, nor is the order of options', async (t) => {
  const server = await serve(t, [quiet]);
  const key = `seqtide:${server.url}/db {"leave":true,"prefix":"a"}`;
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  for (const options of [
    { prefix: 'a', leave: true, style: undefined },
    { since: 0, until: 99, live: true, limit: 5, snapshot: true, on_rewind: 'error', include_docs: true, conflicts: true, leave: true, prefix: 'a' },
  ]) {
    const subscription = seqtide.follow('db', { storage: storageOf(new Map([[key, '41']])), ...options });
    assert.equal(subscription.token, '41');
  }
});

// The slower of the two skipped what the faster had taken.
test('two subscriptions never keep their tokens under one key', async (t) => {
  const server = await serve(t, [quiet]);
  const storage = storageOf();
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const first = seqtide.follow('db', { storage, since: 0 });
  const inUse = (error) => error instanceof SeqtideError && error.error === 'key_in_use' && error.message.includes(server.url);
  assert.throws(() => seqtide.follow('db', { storage, since: 5 }), inUse);
  assert.throws(() => new Seqtide(server.url).follow('db', { storage }), inUse);
  seqtide.follow('db', { storage, key: 'mine' });
  assert.throws(() => seqtide.follow('other', { storage, key: 'mine' }), (error) => error.error === 'key_in_use');
  seqtide.follow('db', { storage: storageOf() });
  seqtide.follow('db', { since: 0 });
  first.close();
  seqtide.follow('db', { storage, since: 0 });
});

test('who closes a subscription is given no more rows, and nothing more is kept of it', async (t) => {
  const server = await serve(t, [({ open, send }) => (open(), send(row('1', 1), row('1', 2), row('1', 3)))]);
  const storage = storageOf();
  const rows = [];
  const subscription = new Seqtide(server.url).follow('db', {
    storage,
    key: 'k',
    onRow: async ({ seq }) => {
      rows.push(seq);
      if (seq === 2) subscription.close();
      await new Promise(setImmediate);
    },
  });
  await until('it has ended, and the connection with it', () => subscription.state === 'ended' && server.open === 0);
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  assert.deepEqual([rows, storage.kept.get('k')], [[1, 2], '1']);
});
