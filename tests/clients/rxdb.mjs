// The npm package `rxdb` replicates collections with the server, live and both ways, as an application made offline first does: four
// of them at one database, across an orderly restart and with an edit that two of them make apart.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRxDatabase } from 'rxdb/plugins/core';
import { replicateCouchDB } from 'rxdb/plugins/replication-couchdb';
import { getRxStorageMemory } from 'rxdb/plugins/storage-memory';
import { createDatabase, request, restartServer } from './lib/server.mjs';
import { deadline, until } from './lib/wait.mjs';

deadline(300);

const schema = {
  version: 0,
  primaryKey: 'id',
  type: 'object',
  properties: { id: { type: 'string', maxLength: 100 }, text: { type: 'string' } },
  required: ['id', 'text'],
};

/** A collection in memory, in step with the server's database until the end of the test. */
async function client(t, name, url) {
  const database = await createRxDatabase({ name, storage: getRxStorageMemory(), multiInstance: false });
  const { notes } = await database.addCollections({ notes: { schema } });
  // It does not give up a longpoll by itself when it is closed.
  const closing = new AbortController();
  const replication = replicateCouchDB({
    fetch: (address, options) => fetch(address, { ...options, signal: closing.signal }),
    replicationIdentifier: name,
    collection: notes,
    url: `${url}/`,
    live: true,
    retryTime: 300,
    waitForLeadership: false,
    pull: { batchSize: 10 },
    push: { batchSize: 10 },
  });
  t.after(async () => {
    await database.close();
    closing.abort();
  });
  await replication.awaitInitialReplication();
  return notes;
}

/** The documents of a collection, as `{id: text}`. */
async function held(notes) {
  const documents = await notes.find().exec();
  return Object.fromEntries(documents.map(({ id, text }) => [id, text]).sort());
}

/** The documents of the server's database, likewise. */
async function stored(database) {
  const { body } = await request('GET', `${database}/_all_docs?include_docs=true`);
  return Object.fromEntries(body.rows.map(({ id, doc }) => [id, doc.text]).sort());
}

const isSame = (one, other) => JSON.stringify(one) === JSON.stringify(other);

test('RxDB replicates live, both ways, across a restart', async (t) => {
  const url = await createDatabase('rxdb');
  assert.equal((await request('PUT', 'rxdb/before', { text: 'before' })).status, 201);
  const clients = await Promise.all(['one', 'two', 'three', 'four'].map((name) => client(t, name, url)));
  const allHave = (wanted) =>
    until(`all have ${Object.keys(wanted)}`, async () => {
      const all = await Promise.all([stored('rxdb'), ...clients.map(held)]);
      return all.every((held) => isSame(held, wanted));
    }, { state: async () => JSON.stringify([await stored('rxdb'), ...(await Promise.all(clients.map(held)))]) });

  await t.test('what is there, and what each writes', async () => {
    await Promise.all(clients.map((notes, index) => notes.insert({ id: `from-${index}`, text: 'new' })));
    await allHave({ before: 'before', 'from-0': 'new', 'from-1': 'new', 'from-2': 'new', 'from-3': 'new' });
  });

  await t.test('what is edited and deleted', async () => {
    await (await clients[1].findOne('from-0').exec()).patch({ text: 'edited' });
    await (await clients[2].findOne('from-1').exec()).remove();
    await allHave({ before: 'before', 'from-0': 'edited', 'from-2': 'new', 'from-3': 'new' });
  });

  await t.test('what happens while the server restarts, and behind it', async () => {
    const restarting = restartServer();
    await clients[0].insert({ id: 'meanwhile', text: 'new' });
    await restarting;
    assert.equal((await request('PUT', 'rxdb/behind', { text: 'new' })).status, 201);
    await clients[3].insert({ id: 'later', text: 'new' });
    const both = { before: 'before', behind: 'new', 'from-0': 'edited', 'from-2': 'new', 'from-3': 'new' };
    await allHave({ ...both, later: 'new', meanwhile: 'new' });
  });

  await t.test('one of two edits that are made apart', async () => {
    const [first, second] = await Promise.all(clients.slice(0, 2).map((notes) => notes.findOne('before').exec()));
    await Promise.all([first.patch({ text: 'first' }), second.patch({ text: 'second' })]);
    await until('all have the same one', async () => {
      const texts = await Promise.all([stored('rxdb'), ...clients.map(held)]);
      const [text, ...others] = texts.map(({ before }) => before);
      return text !== 'before' && others.every((other) => other === text);
    });
  });
});
