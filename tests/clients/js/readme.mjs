// The code of the client's README runs as it stands.

import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { createDatabase, request, serverUrl, writeDocuments } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(120);

const folder = new URL('../../../clients/js/', import.meta.url);
const readme = await readFile(new URL('README.md', folder), 'utf8');
const [first, second, third] = [...readme.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => code);

/** Runs code of the page, which speaks of a server and a package as whoever reads it has them. */
async function run(name, code, globals) {
  Object.assign(globalThis, globals);
  const runnable = code.replace("'seqtide'", "'./index.js'").replaceAll('http://127.0.0.1:5984', serverUrl);
  assert.notEqual(runnable, code);
  const file = new URL(`src/readme-${name}-${process.pid}.mjs`, folder);
  await writeFile(file, runnable);
  try {
    await import(file);
  } finally {
    await rm(file);
  }
}

test('the page shows code that follows a database', async () => {
  await createDatabase('orders');
  await writeDocuments('orders', [{ _id: 'first', total: 7 }, { _id: 'last', total: 9 }]);
  const said = [];
  await run('first', first.replaceAll('console.log', 'told'), { told: (...words) => said.push(words) });
  assert.deepEqual(said, [[1, 'first', 7], [2, 'last', 9]]);

  const key = `seqtide:${serverUrl}/orders`;
  const kept = new Map([[key, '1']]);
  const localStorage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value) };
  Object.defineProperty(globalThis, 'localStorage', { value: localStorage, configurable: true });
  const [shown, states] = [[], []];
  const opening = first.slice(0, first.indexOf('const orders'));
  await run('second', `${opening}\n${second.replaceAll('console.log', 'told')}\nglobalThis.followed = seqtide;`, {
    show: ({ id }) => shown.push(id),
    told: (state) => states.push(state),
  });
  await until('what was not taken yet is shown, and kept', () => kept.get(key) === '2');
  globalThis.followed.close();
  assert.deepEqual(shown, ['last']);
  assert.deepEqual(states.slice(0, 2), ['catching-up', 'live']);

  const reasons = [];
  const subscribed = `globalThis.followed = ${third.trim()}`;
  await run('third', `${opening}\n${subscribed.replaceAll('console.log', 'told')}`, { told: (...words) => reasons.push(words) });
  await until('it is live', () => globalThis.followed.state === 'live');
  await request('DELETE', 'orders');
  await until('it has ended', () => globalThis.followed.state === 'ended');
  assert.deepEqual(reasons, [['end', 'deleted']]);
});
