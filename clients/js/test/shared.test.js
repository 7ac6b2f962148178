// Tabs that share a connection: the worker's own code, beside the tabs' in one process. A browser's is in tests/clients/js.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide } from '../src/index.js';
import { row, serve, until } from './server.js';

let workers = 0;

/** What a browser has and Node.js has not: shared workers, each by its name, and locks, which are never given up here. */
function pretend(t) {
  const ports = [];
  const connects = new Map();
  globalThis.SharedWorker = class {
    constructor(url, { name }) {
      const { port1, port2 } = new MessageChannel();
      this.port = port1;
      ports.push(port1, port2);
      connects.set(name, connects.get(name) ?? start(`${url}?${(workers += 1)}`));
      connects.get(name).then((onconnect) => onconnect({ ports: [port2] }));
    }
  };
  const start = async (url) => {
    globalThis.self = {};
    await import(url);
    return globalThis.self.onconnect;
  };
  const held = new Set();
  const locks = { request: async (name, have) => held.has(name) || (held.add(name), have()) };
  Object.defineProperty(globalThis, 'navigator', { value: { locks }, configurable: true });
  t.after(() => {
    ports.forEach((port) => port.close());
    delete globalThis.SharedWorker;
  });
}

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
