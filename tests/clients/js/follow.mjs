// The JavaScript client in Node.js: several subscriptions over one connection, across a restart of the server and through
// a network that says nothing any more.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { test } from 'node:test';
import { Seqtide, SeqtideError } from '../../../clients/js/src/index.js';
import { assertRising, followAcrossRestart } from '../lib/follow.mjs';
import { languages } from '../lib/languages.mjs';
import { createDatabase, request, serverUrl, writeDocuments } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(300);

test('every subscription has each row once, across a restart of the server', async (t) => {
  await createDatabase('js-all');
  await createDatabase('js-other');
  const seqtide = new Seqtide(serverUrl, { heartbeat: 10_000 });
  t.after(() => seqtide.close());
  const [rows, some, other, states] = [[], [], [], []];
  const into = (list) => ({ since: 0, onRow: (row) => list.push(row) });
  const all = seqtide.follow('js-all', { ...into(rows), onState: (state) => states.push(state) });
  seqtide.follow('js-all', { ...into(some), prefix: 'b', include_docs: true });
  seqtide.follow('js-other', into(other));

  await writeDocuments('js-other', languages.slice(0, 20));
  await followAcrossRestart('js-all', rows);
  await writeDocuments('js-other', languages.slice(20, 40));
  await until('all of the other database', () => other.length === 40);
  assert.deepEqual(other.map(({ id }) => id), languages.slice(0, 40).map(({ _id }) => _id));
  const expected = rows.filter(({ id }) => id.startsWith('b')).map(({ seq }) => seq);
  await until('all with the prefix', () => some.length === expected.length);
  assert.deepEqual(some.map(({ seq }) => seq), expected);
  assert.ok(some.every(({ id, doc }) => doc._id === id));
  assert.deepEqual(Object.keys(rows[0]), ['seq', 'id', 'changes'], 'a row is what a feed gives');

  await until('live again', () => all.state === 'live');
  assert.deepEqual(states.filter((state) => state === 'live').length, 2, states.join(' '));
  assert.ok(states.includes('connecting'), states.join(' '));
  assert.equal(all.token, rows.at(-1).seq);
});

