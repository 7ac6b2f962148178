// The npm package `nano`, CouchDB's own client for Node.js, reads and writes.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, test } from 'node:test';
import Nano from 'nano';
import { languages } from './lib/languages.mjs';
import { serverUrl } from './lib/server.mjs';
import { deadline, until } from './lib/wait.mjs';

deadline(180);

const nano = Nano(serverUrl);
const NAME = 'nano-languages';
const db = nano.use(NAME);
const some = languages.slice(0, 250);

const failsWith = (statusCode, error) => (thrown) => {
  assert.equal(thrown.statusCode, statusCode, thrown.message);
  assert.equal(thrown.error, error);
  return true;
};

after(() => nano.db.destroy(NAME).catch(() => {}));

test('a database is created once and listed', async () => {
  assert.deepEqual(await nano.db.create(NAME), { ok: true });
  await assert.rejects(nano.db.create(NAME), failsWith(412, 'file_exists'));
  assert.ok((await nano.db.list()).includes(NAME));
  const info = await nano.db.get(NAME);
  assert.equal(info.db_name, NAME);
  assert.equal(info.doc_count, 0);
});

test('uuids are fresh and as many as asked for', async () => {
  const { uuids } = await nano.uuids(3);
  assert.equal(new Set(uuids).size, 3);
  for (const uuid of uuids) assert.match(uuid, /^[0-9a-f]{32}$/);
});

test('a document is inserted, read, updated and destroyed; a stale revision is a conflict', async () => {
  const id = 'a/slash and ünïcode';
  const first = await db.insert({ name: 'first', list: [1, 2.5, null, true] }, id);
  assert.deepEqual(Object.keys(first), ['ok', 'id', 'rev']);
  assert.equal(first.id, id);
  assert.deepEqual(await db.get(id), { _id: id, _rev: first.rev, name: 'first', list: [1, 2.5, null, true] });

  const second = await db.insert({ _rev: first.rev, name: 'second' }, id);
  assert.match(second.rev, /^2-[0-9a-f]{32}$/);
  await assert.rejects(db.insert({ _rev: first.rev, name: 'late' }, id), failsWith(409, 'conflict'));
  assert.equal((await db.head(id)).etag, `"${second.rev}"`);

  await assert.rejects(db.destroy(id, first.rev), failsWith(409, 'conflict'));
  const third = await db.destroy(id, second.rev);
  assert.match(third.rev, /^3-/);
  await assert.rejects(db.get(id), failsWith(404, 'not_found'));
});

test('a document without an id is given one', async () => {
  const { ok, id, rev } = await db.insert({ name: 'nameless' });
  assert.ok(ok);
  assert.equal((await db.get(id))._rev, rev);
  await db.destroy(id, rev);
});

test('bulk writes answer in the order of the request, conflicts item by item', async () => {
  const results = await db.bulk({ docs: some });
  assert.deepEqual(results.map(({ id }) => id), some.map(({ _id }) => _id));
  assert.ok(results.every(({ ok, rev }) => ok && rev.startsWith('1-')));

  const [created, refused] = await db.bulk({ docs: [{ _id: 'new-one', name: 'new' }, some[0]] });
  assert.ok(created.ok);
  assert.equal(refused.error, 'conflict');
  await db.destroy('new-one', created.rev);
});

test('list with include_docs gives every document in the order of ids, and pages', async () => {
  const ids = some.map(({ _id }) => _id).sort();
  const all = await db.list({ include_docs: true });
  assert.equal(all.total_rows, some.length);
  assert.deepEqual(all.rows.map(({ id }) => id), ids);
  assert.ok(all.rows.every(({ id, value, doc }) => doc._id === id && doc._rev === value.rev && doc.name));

  const page = await db.list({ startkey: ids[10], limit: 5, skip: 1 });
  assert.deepEqual(page.rows.map(({ id }) => id), ids.slice(11, 16));
  const backwards = await db.list({ descending: true, limit: 3 });
  assert.deepEqual(backwards.rows.map(({ id }) => id), ids.slice(-3).reverse());
});

test('fetch with keys answers in the order of the keys, a missing one as an error', async () => {
  const keys = [some[7]._id, 'no-such-document', some[2]._id];
  const { rows } = await db.fetch({ keys });
  assert.deepEqual(rows.map(({ key }) => key), keys);
  assert.equal(rows[0].doc.name, some[7].name);
  assert.equal(rows[1].error, 'not_found');
  const revisions = await db.fetchRevs({ keys });
  assert.equal(revisions.rows[2].value.rev, rows[2].doc._rev);
});

test('changes lists every document once, and goes on from last_seq', async () => {
  const { results, last_seq, pending } = await db.changes({ since: 0 });
  const live = results.filter((row) => !row.deleted).map(({ id }) => id);
  assert.deepEqual(live, some.map(({ _id }) => _id));
  assert.equal(pending, 0);
  assert.deepEqual((await db.changes({ since: last_seq })).results, []);
});

test('changesReader.get reads to the end in batches', async () => {
  const batches = [];
  const reader = nano.use(NAME).changesReader.get({ since: 0, batchSize: 100, timeout: 500, includeDocs: true });
  reader.on('batch', (batch) => batches.push(batch));
  await once(reader, 'end');
  assert.ok(batches.slice(0, -1).every((batch) => batch.length === 100));
  assert.deepEqual(batches.flat(), (await db.changes({ since: 0, include_docs: true })).results);
});

test('changesReader.start sees a change made while it waits', async () => {
  const { last_seq } = await db.changes({ since: 0 });
  const seen = [];
  const { changesReader } = nano.use(NAME);
  const reader = changesReader.start({ since: last_seq, timeout: 5000 });
  // Between two requests: stopping in the middle of one is an error to nano.
  reader.on('change', (change) => {
    seen.push(change);
    changesReader.stop();
  });
  const ended = once(reader, 'end');
  const { rev } = await db.insert({ name: 'live' }, 'live-one');
  await ended;
  assert.deepEqual(seen.map(({ id, changes }) => [id, changes]), [['live-one', [{ rev }]]]);
});

test('changesReader.spool streams all changes in one request', async () => {
  const rows = [];
  const reader = nano.use(NAME).changesReader.spool({ since: 0, batchSize: 50 });
  reader.on('batch', (batch) => rows.push(...batch));
  const [lastSeq] = await once(reader, 'end');
  const { results, last_seq } = await db.changes({ since: 0 });
  assert.deepEqual(rows.map(({ id }) => id), results.map(({ id }) => id));
  assert.equal(lastSeq, last_seq);
});

test('a destroyed database is gone', async () => {
  assert.deepEqual(await nano.db.destroy(NAME), { ok: true });
  await assert.rejects(db.info(), failsWith(404, 'not_found'));
});
