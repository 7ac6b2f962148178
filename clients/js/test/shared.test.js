// Tabs that share a connection: the worker's own code, beside the tabs' in one process. A browser's is in tests/clients/js.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide } from '../src/index.js';
import { row, serve, until } from './server.js';
import { pretend } from './tabs.js';

// Of those who waited for room only the last was let in, so the worker was never told that rows were taken.
test('a tab that takes rows slowly gets all of them, and holds up the connection no longer than that', async (t) => {
  pretend(t);
  const all = Array.from({ length: 5000 }, (_, index) => index + 1);
  let give;
  const open = ({ open, send, subscriptions }) => {
    give = ({ subscribe }) => all.forEach((seq) => send(row(subscribe, seq)));
    open();
    subscriptions.forEach(give);
  };
  const server = await serve(t, [open], (asked) => (give(asked), [200, [{ ok: true }]]));
  const tabs = [new Seqtide(server.url, { shared: true }), new Seqtide(server.url, { shared: true })];
  const [slow, fast] = [[], []];
  tabs[0].follow('db', { since: 0, onRow: async ({ seq }) => (slow.push(seq), await new Promise(setImmediate)) });
  tabs[1].follow('db', { since: 0, onRow: ({ seq }) => fast.push(seq) });
  const state = () => `${slow.length} and ${fast.length}`;
  await until('both have all', () => slow.length === all.length && fast.length === all.length, state);
  assert.deepEqual([slow, fast], [all, all]);
  assert.equal(server.asked.length, 1, 'one connection');
  tabs.forEach((tab) => tab.close());
  await until('it is gone', () => server.open === 0);
});

test('a limit and an end are the same in a tab, and its connection goes with its last subscription', async (t) => {
  pretend(t);
  const server = await serve(t, [
    ({ open, answer, send, subscriptions: [{ subscribe }] }) => (open({ retry: 10 }), send(row(subscribe, 1)), answer.end()),
    ({ open, send, subscriptions: [{ subscribe }] }) => (open(), send(row(subscribe, 2), row(subscribe, 3))),
  ]);
  const tab = new Seqtide(server.url, { shared: true });
  const seqs = [];
  for await (const { seq } of tab.follow('db', { since: 0, limit: 3 })) seqs.push(seq);
  assert.deepEqual(seqs, [1, 2, 3]);
  assert.deepEqual(server.asked.map(({ subscriptions: [{ limit }] }) => limit), [3, 2]);
  await until('the connection is gone', () => server.open === 0);
  assert.deepEqual(server.changes, []);
});

// Each client of a page that makes and closes them went on as a tab of its own in the worker.
test('a tab that follows nothing any more is gone for the worker, and comes back with the next it follows', async (t) => {
  const { held } = pretend(t);
  const server = await serve(t, [
    ({ open, send, subscriptions: [{ subscribe }] }) => (open(), send(row(subscribe, 1))),
    ({ open, send, subscriptions: [{ subscribe }] }) => (open(), send(row(subscribe, 2))),
  ]);
  const tab = new Seqtide(server.url, { shared: true });
  const seqs = [];
  for (const since of [0, 1]) {
    tab.follow('db', { since, onRow: ({ seq }) => seqs.push(seq) });
    await until('it is given', () => seqs.length === since + 1);
    assert.equal(held.size, 2, 'the worker waits for the tab to go, and the tab for the worker');
    tab.close();
    await until('the connection is gone', () => server.open === 0);
    await until('the tab holds no lock', () => held.size === 1);
  }
  assert.deepEqual(seqs, [1, 2]);
});

// Its tabs were live for ever, and got nothing more.
test('when the worker is gone its tabs say so, and go on with another one behind their last rows', async (t) => {
  const { killWorkers } = pretend(t);
  let give;
  const limits = [];
  const script = ({ open, send, subscriptions }) => {
    give = ({ subscribe, since, limit }) => (limits.push(limit), send(row(subscribe, since + 1)));
    open();
    subscriptions.forEach(give);
  };
  const server = await serve(t, [script], (asked) => (asked.subscribe && give(asked), [200, [{ ok: true }]]));
  const tab = new Seqtide(server.url, { shared: true });
  t.after(() => tab.close());
  const told = [];
  const followed = [[], []].map((seqs, at) => {
    tab.follow(`db-${at}`, {
      since: 0,
      limit: 5,
      onRow: ({ seq }) => seqs.push(seq),
      onEvent: ({ event, error, reason }) => event === 'connecting' && told.push([at, error, reason]),
    });
    return seqs;
  });
  const lost = ['lost', 'the worker that the tabs share has ended'];
  for (const rows of [1, 2, 3]) {
    await until('a row for each', () => followed.every((seqs) => seqs.length === rows), () => JSON.stringify(followed));
    assert.deepEqual(told.splice(0), rows === 1 ? [] : [[0, ...lost], [1, ...lost]]);
    killWorkers();
  }
  await until('the fourth', () => followed.every((seqs) => seqs.length === 4));
  assert.deepEqual(followed, [[1, 2, 3, 4], [1, 2, 3, 4]]);
  assert.deepEqual(limits, [5, 5, 4, 4, 3, 3, 2, 2]);
});

// The worker was never told, and nobody that it was not.
test('what is no option for a server is passed over in a tab, too', async (t) => {
  pretend(t);
  const server = await serve(t, [({ open, send, subscriptions: [{ subscribe }] }) => (open(), send(row(subscribe, 1)))]);
  const tab = new Seqtide(server.url, { shared: true });
  const rows = [];
  tab.follow('db', { since: 0, prefix: undefined, onRow: (row) => rows.push(row) });
  await until('it is given', () => rows.length === 1);
  assert.deepEqual(Object.keys(server.asked[0].subscriptions[0]).sort(), ['db', 'since', 'subscribe']);
  tab.close();
});

test('a tab with a `fetch` of its own has a connection of its own', async (t) => {
  pretend(t);
  const server = await serve(t, [({ open, send, subscriptions: [{ subscribe }] }) => (open(), send(row(subscribe, 1)))]);
  const rows = [];
  let fetched = 0;
  const own = (...asked) => ((fetched += 1), fetch(...asked));
  const tabs = [{}, { fetch: own }].map((settings) => new Seqtide(server.url, { shared: true, ...settings }));
  t.after(() => tabs.forEach((tab) => tab.close()));
  tabs.forEach((tab) => tab.follow('db', { since: 0, onRow: (row) => rows.push(row) }));
  await until('each has its row', () => rows.length === 2);
  assert.deepEqual([server.asked.length, fetched], [2, 1]);
});
