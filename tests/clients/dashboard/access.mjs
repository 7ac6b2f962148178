// The dashboard for everybody: each page at three widths and in both themes, and the switch between these.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { openPage, sees } from '../lib/browser.mjs';
import { looks } from '../lib/looks.mjs';
import { createDatabase, request, serverUrl } from '../lib/server.mjs';
import { deadline } from '../lib/wait.mjs';

deadline(600);

const orders = await createDatabase('orders');
const STATUSES = ['new', 'paid', 'packed', 'sent'];
const order = (at) => ({ status: STATUSES[at % 4], owner: ['ann', 'bob', 'cem'][at % 3], total: at * 12.5, note: 'Leave it with the neighbours. '.repeat(at % 5) });
await request('POST', 'orders/_bulk_docs', { docs: Array.from({ length: 60 }, (_, at) => ({ _id: `order-${String(at).padStart(4, '0')}`, ...order(at) })) });
const revisions = (id, ids, more) => ({ _id: id, _rev: `${ids.length}-${ids[0]}`, _revisions: { start: ids.length, ids }, ...more });
const [first, ...hashes] = ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(32));
const leaves = [revisions('quarrel', [hashes[2], hashes[0], first], order(7)), revisions('quarrel', [hashes[1], hashes[0], first], order(8)), revisions('quarrel', [hashes[3], first], { _deleted: true })];
await request('POST', 'orders/_bulk_docs', { new_edits: false, docs: leaves });

// Readers, each of whom asks for something else; the last one reads nothing, and is behind. Who takes nothing for two
// heartbeats is dropped: it has long ones.
const selector = encodeURIComponent(JSON.stringify({ status: { $in: ['new', 'paid'] }, total: { $gt: 100 } }));
const readers = [
  `${orders}/_feed?since=0&prefix=order-`,
  `${orders}/_feed?since=0&selector=${selector}`,
  `${orders}/_changes?feed=continuous&heartbeat=5000&filter=_doc_ids&doc_ids=["order-0001","order-0002"]`,
  `${serverUrl}/_feed`,
];
const leaving = new AbortController();
const { signal } = leaving;
for (const url of readers) fetch(url, { signal }).then(({ body }) => body.pipeTo(new WritableStream())).catch(() => {});
const photos = await createDatabase('photos');
const stalled = await fetch(`${photos}/_feed?include_docs=true&heartbeat=600000`, { signal });
for (let at = 0; at < 12; at += 1) await request('PUT', `photos/photo-${at}`, { pixels: 'x'.repeat(1_000_000) });

// Something happens while pages are looked at.
let at = 0;
const writing = setInterval(() => request('POST', 'orders', order((at += 1))).catch(() => {}), 400);
after(() => {
  clearInterval(writing);
  leaving.abort();
  assert.ok(stalled.ok, 'it was open until now');
});

/** Pages, each as it looks when it is used. */
const PAGES = {
  // The first: who reads nothing is dropped in the end.
  subscribers: ['/feeds', async (page) => sees(page, '.behind', 'row')],
  overview: ['/', async (page) => sees(page, 'tbody', 'orders')],
  feed: [
    '/db/orders',
    async (page) => {
      await page.getByText('Filter', { exact: true }).click();
      await page.getByLabel('Selector', { exact: true }).fill('{');
      await page.getByLabel('Query', { exact: true }).fill('[]');
      await page.getByRole('button', { name: 'Apply' }).click();
      await page.getByText('The same in curl').click();
      await sees(page, '.field .error', 'A query is a JSON object');
      await page.getByRole('option').first().click();
      await page.locator('.detail .json').waitFor();
    },
  ],
  watch: ['/db/orders', async (page) => page.getByRole('option').first().waitFor()],
  empty: ['/db/orders?prefix=none', async (page) => sees(page, '.nothing', 'No change')],
  ended: ['/db/none', async (page) => sees(page, '.controls .state', 'ended')],
  document: [
    '/db/orders/doc/quarrel',
    async (page) => {
      await sees(page, '.choice .json', 'owner');
      await sees(page, '.choice:last-child .json', 'owner');
    },
  ],
  edit: [
    '/db/orders/doc/order-0001',
    async (page) => {
      await page.getByRole('button', { name: 'Edit' }).click();
      await page.getByLabel('Body as JSON').fill('{');
      await page.getByRole('button', { name: 'Save' }).click();
      await sees(page, '#edit-error', 'no JSON');
    },
  ],
  question: [
    '/db/orders/doc/order-0002',
    async (page) => {
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('dialog').waitFor();
    },
  ],
  unknown: ['/nowhere', async (page) => sees(page, 'h1', 'no such page')],
};

for (const [name, [place, use]] of Object.entries(PAGES)) looks(name, { place }, use);

test('the theme is switched and stays', async (t) => {
  const page = await openPage(t, '/', { theme: 'light' });
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await back();
  const button = page.locator('#theme');
  await button.click();
  await sees(page, '#theme', 'light');
  await button.click();
  await sees(page, '#theme', 'dark');
  const dark = await back();
  assert.notEqual(dark, light);
  await page.reload();
  await sees(page, '#theme', 'dark');
  assert.equal(await back(), dark);
});

// The page stayed blank.
test('where the browser keeps nothing the theme is switched all the same', async (t) => {
  const page = await openPage(t, '/none');
  await page.addInitScript(() => {
    Object.defineProperty(globalThis, 'localStorage', { get: () => { throw new DOMException('denied', 'SecurityError'); } });
  });
  await page.reload();
  await sees(page, 'h1', 'There is no such page');
  await page.locator('#theme').click();
  await sees(page, '#theme', 'light');
  await page.locator('#theme').click();
  await sees(page, '#theme', 'dark');
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
});
