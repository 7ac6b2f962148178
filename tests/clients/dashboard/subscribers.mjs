// The subscribers' page of the dashboard in a real browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hold, openPage, sees } from '../lib/browser.mjs';
import { createDatabase, request, startServer, stopServer, writeDocuments } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(180);

/** A feed of lines that is read; `text` is all that came, and `ended` whether it has ended. It is left with the test. */
async function follow(t, url) {
  const abort = new AbortController();
  t.after(() => abort.abort());
  const response = await fetch(url, { signal: abort.signal });
  const followed = { text: '', ended: false };
  (async () => {
    for await (const piece of response.body) followed.text += Buffer.from(piece);
  })()
    .catch(() => {})
    .finally(() => (followed.ended = true));
  return followed;
}

const row = (page, database) => page.locator(`tbody tr:has(a:text-is("${database}"))`);
const cells = async (page, database) => (await row(page, database).locator('td').allInnerTexts()).map((text) => text.trim());

test('a feed is shown with what it follows and how far it has come, and one is ended', async (t) => {
  const database = await createDatabase('subscribed');
  const other = await createDatabase('subscribed-too');
  const ended = await follow(t, `${database}/_feed?since=0&prefix=a-`);
  const kept = await follow(t, `${other}/_feed?since=0`);
  const page = await openPage(t, '/feeds');
  await row(page, 'subscribed').waitFor();
  await writeDocuments('subscribed', [{ _id: 'b-1' }, { _id: 'a-1' }, { _id: 'a-2' }]);
  await until('two rows are sent', async () => (await cells(page, 'subscribed'))[8] === '2');
  const [kind, , client, filter, state, position, lacks] = await cells(page, 'subscribed');
  assert.deepEqual([kind, filter, state, position, lacks], ['lines', 'prefix: "a-"', 'live', '3', '0 rows']);
  assert.match(client, /^127\.0\.0\.1:\d+$/);

  await row(page, 'subscribed').getByRole('button').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  assert.ok(!ended.ended, 'Cancel is no');
  await row(page, 'subscribed').getByRole('button').click();
  await page.getByRole('dialog').getByRole('button', { name: 'End it' }).click();
  await row(page, 'subscribed').waitFor({ state: 'detached' });
  await until('its reader is told', () => ended.ended && ended.text.includes('"reason":"revoked"'), { state: () => ended.text });
  assert.ok(!kept.ended, 'the other goes on');
  assert.equal(await row(page, 'subscribed-too').count(), 1);
});

// All rows were put in anew, and a row that is loses a click that is under way, and the focus.
test('a row stays where it is while other feeds come and go', async (t) => {
  const [before, database, behind] = [await createDatabase('stays-before'), await createDatabase('stays'), await createDatabase('stays-behind')];
  await follow(t, `${before}/_feed`);
  await follow(t, `${database}/_feed`);
  const page = await openPage(t, '/feeds');
  const end = row(page, 'stays').getByRole('button');
  await end.hover();
  await page.mouse.down();
  await follow(t, `${behind}/_feed`);
  await row(page, 'stays-behind').waitFor();
  await page.mouse.up();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await end.focus();
  await request('DELETE', 'stays-before');
  await row(page, 'stays-before').waitFor({ state: 'detached' });
  assert.ok(await end.evaluate((button) => button === document.activeElement));
});

test('many feeds are turned over by page', async (t) => {
  const database = await createDatabase('subscribed-often');
  await Promise.all(Array.from({ length: 60 }, () => follow(t, `${database}/_feed`)));
  const page = await openPage(t, '/feeds');
  await until('a full page', async () => (await page.locator('tbody tr').count()) === 50);
  const first = await page.locator('tbody th').first().innerText();
  await page.getByRole('button', { name: 'Next' }).click();
  await until('the others', async () => (await page.locator('tbody tr').count()) < 50 && (await page.locator('tbody th').first().innerText()) !== first);
  assert.ok(await page.getByRole('button', { name: 'Next' }).isDisabled());
  await page.getByRole('button', { name: 'Previous' }).click();
  await until('the first page again', async () => (await page.locator('tbody th').first().innerText()) === first);
});

test('the page goes on after a restart', async (t) => {
  const page = await openPage(t, '/feeds');
  await sees(page, 'caption', 'open');
  await stopServer();
  await sees(page, '.error', 'The feeds cannot be listed');
  await startServer();
  await until('no error any more', async () => (await page.locator('.error').innerText()) === '');
  const database = await createDatabase('subscribed-after');
  await follow(t, `${database}/_feed`);
  await row(page, 'subscribed-after').waitFor();
  assert.equal((await request('GET', 'subscribed-after')).status, 200);
});

// A server that was slow to answer was asked once more each second.
test('a page that waits for an answer asks no second time, and shows the page that was turned to last', async (t) => {
  const database = await createDatabase('subscribed-slow');
  await Promise.all(Array.from({ length: 60 }, () => follow(t, `${database}/_feed`)));
  const page = await openPage(t, '/none');
  await page.clock.install();
  await page.evaluate(() => (location.hash = '#/feeds'));
  await until('a full page', async () => (await page.locator('tbody tr').count()) === 50);
  const first = await page.locator('tbody th').first().innerText();
  const held = await hold(page, '**/_feeds?*');
  await page.clock.runFor(4000);
  await page.evaluate(() => fetch('../_up'));
  assert.equal(held.length, 1, 'one at a time');
  await page.getByRole('button', { name: 'Next' }).click();
  await held[0].send();
  await until('it asks for the next page', () => held.length === 2);
  await held[1].send();
  await until('the others', async () => (await page.locator('tbody th').first().innerText()) !== first);
  assert.ok(await page.getByRole('button', { name: 'Previous' }).isEnabled());
});
