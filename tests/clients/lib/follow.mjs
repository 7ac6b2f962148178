// What every follower of a feed must have seen, whichever client and wire form it uses.

import assert from 'node:assert/strict';
import { languages } from './languages.mjs';
import { restartServer, writeDocuments } from './server.mjs';
import { until } from './wait.mjs';

const BEFORE = languages.slice(0, 200);
const DURING = languages.slice(200, 1200);
const AFTER = languages.slice(1200, 1400);

/**
 * Writes documents before, during and after a restart of the server, and waits until `rows`, the list a follower
 * fills, has them all: each once, in strictly rising order of sequences.
 */
export async function followAcrossRestart(database, rows) {
  await writeDocuments(database, BEFORE);
  await seen(rows, BEFORE);

  const restart = { done: false };
  const during = writeWhile(database, DURING, () => !restart.done);
  await restartServer();
  restart.done = true;
  const written = [...BEFORE, ...(await during), ...AFTER];
  await writeDocuments(database, AFTER);

  await seen(rows, written);
  assertExactly(rows, written);
}

/** Writes documents one after the other for as long as `goesOn` (at least one), and returns those written. */
async function writeWhile(database, documents, goesOn) {
  const written = [];
  for (const document of documents) {
    await writeDocuments(database, [document]);
    written.push(document);
    if (!goesOn()) break;
  }
  return written;
}

async function seen(rows, documents) {
  const missing = () => {
    const ids = new Set(rows.map((row) => row.id));
    return documents.filter((document) => !ids.has(document._id)).map((document) => document._id);
  };
  await until('every document is seen on the feed', () => rows.length >= documents.length && missing().length === 0, {
    state: () => `(${missing().length} of ${documents.length} missing: ${missing().slice(0, 10)})`,
  });
}

function assertExactly(rows, documents) {
  assertRising(rows.map((row) => row.seq));
  assert.equal(rows.length, documents.length, 'a document written once has one row');
}

/** Sequences are numbers, and each is above the one before. */
export function assertRising(seqs) {
  seqs.forEach((seq, index) => {
    assert.equal(typeof seq, 'number', `sequence ${JSON.stringify(seq)} is a number`);
    assert.ok(index === 0 || seq > seqs[index - 1], `sequence ${seq} comes after ${seqs[index - 1]}`);
  });
}
