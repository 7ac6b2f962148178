// The npm package `eventsource`, an implementation of the browser's EventSource, follows both SSE feeds across a
// restart: it reconnects by itself, and its `Last-Event-ID` is all it knows of where it was.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EventSource } from 'eventsource';
import { assertRising, followAcrossRestart } from './lib/follow.mjs';
import { languages } from './lib/languages.mjs';
import { createDatabase, serverUrl, writeDocuments } from './lib/server.mjs';
import { deadline, until } from './lib/wait.mjs';

deadline(300);

/** Follows `url`: rows by `onmessage`, events with one of these names, and how often the connection opened. */
function follow(url, names) {
  const source = new EventSource(url);
  const followed = { source, rows: [], ids: [], events: [], opened: 0 };
  source.onopen = () => (followed.opened += 1);
  source.onmessage = ({ data, lastEventId }) => {
    followed.rows.push(JSON.parse(data));
    followed.ids.push(lastEventId);
  };
  for (const name of names) {
    source.addEventListener(name, ({ data, lastEventId }) => followed.events.push({ name, data, lastEventId }));
  }
  return followed;
}

/** Every row's event carries its sequence as `id:`. */
function assertRowIds({ rows, ids }) {
  assert.deepEqual(ids, rows.map((row) => String(row.seq)));
}

test('_feed: rows come by onmessage, across a restart, and every event has an id', async (t) => {
  const database = await createDatabase('eventsource-feed');
  const names = ['heartbeat', 'caught-up', 'end'];
  const followed = follow(`${database}/_feed?since=0&heartbeat=1000`, names);
  t.after(() => followed.source.close());

  await followAcrossRestart('eventsource-feed', followed.rows);
  assertRowIds(followed);
  assert.equal(followed.opened, 2, 'one connection before the restart, one after it');

  const { rows, events } = followed;
  const last = rows.at(-1).seq;
  const beat = () => events.find((event) => event.name === 'heartbeat' && JSON.parse(event.data).seq === last);
  await until('a heartbeat names the last sequence', beat);
  assert.equal(JSON.parse(beat().data).pending, 0);
  for (const { name, data, lastEventId } of events) {
    const event = JSON.parse(data);
    assert.equal(event.event, name);
    assert.equal(lastEventId, String(event.seq), `the ${name} event carries its sequence as id`);
  }
  assert.equal(events.filter((event) => event.name === 'caught-up').length, 2, 'caught up once a connection');
  const ends = events.filter((event) => event.name === 'end').map((event) => JSON.parse(event.data));
  assert.equal(ends.length, 1, 'the stopping server ended the feed');
  assert.equal(typeof ends[0].reason, 'string');
});

test('_feed/many: one connection resumes all of its subscriptions across a restart', async (t) => {
  await createDatabase('eventsource-many');
  const of = (options) => ({ db: 'eventsource-many', since: 0, ...options });
  const subscriptions = JSON.stringify([of({ subscribe: 'all' }), of({ subscribe: 'some', prefix: 'b' })]);
  const source = new EventSource(`${serverUrl}/_feed/many?heartbeat=1000&subscriptions=${encodeURIComponent(subscriptions)}`);
  t.after(() => source.close());
  const [all, some, connections] = [[], [], []];
  source.onmessage = ({ data }) => {
    for (const item of JSON.parse(data)) {
      if (item.event === 'connection') connections.push(item.id);
      if (item.event === undefined) ({ all, some })[item.sub].push(item);
    }
  };

  await followAcrossRestart('eventsource-many', all);
  const expected = all.filter(({ id }) => id.startsWith('b')).map(({ seq }) => seq);
  await until('all of those with the prefix', () => some.length >= expected.length);
  assert.deepEqual(some.map(({ seq }) => seq), expected);
  assert.equal(new Set(connections).size, 2, 'one connection before the restart, one after it');
});

test('_changes?feed=eventsource: no row is lost or repeated across a restart', async (t) => {
  const database = await createDatabase('eventsource-changes');
  const followed = follow(`${database}/_changes?feed=eventsource&since=0&heartbeat=1000`, ['heartbeat']);
  t.after(() => followed.source.close());

  await followAcrossRestart('eventsource-changes', followed.rows);
  assertRowIds(followed);
  assert.equal(followed.opened, 2, 'one connection before the restart, one after it');

  const beats = followed.events.length;
  await until('a quiet feed beats', () => followed.events.length > beats);
  assert.equal(followed.events.at(-1).data, '');
});

test('_changes?feed=eventsource with include_docs: the rows carry the documents', async (t) => {
  const database = await createDatabase('eventsource-documents');
  const documents = languages.slice(-20);
  await writeDocuments('eventsource-documents', documents);

  const followed = follow(`${database}/_changes?feed=eventsource&since=0&include_docs=true`, []);
  t.after(() => followed.source.close());
  await until('all rows', () => followed.rows.length === documents.length);
  assertRising(followed.rows.map((row) => row.seq));
  followed.rows.forEach(({ doc: { _rev, ...document } }, index) => assert.deepEqual(document, documents[index]));
});
