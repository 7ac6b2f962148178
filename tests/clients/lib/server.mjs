// The server under test, spoken to in plain HTTP: what the scripts need besides the client they try.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

assert.ok(process.env.SEQTIDE_URL, 'SEQTIDE_URL must name the server under test, e.g. http://127.0.0.1:5984');

/** The server's address, without a trailing slash. */
export const serverUrl = process.env.SEQTIDE_URL.replace(/\/$/, '');

/** Sends a JSON request and returns `{status, body}`; a server that cannot be reached rejects. */
export async function request(method, path, body) {
  const response = await fetch(`${serverUrl}/${path}`, {
    method,
    headers: { 'Content-Type': 'application/json' },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

/** Creates a database that must not exist yet, and returns its URL. */
export async function createDatabase(name) {
  const { status, body } = await request('PUT', name);
  assert.equal(status, 201, `PUT /${name}: ${JSON.stringify(body)}`);
  return `${serverUrl}/${name}`;
}

/** Writes new documents `{_id, ..}` one request each, trying again while the server is away. */
export async function writeDocuments(database, documents) {
  for (const document of documents) await writeDocument(database, document);
}

/** Writes a new document. An attempt whose answer was lost may have been committed: a retry's 409 says so. */
async function writeDocument(database, document) {
  const path = `${database}/${encodeURIComponent(document._id)}`;
  for (let attempt = 1; ; attempt += 1) {
    const answer = await request('PUT', path, document).catch(() => null);
    if (answer?.status === 201 || (answer?.status === 409 && attempt > 1)) return;
    if (answer && answer.status !== 503) assert.fail(`PUT /${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    await pause(20);
  }
}

/** Has the test that started this script stop the server and start it again at the same address. */
export const restartServer = () => command('RESTART', 'RESTARTED');

/** Has the test that started this script stop the server. */
export const stopServer = () => command('STOP', 'STOPPED');

/** Has the test that started this script start the server that was stopped, at the same address. */
export const startServer = () => command('START', 'STARTED');

/** A line on stdout asks for something, a line on stdin says that it is done. */
async function command(asked, done) {
  const lines = createInterface({ input: process.stdin });
  const answer = once(lines, 'line');
  process.stdout.write(`${asked}\n`);
  const [line] = await answer;
  lines.close();
  assert.equal(line, done);
}
