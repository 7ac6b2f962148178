// The npm package `ws` follows `_feed` over WebSocket, across a restart: every message is a JSON array of rows and
// events, and a client that was cut off asks again from the last sequence it saw.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import WebSocket from 'ws';
import { assertRising, followAcrossRestart } from './lib/follow.mjs';
import { languages } from './lib/languages.mjs';
import { createDatabase, writeDocuments } from './lib/server.mjs';
import { deadline, until } from './lib/wait.mjs';

deadline(300);

const websocketUrl = (database) => `${database.replace(/^http/, 'ws')}/_feed`;

/** Collects what a socket receives into `followed`: rows have no `event` member, everything else has one. */
function collect(socket, followed) {
  socket.on('message', (data, isBinary) => {
    assert.equal(isBinary, false, 'messages are text');
    const items = JSON.parse(data);
    assert.ok(Array.isArray(items) && items.length > 0, `a message is an array of rows and events: ${data}`);
    for (const item of items) (item.event === undefined ? followed.rows : followed.events).push(item);
  });
}

/** Follows a database from sequence 0, and connects again from the last row's sequence whenever it is cut off. */
function follow(database) {
  const followed = { rows: [], events: [], closes: [], opened: 0, stopped: false };
  const connect = () => {
    if (followed.stopped) return;
    const socket = new WebSocket(`${websocketUrl(database)}?since=${followed.rows.at(-1)?.seq ?? 0}&heartbeat=1000`);
    followed.stop = () => {
      followed.stopped = true;
      socket.terminate();
    };
    collect(socket, followed);
    socket.on('open', () => (followed.opened += 1));
    socket.on('error', () => {});
    socket.on('close', (code) => {
      followed.closes.push(code);
      setTimeout(connect, 50);
    });
  };
  connect();
  return followed;
}

test('_feed: a client that reconnects from its last sequence loses nothing across a restart', async (t) => {
  const database = await createDatabase('ws-feed');
  const followed = follow(database);
  t.after(() => followed.stop());

  await followAcrossRestart('ws-feed', followed.rows);
  assert.ok(followed.opened >= 2, 'the client connected again');
  assert.equal(followed.closes[0], 1001, 'a server that stops says that it goes away');

  const { rows, events } = followed;
  const beats = () => events.filter(({ event, seq }) => event === 'heartbeat' && seq === rows.at(-1).seq);
  await until('a heartbeat names the last sequence', () => beats().length > 0);
  assert.equal(beats()[0].pending, 0);
  const turns = events.map(({ event }) => event).filter((event) => event !== 'heartbeat');
  assert.deepEqual(turns.slice(0, 3), ['opened', 'caught-up', 'end']);
  assert.equal(turns.at(-1), 'caught-up');
  assert.equal(typeof events.find(({ event }) => event === 'end').reason, 'string');
  for (const { event, seq } of events) assert.equal(typeof seq, 'number', `the ${event} event has a sequence`);
});

test('_feed: without options in the URL the first message brings them', async (t) => {
  const database = await createDatabase('ws-message');
  const documents = languages.slice(0, 50);
  await writeDocuments('ws-message', documents.slice(0, 40));

  const followed = { rows: [], events: [] };
  const socket = new WebSocket(websocketUrl(database));
  t.after(() => socket.terminate());
  collect(socket, followed);
  socket.on('open', () => socket.send(JSON.stringify({ since: 0, include_docs: true })));
  await until('caught up', () => followed.events.some(({ event }) => event === 'caught-up'));
  assert.equal(followed.rows.length, 40, 'what was there comes before caught-up');

  await writeDocuments('ws-message', documents.slice(40));
  await until('live rows', () => followed.rows.length === documents.length);
  assertRising(followed.rows.map((row) => row.seq));
  const received = followed.rows.map(({ doc: { _rev, ...document } }) => document);
  assert.deepEqual(received, documents);
});

test('_feed: live=false ends with an end event and close code 1000', async () => {
  const database = await createDatabase('ws-end');
  await writeDocuments('ws-end', languages.slice(0, 10));

  const followed = { rows: [], events: [], code: 0 };
  const socket = new WebSocket(`${websocketUrl(database)}?since=0&live=false`);
  collect(socket, followed);
  socket.on('close', (code) => (followed.code = code));
  await until('the socket is closed', () => followed.code !== 0);
  assert.equal(followed.code, 1000);
  assert.equal(followed.rows.length, 10);
  assert.equal(followed.events.at(-1).event, 'end');
});
