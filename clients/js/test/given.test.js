// What a program gives that can never work is refused where it is given.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide } from '../src/index.js';
import { row, serve } from './server.js';

const refused = (...words) => (error) => error instanceof TypeError && words.every((word) => error.message.includes(word));

// It was asked for over and over, in silence.
test('what is no URL of a server is refused, and what is one is named', () => {
  for (const url of ['127.0.0.1:7810', 'localhost:7810', '', '/', 'ws://127.0.0.1:5984', undefined, null, 7810]) {
    const named = typeof url === 'string' ? JSON.stringify(url) : String(url);
    assert.throws(() => new Seqtide(url), refused('a URL such as http://127.0.0.1:5984', `not ${named}`), named);
    assert.throws(() => new Seqtide(url, { shared: true }), TypeError, named);
  }
});

test('a URL with a password, which no request can be made to, is refused without showing it', () => {
  const hidden = (error) => refused('headers')(error) && !error.message.includes('secret');
  for (const who of ['ann:secret', 'ann', ':secret']) assert.throws(() => new Seqtide(`http://${who}@127.0.0.1:5984`), hidden);
});

test('a URL is taken in any form that it has', async () => {
  for (const url of ['http://127.0.0.1:5984/feeds', 'HTTP://127.0.0.1:5984/feeds//', new URL('http://127.0.0.1:5984/feeds/')]) {
    const asked = await new Promise((resolve) => {
      const fetch = (url, { signal }) => (resolve(url), new Promise((_, reject) => signal.addEventListener('abort', reject)));
      const seqtide = new Seqtide(url, { fetch });
      seqtide.follow('db');
      setImmediate(() => seqtide.close());
    });
    assert.equal(asked, 'http://127.0.0.1:5984/feeds/_feed/many');
  }
});

// What is asked for stood behind the question mark, and was never answered.
test('a URL with a query or a fragment is refused', () => {
  for (const behind of ['?token=7', '?', '#feeds', '#']) {
    assert.throws(() => new Seqtide(`http://127.0.0.1:5984/${behind}`), refused('no query and no fragment'), behind);
  }
});

// The server refused it, or the connection was silent at once, and it was made anew for ever.
test('a heartbeat that is no whole number of milliseconds is refused', () => {
  for (const heartbeat of [0, -1, 0.5, 10_000.5, 240_001, NaN, Infinity, null, '30000']) {
    for (const shared of [false, true]) {
      const make = () => new Seqtide('http://127.0.0.1:5984', { heartbeat, shared });
      assert.throws(make, refused('a whole number of milliseconds'), String(heartbeat));
    }
  }
});

// It was passed over in silence.
test('a setting that there is not is refused, and a heartbeat where it is none', () => {
  const url = 'http://127.0.0.1:5984';
  for (const shared of [false, true]) {
    assert.throws(() => new Seqtide(url, { hartbeat: 5, shared }), refused('no setting hartbeat', 'heartbeat, headers, fetch, shared'));
  }
  assert.throws(() => new Seqtide(url).follow('db', { heartbeat: 5 }), refused('a setting of `new Seqtide`'));
});

// Those of a `Headers` went nowhere.
test('headers are sent, in whatever form they are given', async (t) => {
  const server = await serve(t, [({ open }) => open()]);
  const given = { Authorization: 'Bearer 7', 'Content-Type': 'application/json; charset=utf-8' };
  for (const headers of [given, new Headers(given), Object.entries(given)]) {
    const sent = await new Promise((resolve) => {
      const seqtide = new Seqtide(server.url, { headers, fetch: (url, asked) => (resolve(new Headers(asked.headers)), fetch(url, asked)) });
      t.after(() => seqtide.close());
      seqtide.follow('db');
    });
    const names = ['authorization', 'content-type', 'accept'];
    assert.deepEqual(names.map((name) => sent.get(name)), [...Object.values(given), 'application/x-ndjson']);
  }
  assert.throws(() => new Seqtide(server.url, { headers: { 'no name': 'x' } }), TypeError);
});

// It waited for ever, or had rows that the other did not get.
test('a second loop over a subscription is refused, and so is one beside onRow', async (t) => {
  const server = await serve(t, [({ open, send }) => (open(), send(row('1', 1)))]);
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const [looped, handed] = [seqtide.follow('a', { since: 0 }), seqtide.follow('b', { onRow: () => {} })];
  const rows = looped[Symbol.asyncIterator]();
  assert.equal((await rows.next()).value.seq, 1);
  const next = rows.next();
  for (const taken of [looped, handed]) {
    assert.throws(() => taken[Symbol.asyncIterator](), refused('`onRow`, or by one loop'));
    assert.notEqual(taken.state, 'ended');
  }
  seqtide.close();
  assert.equal((await next).done, true);
});

// It was never called, and nobody said so.
test('a function that nothing calls is refused', () => {
  const seqtide = new Seqtide('http://127.0.0.1:5984', { fetch: () => assert.fail('nothing is asked for') });
  for (const name of ['onRows', 'onrow', 'filter']) {
    assert.throws(() => seqtide.follow('orders', { [name]: () => {} }), refused(name, 'onRow, onState and onEvent'));
  }
});

// It was called when the first row or event came, and ended the subscription then.
test('what is called and is no function is refused', () => {
  const seqtide = new Seqtide('http://127.0.0.1:5984', { fetch: () => assert.fail('nothing is asked for') });
  for (const name of ['onRow', 'onState', 'onEvent']) {
    for (const given of [5, 'x', null]) assert.throws(() => seqtide.follow('orders', { [name]: given }), refused(`${name} is a function`));
  }
});

// A promise was what the server was asked to begin behind.
test('a storage that has its token later is refused, and its key is free', () => {
  const seqtide = new Seqtide('http://127.0.0.1:5984', { fetch: () => assert.fail('nothing is asked for') });
  const storage = { getItem: async () => '7', setItem: async () => {} };
  for (let again = 0; again < 2; again += 1) assert.throws(() => seqtide.follow('orders', { storage }), refused('at once', 'asked before `follow`'));
});

// Without a database the server took the subscription's number for one.
test('a database that is no text is refused', () => {
  const seqtide = new Seqtide('http://127.0.0.1:5984', { fetch: () => assert.fail('nothing is asked for') });
  for (const db of [undefined, null, 7, { name: 'orders' }]) {
    assert.throws(() => seqtide.follow(db), refused('a text such as "orders"', `not ${db}`));
  }
});

// It was sent with all others, which then got nothing more.
test('what JSON has not is refused where it is given', () => {
  const seqtide = new Seqtide('http://127.0.0.1:5984', { fetch: () => assert.fail('nothing is asked for') });
  const cyclic = {};
  cyclic.itself = cyclic;
  for (const selector of [{ total: 10n }, cyclic]) {
    assert.throws(() => seqtide.follow('orders', { selector }), refused('what is asked for must be what JSON has'));
  }
});
