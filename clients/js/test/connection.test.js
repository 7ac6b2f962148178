// How a connection comes, is lost, comes back and goes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide } from '../src/index.js';
import { row, run, serve, take, until } from './server.js';

test('a lost connection goes on behind the last row, no sooner than the server asks for', async (t) => {
  const server = await serve(t, [
    ({ open, answer, send }) => {
      open({ retry: 300 });
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
  assert.ok(server.at[2] - server.at[1] >= 1000, 'and longer after a failure');
});

// What it was told before the end was doubled with each attempt: a server that was away for 12 s was missed for 31 s.
test('who was told to wait for long waits for that once, and then no longer than after any failure', async (t) => {
  const server = await serve(t, [
    ({ open, answer, send }) => (open({ retry: 10 }), send({ sub: '1', event: 'draining', seq: 1, retry: 3000 }), answer.end()),
    ({ answer }) => answer.destroy(),
    ({ open, send }) => (open(), send(row('1', 2))),
  ]);
  assert.deepEqual(await take(new Seqtide(server.url).follow('db'), 1), [2]);
  const [first, second] = [server.at[1] - server.at[0], server.at[2] - server.at[1]];
  assert.ok(first >= 3000, `as the server asked: ${first}`);
  assert.ok(second < 3000, `a second, and a random part of one: ${second}`);
});

test('silence ends a connection, and everybody is told', async (t) => {
  const states = [];
  const server = await serve(t, [
    ({ open, send }) => (open({ retry: 10 }), send({ sub: '1', event: 'caught-up', seq: 1 })),
    ({ open, send }) => (open(), send(row('1', 2))),
  ]);
  const seqtide = new Seqtide(server.url, { heartbeat: 1000 });
  const rows = await take(seqtide.follow('db', { onState: (state) => states.push(state) }), 1);
  assert.deepEqual(rows, [2]);
  assert.equal(server.asked[0].heartbeat, 1000);
  assert.deepEqual(states.slice(0, 3), ['live', 'silent', 'connecting']);
});

test('silence is two of the heartbeats that the server says it gives', async (t) => {
  const server = await serve(t, [
    ({ open }) => open({ heartbeat: 50, retry: 10 }),
    ({ open, send }) => (open(), send(row('1', 2))),
  ]);
  const seqtide = new Seqtide(server.url, { heartbeat: 60_000 });
  assert.deepEqual(await take(seqtide.follow('db'), 1), [2]);
  assert.equal(server.asked.length, 2);
  seqtide.close();
});

// All were asked for together over and over, and none of them was ever opened.
test('what takes a server too long to open together is opened one by one', async (t) => {
  const told = [];
  let send;
  const script = ({ open, subscriptions, ...more }) => subscriptions.length === 0 && (({ send } = more), open({ heartbeat: 60_000 }));
  const give = ({ subscribe: sub, since }) => (send({ sub, event: 'subscribed', seq: since }, row(sub, 7)), [200, [{ ok: true, sub, seq: since }]]);
  const server = await serve(t, [script], give);
  const seqtide = new Seqtide(server.url, { heartbeat: 1000 });
  t.after(() => seqtide.close());
  const onEvent = ({ event, error }) => event === 'connecting' && told.push(error);
  const all = ['a', 'b', 'c'].map((db) => take(seqtide.follow(db, { since: 0, onEvent }), 1));
  assert.deepEqual(await Promise.all(all), [[7], [7], [7]]);
  assert.deepEqual(told, ['silent', 'silent', 'silent']);
  assert.deepEqual(server.asked.map(({ subscriptions }) => subscriptions.length), [3, 0]);
});

// It cost the connection, and with that the rows of all others.
test('one that takes the server too long to open keeps no other from being opened, and is asked for again', async (t) => {
  const told = [];
  let send;
  const script = ({ open, ...more }) => (({ send } = more), open({ heartbeat: 500 }), setInterval(() => send({ event: 'heartbeat', seqs: {} }), 50).unref());
  const give = ({ subscribe: sub, since }) => (send({ sub, event: 'subscribed', seq: since }, row(sub, 7)), [200, [{ ok: true, sub, seq: since }]]);
  const slow = ({ db }) => db === 'slow' && told.length === 0;
  const server = await serve(t, [script], (asked) => (asked.subscribe && !slow(asked) ? give(asked) : undefined));
  const seqtide = new Seqtide(server.url, { heartbeat: 500 });
  t.after(() => seqtide.close());
  const stays = seqtide.follow('stays');
  await until('the connection', () => server.open === 1);
  const late = seqtide.follow('slow', { since: 0, onEvent: ({ event, error }) => event === 'connecting' && told.push(error) });
  const healthy = seqtide.follow('healthy', { since: 0, onRow: () => {} });
  assert.deepEqual(await take(late, 1), [7]);
  assert.deepEqual(told, ['silent']);
  assert.deepEqual([healthy.token, stays.state, server.asked.length], [7, 'connecting', 1]);
});

// They waited for it, for as long as a change may take.
test('what takes the server long to open holds up nobody else who comes or goes', async (t) => {
  let send;
  const give = ({ subscribe: sub }) => (send({ sub, event: 'subscribed', seq: 0 }, row(sub, 7)), [200, [{ ok: true, sub, seq: 0 }]]);
  const server = await serve(
    t,
    [({ open, ...more }) => (({ send } = more), open())],
    ({ db, unsubscribe, ...change }) => (unsubscribe ? [200, [{ ok: true }]] : db === 'slow' ? undefined : give(change)),
  );
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const stays = seqtide.follow('stays');
  await until('the connection', () => server.open === 1);
  seqtide.follow('slow', { since: 0 });
  assert.deepEqual(await take(seqtide.follow('fast', { since: 0 }), 1), [7]);
  stays.close();
  await until('both are given up', () => server.changes.filter(({ unsubscribe }) => unsubscribe).length === 2);
});

// It was `connecting` from then on, though its rows came.
test('one whose rows are here while the answer to its change is late is as it was asked for', async (t) => {
  let beats, send, isGivenUp;
  t.after(() => clearInterval(beats));
  const server = await serve(
    t,
    [({ open, ...more }) => (({ send } = more), open(), (beats = setInterval(() => send({ event: 'heartbeat', seqs: {} }), 100)))],
    ({ subscribe: sub }, answer) => {
      answer.on('close', () => (isGivenUp = true));
      send({ sub, event: 'subscribed', seq: 0 }, row(sub, 1));
    },
  );
  const seqtide = new Seqtide(server.url, { heartbeat: 500 });
  t.after(() => seqtide.close());
  seqtide.follow('a');
  await until('the connection', () => server.open === 1);
  const told = [];
  const late = seqtide.follow('b', { since: 0, onRow: () => {}, onEvent: ({ event }) => told.push(event) });
  await until('its answer is given up', () => isGivenUp);
  assert.deepEqual([late.token, late.state, told], [1, 'catching-up', ['subscribed']]);
});

test('an address behind a redirect that keeps the POST is followed', async (t) => {
  const script = ({ open, send, subscriptions: [{ subscribe, since }] }) => (open(), send(row(subscribe, since + 1)));
  const server = await serve(t, [script], (change) => [200, change === undefined ? [] : [{ ok: true }]]);
  for (const status of [307, 308]) {
    const seqtide = new Seqtide(`${server.url}/moved/${status}`);
    assert.deepEqual(await take(seqtide.follow('db', { since: 0 }), 1), [1]);
    seqtide.close();
  }
});

// It was called as a method of the settings, which a browser's own does not bear.
test('a `fetch` is called free of what it was given in', async (t) => {
  const server = await serve(t, [({ open, send }) => (open(), send(row('1', 1)))]);
  const own = function (...asked) {
    if (this !== undefined && this !== globalThis) throw new TypeError('Illegal invocation');
    return fetch(...asked);
  };
  assert.deepEqual(await take(new Seqtide(server.url, { fetch: own }).follow('db', { since: 0 }), 1), [1]);
});

// It had two milliseconds for its answer, and never got one.
test('with the shortest heartbeat, too, a server has a second for its answer', async (t) => {
  let connects;
  const asked = new Promise((resolve) => (connects = resolve));
  const server = await serve(t, [({ open, send }) => connects(() => (open(), send(row('1', 1))))]);
  const taken = take(new Seqtide(server.url, { heartbeat: 1 }).follow('db', { since: 0 }), 1);
  setTimeout(await asked, 100);
  assert.deepEqual([await taken, server.asked.length], [[1], 1]);
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

test('of those that drain the one that asks for the longest wait gets it, and the next connection forgets it', async (t) => {
  const draining = (sub, retry) => ({ sub, event: 'draining', seq: 1, retry });
  const server = await serve(t, [
    ({ open, answer, send }) => (open({ retry: 10 }), send(draining('1', 700), draining('2', 300)), answer.end()),
    ({ open, answer }) => (open({ retry: 10 }), answer.end()),
    ({ open, send }) => (open(), send(row('1', 2))),
  ]);
  const seqtide = new Seqtide(server.url);
  const one = seqtide.follow('a');
  seqtide.follow('b');
  assert.deepEqual(await take(one, 1), [2]);
  assert.ok(server.at[1] - server.at[0] >= 700, 'the longest');
  assert.ok(server.at[2] - server.at[1] < 700, 'and then no more');
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
  await until('all changes', () => server.changes.length === 3);
  const third = { limit: 5, subscribe: '3', db: 'c', since: 'now' };
  const [ofFirst, ofThird] = [false, true].map((isThird) => server.changes.filter(({ unsubscribe }) => (unsubscribe !== '1') === isThird));
  assert.deepEqual([ofFirst, ofThird], [[{ unsubscribe: '1' }], [third, { unsubscribe: '3' }]]);
  seqtide.close();
});

test('a server without room is asked again', async (t) => {
  const server = await serve(t, [
    ({ refuse }) => refuse(503, { error: 'service unavailable' }, { 'Retry-After': '1' }),
    ({ open, send }) => (open(), send({ sub: '1', event: 'refused', error: 'service unavailable', reason: 'full' })),
  ]);
  const seqtide = new Seqtide(server.url);
  seqtide.follow('a');
  await until('it is asked again', () => server.changes.length === 1);
  assert.equal(server.changes[0].subscribe, '1');
  assert.ok(server.at[1] - server.at[0] >= 1000, 'as it said');
  seqtide.close();
});

// It ended for good.
test('a subscription that the server has no room for any more goes on behind its last row when there is some', async (t) => {
  const full = { error: 'service unavailable', reason: 'at most 10 databases are open' };
  const told = [];
  let send;
  const server = await serve(
    t,
    [({ open, ...more }) => (({ send } = more), open(), send({ sub: '1', event: 'subscribed', seq: 0 }, row('1', 1), { sub: '1', event: 'error', ...full }))],
    ({ subscribe: sub, since }) => (send({ sub, event: 'subscribed', seq: since }, row(sub, since + 1)), [200, [{ ok: true, sub, seq: since }]]),
  );
  const seqtide = new Seqtide(server.url);
  assert.deepEqual(await take(seqtide.follow('a', { since: 0, onEvent: (event) => told.push(event) }), 2), [1, 2]);
  assert.deepEqual(told.filter(({ event }) => event === 'connecting'), [{ event: 'connecting', ...full }]);
  assert.equal(server.asked.length, 1, 'over the same connection');
});

// Each was asked for again after the first wait, for ever.
test('a subscription that the server has no room for is asked for twice as late each time', async (t) => {
  t.mock.method(Math, 'random', () => 0);
  const full = { error: 'service unavailable', reason: 'full' };
  const at = [];
  const server = await serve(
    t,
    [({ open, send }) => (at.push(Date.now()), open(), send({ sub: '1', event: 'refused', ...full }))],
    () => (at.push(Date.now()), [200, [{ sub: '1', ...full }]]),
  );
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  seqtide.follow('a');
  await until('it is asked for again', () => at.length === 3);
  const waits = [at[1] - at[0], at[2] - at[1]];
  assert.ok(waits[0] >= 1000 && waits[1] >= 2000, `one second, then two: ${waits}`);
});

// The connection was kept open, and the subscription waited for ever.
for (const [how, change] of Object.entries({
  'is answered 500': () => [500, { error: 'internal_server_error', reason: 'disk' }],
  'is answered by a page': (_, answer) => void answer.end('<html>'),
  'is answered by something else': () => [200, ['hello']],
  'meets an id that is no more': () => [404, { error: 'not_found', reason: 'there is no such connection' }],
  'is cut': (_, answer) => void answer.destroy(),
})) {
  test(`a change that ${how} costs the connection, and the next one asks for all`, async (t) => {
    const beats = [];
    t.after(() => beats.forEach(clearInterval));
    const alive = ({ open, send }) => {
      open({ retry: 10 });
      beats.push(setInterval(() => send({ event: 'heartbeat', seqs: {} }), 50));
    };
    const server = await serve(t, [alive, ({ open, send }) => (open(), send(row('2', 7)))], change);
    const seqtide = new Seqtide(server.url, { heartbeat: 1000 });
    t.after(() => seqtide.close());
    seqtide.follow('a', { since: 0 });
    await until('the connection', () => server.open === 1);
    const late = seqtide.follow('b', { since: 0 });
    const taken = take(late, 1);
    await until('the next connection', () => server.asked.length === 2);
    assert.deepEqual(server.asked[1].subscriptions.map(({ db }) => db), ['a', 'b']);
    assert.deepEqual(await taken, [7]);
  });
}

// It came back for ever, with nothing to ask for, and `close` did not end it.
test('when all has ended there is no connection, and the process ends', async (t) => {
  const server = await serve(t, [
    ({ open, send }) => (open({ retry: 10 }), send(row('1', 1), { sub: '1', event: 'end', seq: 1, reason: 'caught-up' })),
  ]);
  const { code, signal, out } = await run(
    server,
    `for await (const { seq } of seqtide.follow('db', { since: 0, live: false })) console.log(seq);
    seqtide.close();`,
  );
  assert.deepEqual([code, signal, out], [0, null, '1\n'], 'it ends by itself');
  assert.equal(server.asked.length, 1);
});

test('when all has ended the next one has a connection of its own', async (t) => {
  const end = ({ open, send, subscriptions: [{ subscribe: sub }] }) => {
    open({ retry: 10 });
    send(row(sub, 1), { sub, event: 'end', seq: 1, reason: 'caught-up' });
  };
  const server = await serve(t, [end]);
  const seqtide = new Seqtide(server.url);
  for (const connections of [1, 2]) {
    assert.deepEqual(await take(seqtide.follow('db', { since: 0, live: false })), [1]);
    await until('the connection is gone', () => server.open === 0);
    assert.equal(server.asked.length, connections);
  }
});

// Each connection gave as many rows as the first was asked for.
test('a limit counts across lost connections', async (t) => {
  const rows = (from, to) => Array.from({ length: to - from + 1 }, (_, index) => row('1', from + index));
  const ends = [];
  const onEvent = (event) => event.event !== 'connecting' && ends.push(event);
  const server = await serve(t, [
    ({ open, answer, send }) => (open({ retry: 10 }), send(...rows(1, 7)), answer.end()),
    ({ open, answer, send }) => (open({ retry: 10 }), send(...rows(8, 10)), answer.end()),
    ({ open, send }) => (open(), send(...rows(11, 20))),
  ]);
  const seqtide = new Seqtide(server.url);
  const subscription = seqtide.follow('db', { since: 0, limit: 10, onEvent });
  assert.deepEqual(await take(subscription), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  assert.deepEqual(server.asked.map(({ subscriptions: [{ since, limit }] }) => [since, limit]), [[0, 10], [7, 3]]);
  assert.deepEqual(ends, [{ event: 'end', seq: 10, reason: 'limit' }], 'the connection was lost before the server said so');
  assert.equal(subscription.state, 'ended');
});
