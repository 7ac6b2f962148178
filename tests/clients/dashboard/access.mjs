// The dashboard for everybody: by axe, at three widths and in both themes, and by keyboard alone.

import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { openPage, sees } from '../lib/browser.mjs';
import { createDatabase, request } from '../lib/server.mjs';
import { deadline } from '../lib/wait.mjs';

deadline(300);

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const shots = process.env.SEQTIDE_SCREENSHOTS;

await createDatabase('access');
const revisions = (id, ids, more) => ({ _id: id, _rev: `${ids.length}-${ids[0]}`, _revisions: { start: ids.length, ids }, ...more });
const conflict = [revisions('c', ['d', 'b', 'a'], { says: 'd', list: [1, 2] }), revisions('c', ['e', 'b', 'a'], { says: 'e' }), revisions('c', ['f', 'a'], { _deleted: true })];
await request('POST', 'access/_bulk_docs', { new_edits: false, docs: conflict });
await request('POST', 'access/_bulk_docs', { docs: Array.from({ length: 60 }, (_, at) => ({ _id: `row-${at}`, at, text: 'a long text '.repeat(20) })) });

/** Pages, each as it looks when it is used. */
const PAGES = {
  overview: ['/', async (page) => sees(page, 'tbody', 'access')],
  feed: [
    '/db/access',
    async (page) => {
      await page.getByText('Filter', { exact: true }).click();
      await page.getByLabel('Selector', { exact: true }).fill('{');
      await page.getByRole('button', { name: 'Apply' }).click();
      await page.getByText('The same in curl').click();
      await page.locator('.field .error:not(:empty)').waitFor();
      await page.getByRole('option').first().click();
      await page.locator('.detail .json').waitFor();
    },
  ],
  document: ['/db/access/doc/c', async (page) => sees(page, '.choice .json', 'says')],
  edit: [
    '/db/access/doc/row-1',
    async (page) => {
      await page.getByRole('button', { name: 'Edit' }).click();
      await page.getByLabel('Body as JSON').fill('{');
      await page.getByRole('button', { name: 'Save' }).click();
      await sees(page, '#edit-error', 'no JSON');
    },
  ],
  question: [
    '/db/access/doc/row-2',
    async (page) => {
      await page.getByRole('button', { name: 'Delete' }).click();
      await page.getByRole('dialog').waitFor();
    },
  ],
  subscribers: ['/feeds', async (page) => sees(page, 'caption', 'open')],
  unknown: ['/nowhere', async (page) => sees(page, 'h1', 'no such page')],
};

for (const [name, [place, use]] of Object.entries(PAGES)) {
  for (const theme of ['light', 'dark']) {
    for (const width of [1280, 768, 390]) {
      test(`${name}, ${theme}, ${width} pixels wide`, async (t) => {
        const page = await openPage(t, place, { theme, width });
        await use(page);
        if (shots) {
          await mkdir(shots, { recursive: true });
          await page.screenshot({ path: `${shots}/${name}-${width}-${theme}.png`, fullPage: true });
        }
        await page.evaluate(axe);
        const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ['violations'] }));
        const faults = violations.map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.map(({ html }) => html).join('\n  ')}`);
        assert.deepEqual(faults, []);
        const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        assert.ok(beyond <= 0, `the page is ${beyond} pixels wider than the window`);
      });
    }
  }
}

test('by keyboard: the skip link comes first, a database is opened, a row selected, its document edited', async (t) => {
  const page = await openPage(t);
  await sees(page, 'tbody', 'access');
  const focused = () => page.evaluate(() => document.activeElement.textContent.trim() || document.activeElement.getAttribute('aria-label'));
  await page.keyboard.press('Tab');
  assert.equal(await focused(), 'Skip to the content');
  await page.keyboard.press('Enter');
  assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
  while ((await focused()) !== 'access') await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await sees(page, '.controls .notice', '61 rows');
  while (!(await page.evaluate(() => document.activeElement.matches('.rows')))) await page.keyboard.press('Tab');
  await page.keyboard.press('ArrowDown');
  await sees(page, '.detail h2', 'row-59');
  await page.keyboard.press('Enter');
  await sees(page, 'h1', 'row-59');
  await page.getByRole('button', { name: 'Edit' }).waitFor();
  while ((await focused()) !== 'Edit') await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.locator('textarea:focus').waitFor();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('{"by": "keyboard"}');
  await page.keyboard.press('Control+Enter');
  await sees(page, '.body .json', 'keyboard');
  assert.equal((await request('GET', 'access/row-59')).body.by, 'keyboard');
});

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
