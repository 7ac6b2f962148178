// The npm package `pouchdb` keeps a database of its own in step with the server, both ways, over a real data set,
// with conflicts made on both sides while they are apart and while they are connected.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import PouchDB from 'pouchdb';
import memory from 'pouchdb-adapter-memory';
import * as conflicts from './lib/conflicts.mjs';
import { languages } from './lib/languages.mjs';
import { assertSameReplicas, differing, leafRevisions } from './lib/replicas.mjs';
import { serverUrl } from './lib/server.mjs';
import { deadline, until } from './lib/wait.mjs';

deadline(600);
PouchDB.plugin(memory);

const local = new PouchDB('languages', { adapter: 'memory' });

/** What PouchDB asked the server for, as texts like `GET _changes?since=0`, newest last. */
const requests = [];
const remote = new PouchDB(`${serverUrl}/languages`, {
  fetch: (url, options = {}) => {
    requests.push(`${options.method ?? 'GET'} ${url.slice(`${serverUrl}/languages/`.length)}`);
    return PouchDB.fetch(url, options);
  },
});

/**
 * Starts live replication both ways, until `stop` or the end of the test `t`. `idle` waits until both directions rest
 * and both sides have the same leaves.
 */
function startSync(t) {
  const sync = local.sync(remote, { live: true, retry: true });
  t.after(() => sync.cancel());
  const failures = [];
  const resting = { push: false, pull: false };
  for (const direction of ['push', 'pull']) {
    sync[direction].on('active', () => (resting[direction] = false));
    sync[direction].on('paused', (error) => {
      resting[direction] = true;
      if (error) failures.push(error);
    });
  }
  sync.on('denied', (denied) => failures.push(denied));
  sync.on('error', (error) => failures.push(error));

  const different = async () => differing(await leafRevisions(local), await leafRevisions(remote));
  const settled = async () => {
    assert.deepEqual(failures, []);
    return resting.push && resting.pull && (await different()).length === 0 && resting.push && resting.pull;
  };
  const describe = async () => {
    const ids = await different();
    return `(${JSON.stringify(resting)}, ${ids.length} documents differ: ${ids.slice(0, 10)})`;
  };
  return {
    idle: () => until('both sides are idle and equal', settled, { seconds: 240, state: describe }),
    stop: async () => {
      sync.cancel();
      await sync;
    },
  };
}

/** The next documents no edit has touched yet, as the local side holds them. */
const untouched = languages.map(({ _id }) => _id).values();
async function take(count) {
  const keys = Array.from({ length: count }, () => untouched.next().value);
  const { rows } = await local.allDocs({ keys, include_docs: true });
  return rows.map(({ doc }) => doc);
}

/** Makes every kind of conflict, in rounds, until each kind has at least `count` documents; returns their ids. */
async function makeConflicts(count) {
  const made = {};
  for (const [kind, make] of Object.entries(conflicts).filter(([kind]) => kind !== 'resolve')) {
    made[kind] = [];
    while (made[kind].length < count) made[kind].push(...(await make(local, remote, await take(count))));
  }
  return made;
}

/** Each document that was edited apart must have kept both edits as leaves. */
async function assertKept(made) {
  const leaves = await leafRevisions(remote);
  for (const [kind, ids] of Object.entries(made)) {
    const expected = kind === 'pushLosingBranches' ? 3 : 2;
    for (const id of ids) assert.equal(leaves.get(id).split(' ').length, expected, `leaves of ${id} after ${kind}`);
  }
}

test('PouchDB syncs live both ways', async (t) => {
  await t.test('half of the data set from each side', async (t) => {
    const half = languages.length / 2;
    for (const result of await local.bulkDocs(languages.slice(0, half))) assert.ok(result.ok);
    for (const result of await remote.bulkDocs(languages.slice(half))) assert.ok(result.ok);
    const sync = startSync(t);
    await sync.idle();
    await sync.stop();
    assert.equal((await remote.info()).doc_count, languages.length);
  });

  await t.test('conflicts made while disconnected', async (t) => {
    const made = await makeConflicts(20);
    const sync = startSync(t);
    await sync.idle();
    await assertKept(made);
    await conflicts.resolve(local, made.editBoth.slice(0, 5));
    await conflicts.resolve(remote, made.editBoth.slice(5, 10));
    await sync.idle();
    await sync.stop();
  });

  await t.test('conflicts made while live', async (t) => {
    const sync = startSync(t);
    await sync.idle();
    const made = await makeConflicts(20);
    await sync.idle();
    await assertKept(made);
    await sync.stop();
  });

  await t.test('all leaves, bodies, winners and counts are equal', () => assertSameReplicas(local, remote));
});

test('a second sync of a pair in step writes nothing', async () => {
  const sequences = async () => [(await local.info()).update_seq, (await remote.info()).update_seq];
  const before = await sequences();

  const fromStart = await PouchDB.sync(local, remote, { since: 0 });
  for (const direction of [fromStart.push, fromStart.pull]) assert.equal(direction.docs_written, 0);

  requests.length = 0;
  await PouchDB.sync(local, remote);
  const changes = requests.filter((request) => request.includes('_changes'));
  assert.equal(changes.length, 1);
  assert.match(changes[0], new RegExp(`since=${before[1]}(&|$)`), 'the pull goes on from the checkpoint');
  const transfers = requests.filter((request) => /_revs_diff|_bulk_docs|_bulk_get/.test(request));
  assert.deepEqual(transfers, [], 'the checkpoints say that there is nothing to transfer');

  assert.deepEqual(await sequences(), before, 'checkpoints and known revisions take no sequence');
});

test('PouchDB replicates from one database of the server to another', async () => {
  const copy = new PouchDB(`${serverUrl}/languages-copy`);
  const { docs_written, doc_write_failures } = await PouchDB.replicate(remote, copy);
  assert.equal(doc_write_failures, 0);
  assert.ok(docs_written >= languages.length);
  await assertSameReplicas(remote, copy);
});
