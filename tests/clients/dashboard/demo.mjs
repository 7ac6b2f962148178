// What a newcomer sees first: `seqtide demo` in the dashboard, and in the example of a page of one's own.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage, sees } from '../lib/browser.mjs';
import { looks } from '../lib/looks.mjs';
import { request, serverUrl, startServer, stopServer } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(300);

const IDS = ['cpu', 'disk', 'memory', 'network', 'processes'];
const EXAMPLE = 'examples/host.html';
/** How many points the lines of the example have. */
const points = (page) => page.locator('path').evaluateAll((paths) => paths.map((path) => path.getAttribute('d')?.split('L').length ?? 0));
const allAreDrawn = (page) => until('five cards with a line each', async () => (await points(page)).length === 5 && (await points(page)).every((many) => many >= 2));
const generation = async (id) => parseInt((await request('GET', `demo/${id}`)).body._rev ?? '0');

test('the figures are this machine\'s, and each is a document that moves', async () => {
  await until('all documents', async () => (await request('GET', 'demo')).body?.doc_count === IDS.length);
  const { body: cpu } = await request('GET', 'demo/cpu');
  assert.ok(cpu.percent >= 0 && cpu.percent <= 100, JSON.stringify(cpu));
  assert.ok(Math.abs(cpu.at - Date.now() / 1000) < 30, 'taken just now');
  const { body: memory } = await request('GET', 'demo/memory');
  assert.ok(memory.used_bytes > 0 && memory.used_bytes < memory.total_bytes, JSON.stringify(memory));
  const before = await generation('disk');
  await until('the next revision', async () => (await generation('disk')) > before);
});

test('the dashboard shows them as they come', async (t) => {
  const page = await openPage(t, '/db/demo');
  const seen = () => page.evaluate(() => globalThis.seqtide.page.log.rows.map((row) => row.id));
  await until('each twice', async () => (await seen()).length >= 2 * IDS.length);
  assert.deepEqual([...new Set(await seen())].sort(), IDS);
});

test('the example page shows each, by a policy that knows its script, and goes on after a restart', async (t) => {
  const { headers } = await fetch(`${serverUrl}/_dashboard/${EXAMPLE}`);
  assert.match(headers.get('content-security-policy'), /script-src 'self' 'sha256-[^']+'; style-src 'self' 'sha256-/);
  const page = await openPage(t, '', { file: EXAMPLE });
  await sees(page, '#state', /^live$/);
  const drawn = () => points(page);
  await allAreDrawn(page);
  await stopServer();
  await sees(page, '#state', 'connection lost');
  const before = Math.max(...(await drawn()));
  await startServer();
  await sees(page, '#state', /^live$/);
  await until('the lines go on', async () => (await drawn()).every((points) => points > before));
});

// It took what every object has for a card, and went no further.
test('the example passes over documents that are none of its own', async (t) => {
  const ids = ['constructor', 'toString', 'else'];
  for (const id of ids) await request('PUT', `demo/${id}`, {});
  const page = await openPage(t, '', { file: EXAMPLE });
  await allAreDrawn(page);
  for (const id of ids) await request('DELETE', `demo/${id}?rev=${(await request('GET', `demo/${id}`)).body._rev}`);
});

test('without its database the example says so', async (t) => {
  const page = await openPage(t, '', { file: EXAMPLE });
  await page.route('**/demo/_feed?*', (route) => route.fulfill({ status: 404, body: '{}' }));
  await page.reload();
  await sees(page, '#state', 'refused');
});

looks('host', { file: EXAMPLE }, allAreDrawn);
looks('demo-overview', {}, (page) => sees(page, 'tbody', 'demo'));
looks('demo-feed', { place: '/db/demo' }, (page) => page.getByRole('option').nth(10).waitFor());
