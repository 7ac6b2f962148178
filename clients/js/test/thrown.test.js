// What the program's own code throws comes out, and ends no more than the subscription that it is of.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide, SeqtideError } from '../src/index.js';
import { row, run, serve, storageOf, take, until } from './server.js';
import { pretend } from './tabs.js';

/** A server that gives each subscription its place, and two rows. */
function generous(t) {
  let give;
  const script = ({ open, send, subscriptions }) => {
    give = ({ subscribe: sub }) => send({ sub, event: 'subscribed', seq: 0 }, row(sub, 1), { sub, event: 'caught-up', seq: 1 }, row(sub, 2));
    open({ retry: 10 });
    subscriptions.forEach(give);
  };
  return serve(t, [script], (change) => (change.subscribe && give(change), [200, [{ ok: true }]]));
}

const fault = new RangeError('full', { cause: new Error('not the reason') });
const fail = () => {
  throw fault;
};
const failing = {
  onEvent: () => ({ onEvent: fail }),
  'an asynchronous onEvent': () => ({ onEvent: async () => fail() }),
  onState: () => ({ onState: fail }),
  'storage.setItem': () => ({ storage: { ...storageOf(), setItem: fail } }),
};

// Each was taken for a lost connection, which came back and was lost again, for all.
for (const [name, options] of Object.entries(failing)) {
  for (const shared of [false, true]) {
    test(`what ${name} throws is thrown by the loop, and others go on${shared ? ', also in a tab' : ''}`, async (t) => {
      if (shared) pretend(t);
      const server = await generous(t);
      const seqtide = new Seqtide(server.url, { shared });
      t.after(() => seqtide.close());
      const one = seqtide.follow('a', { since: 7, ...options() });
      const other = seqtide.follow('b', { since: 0 });
      await Promise.all([
        assert.rejects(take(one), (error) => error === fault),
        take(other, 2).then((rows) => assert.deepEqual(rows, [1, 2])),
      ]);
      assert.equal(one.state, 'ended');
      assert.equal(server.asked.length, 1, 'over the same connection');
      await until('the server need not give it any more', () => server.open === 0 || server.changes.some(({ unsubscribe }) => unsubscribe));
    });
  }
}

const { onState, 'storage.setItem': setItem } = failing;
for (const [name, options] of Object.entries({
  onState,
  'storage.setItem': setItem,
  onRow: () => ({ onRow: fail }),
  'an asynchronous onRow': () => ({ onRow: async () => fail() }),
  // The whole program ended with what these were rejected with.
  'an asynchronous onState': () => ({ onState: async () => fail() }),
  'an asynchronous storage.setItem': () => ({ storage: { ...storageOf(), setItem: async () => fail() } }),
})) {
  test(`what ${name} throws is told to onEvent, once, and then nothing`, async (t) => {
    const server = await generous(t);
    const seqtide = new Seqtide(server.url);
    t.after(() => seqtide.close());
    const errors = [];
    const one = seqtide.follow('a', { since: 7, onEvent: (event) => event.event === 'error' && errors.push(event), ...options() });
    const rows = [];
    seqtide.follow('b', { since: 0, onRow: ({ seq }) => rows.push(seq) });
    await until('the other has its rows', () => rows.length === 2);
    await until('it is over', () => one.state === 'ended');
    assert.deepEqual(errors, [{ event: 'error', error: 'RangeError', reason: 'full', cause: fault }]);
    assert.equal(server.asked.length, 1);
    seqtide.close();
    await until('the connection is gone', () => server.open === 0);
    assert.equal(errors.length, 1);
  });
}

test('a row that onRow failed at comes again, and who has failed at a key leaves it', async (t) => {
  const server = await generous(t);
  const storage = storageOf();
  const seqtide = new Seqtide(server.url);
  t.after(() => seqtide.close());
  const rows = [];
  const onRow = ({ seq }) => (rows.push(seq), seq === 2 && fail());
  const one = seqtide.follow('a', { storage, key: 'k', onRow, onEvent: () => {} });
  await until('it is over', () => one.state === 'ended');
  assert.deepEqual([rows, one.token, storage.kept.get('k')], [[1, 2], 1, '1']);
  assert.equal(seqtide.follow('a', { storage, key: 'k' }).token, '1');
});

