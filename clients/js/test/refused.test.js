// What a server refuses ends alone, and with its reason.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide, SeqtideError } from '../src/index.js';
import { row, serve, take, until } from './server.js';

const unknown = { error: 'bad_request', reason: 'there is no option `sinc`' };

test('what the server refuses is thrown, and others go on', async (t) => {
  const server = await serve(
    t,
    [({ open, send }) => (open(), send({ sub: '1', event: 'refused', error: 'not_found', reason: 'no' }, row('2', 1)))],
    () => [200, [{ error: 'bad_request', reason: 'never' }]],
  );
  const seqtide = new Seqtide(server.url);
  const [one, two] = [seqtide.follow('a'), seqtide.follow('b')];
  await assert.rejects(take(one, 1), (error) => error instanceof SeqtideError && error.error === 'not_found');
  const three = seqtide.follow('c');
  await assert.rejects(take(three, 1), (error) => error.error === 'bad_request' && error.message === 'never');
  assert.deepEqual(await take(two, 1), [1]);
});

// Only that there is no room passes by itself.
for (const error of ['function_stopped', 'disk_failed', 'damaged_database']) {
  test(`one that the server cannot give, ${error}, ends, and is not asked for again`, async (t) => {
    const refused = ({ subscribe: sub }) => ({ sub, event: 'refused', error, reason: 'mend it' });
    const server = await serve(t, [({ open, send, subscriptions: [one] }) => (open(), send(refused(one), row('2', 1)))]);
    const seqtide = new Seqtide(server.url);
    const [one, two] = [seqtide.follow('a'), seqtide.follow('b')];
    await assert.rejects(take(one, 1), (thrown) => thrown instanceof SeqtideError && thrown.error === error);
    assert.deepEqual(await take(two, 1), [1], 'the others go on');
    assert.deepEqual(server.changes, []);
  });
}

test('a refusal is told once, also to who takes rows by function', async (t) => {
  const server = await serve(t, [
    ({ open, send }) => (open(), send({ sub: '1', event: 'refused', error: 'not_found', reason: 'no' })),
  ]);
  const events = [];
  const one = new Seqtide(server.url).follow('a', { onRow: () => {}, onEvent: (event) => events.push(event) });
  await until('it has ended', () => one.state === 'ended');
  await until('the connection is gone', () => server.open === 0);
  assert.deepEqual(events, [{ event: 'refused', error: 'not_found', reason: 'no' }]);
});

/** A server as it is: what is wrong with one subscription, or one too many, refuses the whole. */
function strict(t, most = 200) {
  const has = new Set();
  const wrong = (subscription) => 'sinc' in subscription;
  const give = ({ subscribe: sub }) => (has.add(sub), [{ sub, event: 'subscribed', seq: 0 }, row(sub, 1)]);
  let last;
  const open = ({ open, refuse, send, answer, subscriptions }) => {
    if (subscriptions.length > most) return refuse(413, { error: 'too_large', reason: `at most ${most} are accepted` });
    if (subscriptions.some(wrong)) return refuse(400, unknown);
    has.clear();
    last = { send, answer };
    open({ retry: 10 });
    return send(...subscriptions.flatMap(give));
  };
  const change = (asked) => {
    if (asked.unsubscribe !== undefined) return [200, [{ ok: has.delete(asked.unsubscribe) }]];
    if (wrong(asked)) return [200, [unknown]];
    if (has.size === most) return [200, [{ sub: asked.subscribe, error: 'too_many_subscriptions', reason: `a connection has at most ${most} subscriptions` }]];
    last.send(...give(asked));
    return [200, [{ ok: true, sub: asked.subscribe, seq: 0 }]];
  };
  return serve(t, [open], change).then((server) => Object.assign(server, { lose: () => last.answer.destroy() }));
}

// One that the server had something against ended all that were asked for together with it.
test('one that is wrong does not end the others it is asked for together with', async (t) => {
  const server = await strict(t);
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const events = [];
  const [good, bad, other] = [
    seqtide.follow('a', { since: 0 }),
    seqtide.follow('b', { sinc: 0, onEvent: (event) => events.push(event) }),
    seqtide.follow('c', { since: 0 }),
  ];
  await assert.rejects(take(bad), (error) => error instanceof SeqtideError && error.message === unknown.reason);
  assert.deepEqual(events, [{ event: 'refused', ...unknown }], 'with the reason of the server');
  const rest = other[Symbol.asyncIterator]();
  assert.equal((await rest.next()).value.seq, 1);
  assert.deepEqual(await take(good, 1), [1]);
  assert.deepEqual(server.asked.map(({ subscriptions }) => subscriptions.length), [3, 0]);

  server.lose();
  await until('it is back', () => server.asked.length === 3);
  assert.deepEqual(server.asked[2].subscriptions.map(({ db }) => db), ['c'], 'in one go again');
});

