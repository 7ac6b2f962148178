// The dashboard without a mouse: everything that can be done is done with keys.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage, sees } from '../lib/browser.mjs';
import { press, tabTo } from '../lib/keyboard.mjs';
import { createDatabase, request, serverUrl } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(300);

const ids = (page) => page.evaluate(() => globalThis.seqtide.page.log.rows.map((row) => row.id));
const button = (page, name) => page.getByRole('button', { name, exact: true });
const field = (page, label) => page.getByLabel(label, { exact: true });
const documents = (prefix, many) => Array.from({ length: many }, (_, at) => ({ _id: `${prefix}-${String(at).padStart(3, '0')}`, at }));

test('the skip link comes first, a database is opened, a row selected, its document edited', async (t) => {
  await createDatabase('keys-edit');
  await request('POST', 'keys-edit/_bulk_docs', { docs: documents('row', 60) });
  const page = await openPage(t);
  await sees(page, 'tbody', 'keys-edit');
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  await press(page, page.getByRole('link', { name: 'keys-edit' }));
  await sees(page, '.controls .notice', '60 rows');
  await press(page, page.getByRole('listbox'), 'ArrowDown');
  await sees(page, '.detail h2', 'row-059');
  await page.keyboard.press('Enter');
  await sees(page, 'h1', 'row-059');
  await press(page, button(page, 'Edit'));
  await page.locator('textarea:focus').waitFor();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('{"by": "keyboard"}');
  await page.keyboard.press('Control+Enter');
  await sees(page, '.body .json', 'keyboard');
  assert.equal((await request('GET', 'keys-edit/row-059')).body.by, 'keyboard');
});

test('a feed is paused, gone back over, filtered and copied', async (t) => {
  await createDatabase('keys-feed');
  await request('POST', 'keys-feed/_bulk_docs', { docs: documents('n', 150) });
  const page = await openPage(t, '/db/keys-feed');
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: serverUrl });
  await until('the newest 100', async () => (await ids(page)).length === 100);
  await press(page, page.getByLabel('Changes since'), 'Home');
  await until('from the beginning', async () => (await ids(page)).length === 150);
  await press(page, button(page, 'Now'), 'Space');
  await until('nothing yet', async () => (await ids(page)).length === 0);
  await press(page, button(page, 'Pause'), 'Space');
  await request('PUT', 'keys-feed/new', {});
  await sees(page, '.controls .notice', '0 rows, 1 wait');
  await press(page, button(page, 'Resume'), 'Space');
  await until('the row that waited', async () => (await ids(page)).join() === 'new');
  await press(page, button(page, 'Beginning'));
  await press(page, page.getByText('Filter', { exact: true }));
  await tabTo(page, field(page, 'Selector'));
  await page.keyboard.type('{"at": {"$lt": 3}}');
  await press(page, button(page, 'Apply'));
  await until('what passes', async () => (await ids(page)).join() === 'n-000,n-001,n-002');
  await press(page, page.getByText('The same in curl'));
  for (const name of ['curl', 'EventSource', 'WebSocket']) {
    await press(page, button(page, `Copy the ${name} snippet`));
    await page.locator('.snippet', { has: button(page, `Copy the ${name} snippet`) }).getByText('copied').waitFor();
    const shown = await page.locator(`[aria-label="${name} snippet"]`).innerText();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), shown);
  }
});

test('an old revision is looked at, a conflict resolved, the document deleted', async (t) => {
  await createDatabase('keys-document');
  const leaf = (rev, ids, says) => ({ _id: 'd', _rev: rev, _revisions: { start: ids.length, ids }, says });
  await request('POST', 'keys-document/_bulk_docs', { new_edits: false, docs: [leaf('2-b', ['b', 'a'], 'b'), leaf('2-c', ['c', 'a'], 'c')] });
  const page = await openPage(t, '/db/keys-document/doc/d');
  await sees(page, '.body .json', '"c"');
  await press(page, page.locator('.revision.conflict'));
  await sees(page, '.body .json', '"b"');
  await press(page, button(page, 'To the winner'));
  await sees(page, '.body .json', '"c"');
  await press(page, button(page, 'Keep this one: 2-b'));
  const yes = (name) => page.getByRole('dialog').getByRole('button', { name, exact: true });
  await press(page, yes('Keep this one'));
  await page.locator('.conflicts').waitFor({ state: 'detached' });
  assert.equal((await request('GET', 'keys-document/d')).body._rev, '2-b');
  await press(page, button(page, 'Delete'));
  await press(page, yes('Delete'));
  await until('it is deleted', async () => (await request('GET', 'keys-document/d')).status === 404);
  await button(page, 'Write it anew').waitFor();
});

test('databases are found and turned over, a feed is ended, the theme is switched', async (t) => {
  await Promise.all(Array.from({ length: 30 }, (_, at) => createDatabase(`keys-many-${String(at).padStart(2, '0')}`)));
  const page = await openPage(t);
  await tabTo(page, page.getByRole('searchbox'));
  await page.keyboard.type('keys-many');
  await sees(page, 'caption', '30 of');
  await press(page, button(page, 'Next'));
  await page.getByRole('link', { name: 'keys-many-29' }).waitFor();
  await press(page, page.locator('#theme'));
  await sees(page, '#theme', 'light');
  const { body } = await fetch(`${serverUrl}/keys-many-07/_feed`);
  const said = new Response(body).text();
  await press(page, page.getByRole('link', { name: 'Subscribers' }));
  const row = page.locator('tbody tr', { has: page.getByRole('link', { name: 'keys-many-07' }) });
  await press(page, row.getByRole('button'));
  await press(page, page.getByRole('dialog').getByRole('button', { name: 'End it' }));
  await row.waitFor({ state: 'detached' });
  assert.match(await said, /"reason":"revoked"/);
});