/** The source of a program that prints what is not caught, and goes on. */
const catching = "process.on('uncaughtException', (error) => console.log('uncaught', error.name, error.message));";
const failure = "() => { throw new RangeError('full'); }";

// It ended in silence.
for (const [name, options] of Object.entries({
  onRow: `{ onRow: ${failure} }`,
  'an asynchronous onRow': "{ onRow: async () => { throw new RangeError('full'); } }",
  onState: `{ onState: ${failure} }`,
  'onState, beside onRow,': `{ onState: ${failure}, onRow: () => {} }`,
  onEvent: `{ onEvent: ${failure} }`,
  'an asynchronous onEvent': "{ onEvent: async () => { throw new RangeError('full'); } }",
  'onEvent, at the error of onRow,': `{ onRow: ${failure}, onEvent: ({ event }) => { if (event === 'error') throw new RangeError('full'); } }`,
  'storage.setItem': `{ storage: { getItem: () => null, setItem: ${failure} } }`,
})) {
  test(`what ${name} throws is not caught where nobody is told, and others go on`, async (t) => {
    const server = await generous(t);
    const { code, out, err } = await run(
      server,
      `${catching}
      const one = seqtide.follow('a', ${options});
      let rows = 0;
      for await (const { seq } of seqtide.follow('b', { since: 0 })) if ((rows += 1) === 2) break;
      console.log(one.state, rows);
      seqtide.close();`,
    );
    const uncaught = name.includes('at the error') ? 2 : 1;
    const lines = out.trimEnd().split('\n').sort();
    assert.deepEqual([lines, err, code], [['ended 2', ...Array(uncaught).fill('uncaught RangeError full')], '', 0]);
    assert.equal(server.asked.length, 1);
  });
}

test('undefined can be thrown, too', async (t) => {
  const server = await generous(t);
  const events = [];
  const one = new Seqtide(server.url).follow('a', { onRow: () => Promise.reject(), onEvent: (event) => events.push(event) });
  await until('it is over', () => one.state === 'ended');
  assert.deepEqual(events.at(-1), { event: 'error', error: 'Error', reason: 'undefined', cause: undefined });
});

/** A server that has no such database. */
const refusing = ({ open, send }) => (open(), send({ sub: '1', event: 'refused', error: 'not_found', reason: 'there is no nope' }));

test('a refusal that nobody is told ends the program with it', async (t) => {
  const server = await serve(t, [refusing]);
  const { code, err } = await run(server, "seqtide.follow('nope', { onRow: () => {}, onState: () => {} });");
  assert.equal(code, 1);
  assert.match(err, /SeqtideError: there is no nope/);
  assert.match(err, /db: 'nope'/);
});

test('a refusal waits for a loop that begins later', async (t) => {
  const server = await serve(t, [refusing]);
  const one = new Seqtide(server.url).follow('nope');
  await until('it is refused', () => one.state === 'ended');
  await assert.rejects(take(one), (error) => error instanceof SeqtideError && error.error === 'not_found');
});

test('what onState throws at the end comes out of the loop, and of who closes it is not caught', async (t) => {
  const server = await generous(t);
  const looped = await run(
    server,
    `${catching}
    const atEnd = (state) => { if (state === 'ended') throw new RangeError('full'); };
    for await (const row of seqtide.follow('a', { since: 0, limit: 2, onState: atEnd })) console.log(row.seq);`,
  );
  assert.match(looped.out, /^(1\n)?(2\n)?uncaught RangeError full\n$/, 'the loop threw it, and nobody caught that');
  const closed = await run(server, `${catching} seqtide.follow('a', { onState: () => { throw new RangeError('full'); } }).close();`);
  assert.deepEqual([closed.code, closed.out], [0, 'uncaught RangeError full\n']);
});
