// The client against a server that misbehaves as it is told to.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { test } from 'node:test';
import { Seqtide, SeqtideError } from '../src/index.js';

/**
 * A server whose connections are told what to do by `script`, one function for each; what they were asked for is in
 * `asked`, what came by `/_feed/{connection}` in `changes`.
 */
async function serve(t, script, change = () => [200, { ok: true }]) {
  const told = { asked: [], changes: [], at: [] };
  const server = createServer(async (request, answer) => {
    let body = '';
    for await (const piece of request) body += piece;
    if (request.url === '/_feed/many') {
      told.asked.push(JSON.parse(body));
      told.at.push(Date.now());
      const part = script[Math.min(told.asked.length, script.length) - 1];
      const send = (...items) => answer.write(`data: ${JSON.stringify(items)}\nid: x\n\n`);
      const { heartbeat } = told.asked.at(-1);
      part({ answer, send, open: (beats = heartbeat) => open(answer, send, told.asked.length, beats) });
    } else {
      told.changes.push(JSON.parse(body));
      const [status, said] = change(told.changes.length);
      answer.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(said));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  told.url = `http://127.0.0.1:${server.address().port}`;
  return told;
}

function open(answer, send, number, heartbeat) {
  answer.writeHead(200, { 'Content-Type': 'text/event-stream' });
  send({ event: 'connection', id: `c-${number}`, heartbeat });
}

const row = (sub, seq) => ({ sub, seq, id: `d-${seq}`, changes: [] });

async function take(subscription, count) {
  const rows = [];
  for await (const { seq } of subscription) {
    rows.push(seq);
    if (rows.length === count) return rows;
  }
  return rows;
}

test('a lost connection goes on behind the last row, no sooner than the server asks for', async (t) => {
  const server = await serve(t, [
    ({ open, answer, send }) => {
      open();
      answer.write('retry: 300\n\n');
      send({ sub: '1', event: 'subscribed', seq: 3 }, row('1', 4), row('1', 5));
      answer.end();
    },
    ({ answer }) => answer.destroy(),
    ({ open, send }) => (open(), send({ sub: '1', event: 'subscribed', seq: 5 }, row('1', 6))),
  ]);
  const seqtide = new Seqtide(server.url);
  assert.deepEqual(await take(seqtide.follow('db'), 3), [4, 5, 6]);
  assert.deepEqual(server.asked.map(({ subscriptions: [{ since }] }) => since), ['now', 5, 5]);
  assert.ok(server.at[1] - server.at[0] >= 300, 'as the server asked');
  assert.ok(server.at[2] - server.at[1] >= 600, 'and longer after a failure');
});

test('silence ends a connection, and everybody is told', async (t) => {
  const states = [];
  const server = await serve(t, [
    ({ open, send }) => (open(), send({ sub: '1', event: 'caught-up', seq: 1 })),
    ({ open, send }) => (open(), send(row('1', 2))),
  ]);
  const seqtide = new Seqtide(server.url, { heartbeat: 100 });
  const rows = await take(seqtide.follow('db', { onState: (state) => states.push(state) }), 1);
  assert.deepEqual(rows, [2]);
  assert.equal(server.asked[0].heartbeat, 100);
  assert.deepEqual(states.slice(0, 3), ['live', 'silent', 'connecting']);
});

test('silence is two of the heartbeats that the server says it gives', async (t) => {
  const server = await serve(t, [({ open }) => open(50), ({ open, send }) => (open(), send(row('1', 2)))]);
  const seqtide = new Seqtide(server.url, { heartbeat: 60_000 });
  assert.deepEqual(await take(seqtide.follow('db'), 1), [2]);
  assert.equal(server.asked.length, 2);
  seqtide.close();
});

test('a server that is about to stop is so when everything was given, too', async (t) => {
  const states = [];
  const said = ['opened', 'draining', 'caught-up'].map((event) => ({ sub: '1', event, seq: 1 }));
  const server = await serve(t, [({ open, send }) => (open(), send(...said, row('1', 2)))]);
  const seqtide = new Seqtide(server.url);
  await take(seqtide.follow('db', { onState: (state) => states.push(state) }), 1);
  assert.deepEqual(states.slice(0, 2), ['catching-up', 'draining']);
  assert.ok(!states.includes('live'), states);
  seqtide.close();
});

test('subscriptions share a connection, and one comes and goes alone', async (t) => {
  const server = await serve(t, [({ open, send }) => (open(), send(row('1', 1), row('2', 9)))]);
  const seqtide = new Seqtide(server.url);
  const [one, two] = [seqtide.follow('a', { since: 0 }), seqtide.follow('b', { since: 0, prefix: 'x' })];
  const both = two[Symbol.asyncIterator]();
  assert.equal((await both.next()).value.seq, 9);
  assert.deepEqual(await take(one, 1), [1]);
  const three = seqtide.follow('c', { limit: 5 });
  three.close();
  assert.equal(server.asked.length, 1);
  assert.deepEqual(server.asked[0].subscriptions, [
    { since: 0, subscribe: '1', db: 'a' },
    { since: 0, prefix: 'x', subscribe: '2', db: 'b' },
  ]);
  while (server.changes.length < 3) await new Promise((resolve) => setTimeout(resolve, 5));
  const third = { limit: 5, subscribe: '3', db: 'c', since: 'now' };
  assert.deepEqual(server.changes, [{ unsubscribe: '1' }, third, { unsubscribe: '3' }]);
  seqtide.close();
});

test('what the server refuses is thrown, and others go on', async (t) => {
  const server = await serve(
    t,
    [({ open, send }) => (open(), send({ sub: '1', event: 'refused', error: 'not_found', reason: 'no' }, row('2', 1)))],
    () => [400, { error: 'bad_request', reason: 'never' }],
  );
  const seqtide = new Seqtide(server.url);
  const [one, two] = [seqtide.follow('a'), seqtide.follow('b')];
  await assert.rejects(take(one, 1), (error) => error instanceof SeqtideError && error.error === 'not_found');
  const three = seqtide.follow('c');
  await assert.rejects(take(three, 1), (error) => error.error === 'bad_request' && error.status === 400);
  assert.deepEqual(await take(two, 1), [1]);
});

test('a server without room is asked again', async (t) => {
  const server = await serve(t, [
    ({ answer }) => answer.writeHead(503, { 'Retry-After': '1' }).end('{"error":"service unavailable"}'),
    ({ open, send }) => (open(), send({ sub: '1', event: 'refused', error: 'service unavailable', reason: 'full' })),
  ]);
  const seqtide = new Seqtide(server.url);
  seqtide.follow('a');
  while (server.changes.length < 1) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(server.changes[0].subscribe, '1');
  assert.ok(server.at[1] - server.at[0] >= 1000, 'as it said');
  seqtide.close();
});

test('the token is kept once a row is taken, and is where the next visit begins', async (t) => {
  const server = await serve(t, [
    ({ open, send }) => {
      open();
      send({ sub: '1', event: 'subscribed', seq: 0 }, row('1', 1), row('1', 2), { sub: '1', event: 'caught-up', seq: 2 });
      setTimeout(() => send({ event: 'heartbeat', seqs: { 1: 7 } }), 50);
    },
  ]);
  const kept = new Map();
  const storage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, token) => kept.set(key, token) };
  const seqtide = new Seqtide(server.url);
  const steps = [];
  const onRow = async (row) => {
    await null;
    steps.push([row.seq, kept.get('seqtide:db')]);
  };
  seqtide.follow('db', { storage, onRow });
  while (kept.get('seqtide:db') !== '7') await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(steps, [[1, '0'], [2, '1']], 'a row that is being taken is not behind us');
  seqtide.close();
  const again = new Seqtide(server.url);
  again.follow('db', { storage, since: 0 });
  while (server.asked.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(server.asked[1].subscriptions[0].since, '7');
  again.close();
});

test('who does not take rows is not read for', async (t) => {
  let written = 0;
  const server = await serve(t, [
    ({ open, answer, send }) => {
      open();
      const more = () => {
        while (written < 200_000 && send(...Array.from({ length: 100 }, () => row('1', (written += 1)))));
        if (written < 200_000) answer.once('drain', more);
      };
      more();
    },
  ]);
  const seqtide = new Seqtide(server.url);
  const subscription = seqtide.follow('db', { since: 0 });
  const rows = subscription[Symbol.asyncIterator]();
  assert.equal((await rows.next()).value.seq, 1);
  let before;
  do {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 200));
  } while (written !== before);
  assert.ok(written < 200_000, 'it waits for the reader');
  for (let expected = 2; expected <= 200_000; expected += 1) assert.equal((await rows.next()).value.seq, expected);
  seqtide.close();
});