/** Passes bytes on until it is frozen: what was connected then stays connected, and hears nothing more. */
async function relay(t) {
  const { hostname, port } = new URL(serverUrl);
  const through = new Set();
  const relay = createServer((client) => {
    const server = connect(Number(port), hostname);
    through.add(server);
    client.pipe(server);
    server.pipe(client);
    for (const [one, other] of [[client, server], [server, client]]) {
      one.on('error', () => other.destroy());
      one.on('close', () => other.destroy());
    }
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  t.after(() => (through.forEach((socket) => socket.destroy()), relay.close()));
  const freeze = () => through.forEach((socket) => (socket.unpipe(), socket.pause()));
  return { url: `http://127.0.0.1:${relay.address().port}`, freeze };
}

test('a connection that has fallen silent is made anew, and nothing is lost', async (t) => {
  await createDatabase('js-silent');
  const { url, freeze } = await relay(t);
  const seqtide = new Seqtide(url, { heartbeat: 500 });
  t.after(() => seqtide.close());
  const [rows, states] = [[], []];
  seqtide.follow('js-silent', { since: 0, onRow: (row) => rows.push(row), onState: (state) => states.push(state) });
  await writeDocuments('js-silent', languages.slice(0, 10));
  await until('what comes before', () => rows.length === 10);
  freeze();
  await writeDocuments('js-silent', languages.slice(10, 20));
  await until('what comes after', () => rows.length === 20);
  assertRising(rows.map(({ seq }) => seq));
  assert.ok(states.includes('silent'), states.join(' '));
});

test('a subscription comes and goes while others follow, and ends with its database', async (t) => {
  for (const name of ['js-one', 'js-two']) await createDatabase(name);
  const seqtide = new Seqtide(serverUrl, { heartbeat: 10_000 });
  t.after(() => seqtide.close());
  const one = seqtide.follow('js-one', { onRow: () => {} });
  await until('the first is live', () => one.state === 'live');
  await writeDocuments('js-two', [{ _id: 'a' }, { _id: 'b' }]);
  const ids = [];
  for await (const { id } of seqtide.follow('js-two', { since: 0 })) {
    ids.push(id);
    if (id === 'b') break;
  }
  assert.deepEqual(ids, ['a', 'b']);
  assert.equal(one.state, 'live', 'the same connection');

  const gone = seqtide.follow('js-two', { since: 0, limit: 1 });
  for await (const { id } of gone) assert.equal(id, 'a');
  assert.equal(gone.state, 'ended');

  const deleted = seqtide.follow('js-two');
  await until('it is live', () => deleted.state === 'live');
  await request('DELETE', 'js-two');
  const wrong = (word) => (error) => error instanceof SeqtideError && error.error === word;
  await assert.rejects(async () => { for await (const _ of deleted); }, wrong('deleted'));
  await assert.rejects(async () => { for await (const _ of seqtide.follow('js-two')); }, wrong('not_found'));
  await assert.rejects(async () => { for await (const _ of seqtide.follow('js-one', { sinc: 0 })); }, wrong('bad_request'));
  assert.equal(one.state, 'live');
});

// What the server has against one refused the whole connection, and with it all the others; those that were too many ended.
test('of many that are asked for at once those end that the server refuses, and those wait that are too many', async (t) => {
  await createDatabase('js-many');
  const seqtide = new Seqtide(serverUrl, { heartbeat: 10_000 });
  t.after(() => seqtide.close());
  const refused = [];
  const onEvent = ({ event, error, reason }) => ['refused', 'connecting'].includes(event) && refused.push([error, reason]);
  const follow = (options) => seqtide.follow('js-many', { since: 0, onEvent, ...options });
  const wrong = follow({ sinc: 0 });
  const many = Array.from({ length: 203 }, (_, index) => follow({ prefix: `${index}-` }));
  const live = () => many.filter(({ state }) => state === 'live').length;
  const state = () => `${live()} live, ${refused.length} refused`;
  await until('all are decided', () => live() === 200 && refused.length >= 4, { state });
  assert.equal(wrong.state, 'ended');
  const [[error, reason], ...full] = refused;
  assert.equal(error, 'bad_request');
  assert.match(reason, /sinc/);
  for (const each of full) assert.deepEqual(each, ['too_many_subscriptions', 'a connection has at most 200 subscriptions']);
  const gone = many.filter(({ state }) => state === 'live').slice(0, 3);
  gone.forEach((subscription) => subscription.close());
  await until('the others have their places', () => live() === 200, { state });
});

// Over Server-Sent Events the id of each message has whatever was asked for later, and was full after a few of these.
test('what is followed later may be long, and is followed again by the next connection', async (t) => {
  await createDatabase('js-long');
  const { url, freeze } = await relay(t);
  const seqtide = new Seqtide(url, { heartbeat: 1000 });
  t.after(() => seqtide.close());
  const first = seqtide.follow('js-long', { since: 0 });
  await until('the first is live', () => first.state === 'live');
  const rows = [];
  const lists = Array.from({ length: 20 }, () => Array.from({ length: 100 }, () => crypto.randomUUID()));
  const long = lists.map((doc_ids, index) => seqtide.follow('js-long', { since: 0, doc_ids, onRow: ({ id }) => rows.push([index, id]) }));
  await until('all are live', () => long.every(({ state }) => state === 'live'), { state: () => long.map(({ state }) => state) });
  freeze();
  await writeDocuments('js-long', lists.map(([_id]) => ({ _id })));
  await until('the next connection gives each its own', () => rows.length === lists.length);
  assert.deepEqual(rows.sort(([one], [other]) => one - other), lists.map(([id], index) => [index, id]));
});
