// Of what is tried again the reason is told, and what will never be is not tried again.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide, SeqtideError } from '../src/index.js';
import { row, serve, take, until } from './server.js';
import { pretend } from './tabs.js';

/** Follows a database of `url` until it has been told why so often that there is no connection, and returns that. */
async function reasons(t, url, count, settings = {}) {
  const seqtide = new Seqtide(url, settings);
  t.after(() => seqtide.close());
  const why = [];
  const subscription = seqtide.follow('db', { onEvent: ({ event, ...rest }) => event === 'connecting' && why.push(rest) });
  await until('the reasons', () => why.length >= count, () => JSON.stringify(why));
  assert.equal(subscription.state, 'connecting');
  seqtide.close();
  return why.slice(0, count);
}

// A server that was not there was waited for in silence.
test('a server that is not there is tried again, and each time that is told with what `fetch` says', async (t) => {
  let attempts = 0;
  const fetch = async () => {
    attempts += 1;
    if (attempts === 1) return new Response('{"event":"connection","id":"c","retry":1}\n');
    throw new TypeError('fetch failed', { cause: new Error('connect ECONNREFUSED 127.0.0.1:1') });
  };
  const [ended, ...refused] = await reasons(t, 'http://127.0.0.1:1', 3, { fetch });
  assert.deepEqual(ended, { error: 'lost', reason: 'the server has ended the connection' });
  assert.deepEqual(refused, Array(2).fill({ error: 'lost', reason: 'connect ECONNREFUSED 127.0.0.1:1' }));
});

for (const shared of [false, true]) {
  test(`a server that has no room now says why, ${shared ? 'to a tab too' : 'and so does what is no feed'}`, async (t) => {
    if (shared) pretend(t);
    const full = { error: 'service unavailable', reason: 'at most 10 feeds are open' };
    const server = await serve(t, [
      ({ refuse }) => refuse(503, full, { 'Retry-After': '0.01' }),
      ({ answer }) => answer.end('<!doctype html>'),
      ({ open, answer }) => (open({ retry: 10 }), answer.end()),
      ({ open, send, subscriptions: [{ subscribe: sub }] }) => (open(), send({ sub, event: 'refused', ...full })),
    ]);
    assert.deepEqual(await reasons(t, server.url, 4, { shared }), [
      { ...full, status: 503 },
      { error: 'lost', reason: 'the answer is no feed' },
      { error: 'lost', reason: 'the server has ended the connection' },
      full,
    ]);
    await until('the connection is gone', () => server.open === 0);
  });
}

// A proxy that had waited too long for the request ended all of them.
for (const status of [408, 425, 429, 500, 504]) {
  test(`what is answered ${status} passes`, async (t) => {
    const said = { error: 'busy', reason: 'come back' };
    const server = await serve(t, [({ refuse }) => refuse(status, said)]);
    assert.deepEqual(await reasons(t, server.url, 1), [{ ...said, status }]);
  });
}

/** Has waits between attempts be over at once, without their random part, and returns how long they were to be. */
function hurry(t) {
  t.mock.method(Math, 'random', () => 0);
  const waits = [];
  const wait = setTimeout;
  const heartbeats = 60_000;
  t.mock.method(globalThis, 'setTimeout', (done, ms, ...more) => {
    const isBetween = ms >= 1000 && ms !== heartbeats;
    if (isBetween) waits.push(ms);
    return wait(done, isBetween ? 0 : ms, ...more);
  });
  return waits;
}

// Who had been without a server for long, and began anew, waited half a minute after the first failure.
test('what is closed and begun anew waits as if nothing had failed', async (t) => {
  const waits = hurry(t);
  const fetch = async () => { throw new TypeError('fetch failed'); };
  const seqtide = new Seqtide('http://127.0.0.1:1', { fetch });
  t.after(() => seqtide.close());
  for (const _ of [1, 2]) {
    waits.length = 0;
    seqtide.follow('db');
    await until('three waits', () => waits.length >= 3);
    seqtide.close();
    assert.deepEqual(waits.slice(0, 3), [1000, 2000, 4000]);
  }
});

// It was passed over.
test('a server says by a date, too, when to come back', async (t) => {
  const waits = hurry(t);
  const date = new Date(Date.now() + 86_400_000).toUTCString();
  const server = await serve(t, [({ refuse }) => refuse(503, {}, { 'Retry-After': date }), ({ open }) => open()]);
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  seqtide.follow('db');
  await until('it is back', () => server.asked.length === 2);
  assert.ok(waits[0] > 43_200_000 && waits[0] <= 86_400_000, `about a day: ${waits}`);
});

test('silence is the reason where nothing was heard', async (t) => {
  const server = await serve(t, [({ open }) => open({ retry: 10 })]);
  const silent = { error: 'silent', reason: 'nothing was heard for 1400 ms' };
  assert.deepEqual(await reasons(t, server.url, 1, { heartbeat: 700 }), [silent]);
});

// 501 was taken for a server that has no room, and tried for ever.
for (const status of [404, 501]) {
  test(`an address below which no server is, answered ${status}, ends with what is said there`, async (t) => {
    const said = { error: 'not_implemented', reason: 'attachments are not built' };
    const server = await serve(t, [({ refuse }) => refuse(status, said)]);
    const seqtide = new Seqtide(server.url);
    const wrong = (error) => error instanceof SeqtideError && error.message === said.reason && error.status === status;
    await Promise.all(['a', 'b'].map((db) => assert.rejects(take(seqtide.follow(db)), wrong)));
    assert.equal(server.asked.length, 1);
  });
}

test('what is lost and comes back tells nothing more', async (t) => {
  const events = [];
  const server = await serve(t, [
    ({ open, answer }) => (open({ retry: 10 }), answer.end()),
    ({ open, send }) => (open(), send({ sub: '1', event: 'caught-up', seq: 1 }, row('1', 2))),
  ]);
  const seqtide = new Seqtide(server.url);
  assert.deepEqual(await take(seqtide.follow('db', { onEvent: ({ event }) => events.push(event) }), 1), [2]);
  assert.deepEqual(events, ['connecting', 'caught-up']);
});
