// The npm package `pouchdb` replicates only what a filter lets pass, by each kind of filter it knows, once and live, and
// is refused what a validation function does not take.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import PouchDB from 'pouchdb';
import memory from 'pouchdb-adapter-memory';
import { languages } from './lib/languages.mjs';
import { serverUrl } from './lib/server.mjs';
import { deadline, until } from './lib/wait.mjs';

deadline(300);
PouchDB.plugin(memory);

const remote = new PouchDB(`${serverUrl}/languages`);
const extinct = ({ type }) => type === 'extinct';

/** What the source has, by the functions of its design document. */
const design = {
  _id: '_design/languages',
  filters: { type: 'function (doc, req) { return doc.type === req.query.type; }' },
  views: { extinct: { map: "function (doc) { if (doc.type === 'extinct') emit(doc._id); }" } },
};

/** Each kind of filter, as PouchDB takes it, and which documents it lets pass. */
const kinds = {
  'a selector': [{ selector: { type: 'extinct' } }, extinct],
  ids: [{ doc_ids: ['deu', 'jpn', 'none'] }, ({ _id }) => ['deu', 'jpn'].includes(_id)],
  'a design function': [{ filter: 'languages/type', query_params: { type: 'extinct' } }, extinct],
  'a view': [{ filter: '_view', view: 'languages/extinct' }, extinct],
};

let locals = 0;
const local = () => new PouchDB(`local-${(locals += 1)}`, { adapter: 'memory' });

async function ids(database) {
  const { rows } = await database.allDocs();
  return rows.map(({ id }) => id).sort();
}

test('the source is filled', async () => {
  await remote.bulkDocs([design, ...languages]);
  assert.ok(languages.some(extinct) && !languages.every(extinct));
});

for (const [kind, [options, passes]] of Object.entries(kinds)) {
  test(`${kind}: what passes is replicated, and nothing else`, async () => {
    const target = local();
    const result = await target.replicate.from(remote, options);
    const expected = languages.filter(passes).map(({ _id }) => _id).sort();
    assert.deepEqual(await ids(target), expected);
    assert.equal(result.docs_written, expected.length);
    const again = await target.replicate.from(remote, options);
    assert.equal(again.docs_read, 0, 'the checkpoint is past what did not pass');
  });

  test(`${kind}: live, what passes comes as it is written`, async (t) => {
    const target = local();
    const replication = target.replicate.from(remote, { ...options, live: true, since: 'now' });
    t.after(() => replication.cancel());
    const failures = [];
    replication.on('error', (error) => failures.push(error)).on('denied', (denied) => failures.push(denied));
    await new Promise((resolve) => replication.once('paused', resolve));
    const [inside, outside] = [languages.find(passes), languages.find((language) => !passes(language))];
    for (const { _id } of [outside, inside]) {
      const doc = await remote.get(_id);
      await remote.put({ ...doc, touched: kind });
    }
    const arrived = async () => (await target.get(inside._id).catch(() => ({}))).touched === kind;
    await until('what passes has arrived', arrived, { seconds: 60 });
    assert.deepEqual(await ids(target), [inside._id]);
    assert.deepEqual(failures, []);
  });
}

test('what a validation function refuses stays behind, and the rest is replicated', async () => {
  const guarded = new PouchDB(`${serverUrl}/guarded`);
  const refuses = "function (doc) { if (doc.secret) throw({ forbidden: 'no secrets' }); }";
  await guarded.put({ _id: '_design/guard', validate_doc_update: refuses });
  const source = local();
  await source.bulkDocs([{ _id: 'open' }, { _id: 'hidden', secret: true }]);
  const denied = [];
  const result = await source.replicate.to(guarded).on('denied', (error) => denied.push(error));
  assert.deepEqual(denied.map(({ id, name, reason }) => [id, name, reason]), [['hidden', 'forbidden', 'no secrets']]);
  assert.deepEqual([result.docs_written, result.doc_write_failures], [1, 1]);
  assert.deepEqual(await ids(guarded), ['_design/guard', 'open']);
});

test('what the server cannot store stays behind, and the rest is replicated', async () => {
  const remote = new PouchDB(`${serverUrl}/bounded`);
  const source = local();
  let deep = 1;
  for (let level = 0; level < 600; level += 1) deep = [deep];
  const data = Buffer.from('text').toString('base64');
  const attached = { _id: 'attached', _attachments: { a: { content_type: 'text/plain', data } } };
  const long = 'x'.repeat(501);
  const large = { _id: 'large', text: 'x'.repeat(8_100_000) };
  await source.bulkDocs([attached, { _id: 'deep', deep }, large, { _id: long }, { _id: 'a' }, { _id: 'z' }]);
  const denied = [];
  const result = await source.replicate.to(remote).on('denied', (error) => denied.push(error.id));
  assert.deepEqual(denied.sort(), ['attached', 'deep', 'large', long]);
  assert.deepEqual([result.ok, result.docs_written, result.doc_write_failures], [true, 2, 4]);
  assert.deepEqual(await ids(remote), ['a', 'z']);
});