test('one that is wrong and comes while the connection is away does not end those that were taken before', async (t) => {
  const server = await strict(t);
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const good = seqtide.follow('a', { since: 0 });
  const rows = good[Symbol.asyncIterator]();
  await rows.next();
  server.lose();
  await until('it is lost', () => good.state === 'connecting');
  const bad = seqtide.follow('b', { sinc: 0 });
  await assert.rejects(take(bad), (error) => error.message === unknown.reason);
  assert.deepEqual(server.asked.map(({ subscriptions }) => subscriptions.length), [1, 2, 1], 'opened with what is good');
  assert.equal((await rows.next()).value.seq, 1);
});

// They ended for good.
test('of more than the server takes those that are too many wait until others have gone', async (t) => {
  const server = await strict(t, 20);
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const errors = [];
  const rows = [];
  const all = Array.from({ length: 23 }, (_, index) =>
    seqtide.follow(`db-${index}`, {
      since: 0,
      onRow: () => rows.push(index),
      onEvent: ({ event, error, reason }) => event === 'connecting' && errors.push(`${error}: ${reason}`),
    }),
  );
  await until('all are decided', () => rows.length === 20 && errors.length === 3, () => `${rows.length} ${errors}`);
  assert.deepEqual(errors, Array(3).fill('too_many_subscriptions: a connection has at most 20 subscriptions'));
  for (const each of rows.slice(0, 3)) all[each].close();
  await until('the others have their rows', () => rows.length === 23);
  assert.equal(server.asked.length, 2, 'with all and with none: over the same connection');
});

test('what is too large for other reasons ends', async (t) => {
  const said = { error: 'too_large', reason: '`doc_ids` has too many ids: at most 1000 are accepted' };
  const server = await serve(t, [({ open, send }) => (open(), send({ sub: '1', event: 'refused', ...said }))]);
  await assert.rejects(take(new Seqtide(server.url).follow('a')), (error) => error.error === 'too_large' && error.message === said.reason);
});

// The server opened a connection for nothing, which nobody noticed.
for (const status of [301, 302, 303]) {
  test(`an address behind a redirect that makes a GET of a POST, ${status}, is refused, and the right one is named`, async (t) => {
    const server = await serve(t, [({ open }) => open()]);
    const wrong = ({ error, message }) => error === 'method_not_allowed' && message.includes(`a redirect led to ${server.url}: give that address`);
    await assert.rejects(take(new Seqtide(`${server.url}/moved/${status}`).follow('a')), wrong);
    await until('the connection is gone', () => server.open === 0);
    assert.equal(server.asked.length, 1);
  });
}

test('what is no feed is told with where a redirect led to', async (t) => {
  const server = await serve(t, [({ answer }) => answer.end('<html>')]);
  const seqtide = new Seqtide(`${server.url}/moved/302`);
  t.after(() => seqtide.close());
  const told = [];
  seqtide.follow('a', { onEvent: ({ reason }) => told.push(reason) });
  await until('it is told', () => told.length > 0);
  assert.match(told[0], /^the answer is no feed \(a redirect led to http/);
});

test('a connection that nothing may be asked for ends with the reason', async (t) => {
  const reason = 'there is no option `heartbeat`';
  const server = await serve(t, [({ refuse }) => refuse(400, { error: 'bad_request', reason })]);
  const seqtide = new Seqtide(server.url);
  const wrong = (error) => error.message === reason && error.status === 400;
  await Promise.all([seqtide.follow('a'), seqtide.follow('b')].map((each) => assert.rejects(take(each), wrong)));
  assert.equal(server.asked.length, 2, 'with all, and with none');
});

test('what a proxy finds too large ends with what the proxy says', async (t) => {
  const server = await serve(
    t,
    [({ open, refuse, subscriptions: [first] }) => (first === undefined ? open() : refuse(413, '<html>'))],
    (_, answer) => void answer.writeHead(413, 'Request Entity Too Large').end('<html>'),
  );
  const wrong = (error) => error.error === 'refused' && error.message === 'Request Entity Too Large' && error.status === 413;
  await assert.rejects(take(new Seqtide(server.url).follow('a')), wrong);
});
