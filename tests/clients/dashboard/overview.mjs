// The overview of the dashboard in a real browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage, sees } from '../lib/browser.mjs';
import { createDatabase, request, serverUrl, startServer, stopServer, writeDocuments } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(300);

const documents = (prefix, many) => Array.from({ length: many }, (_, at) => ({ _id: `${prefix}-${at}`, at }));
const row = (name) => `tr:has(a:text-is("${name}"))`;
const documentsOf = (page, name) => page.locator(`${row(name)} td`).first().innerText();
const figuresOf = (page, title) => page.locator(`.chart:has(h2:text("${title}")) .plot`).getAttribute('aria-label');
/** How many points of a measure are known, in the page's own store. */
const points = (page, name) => page.evaluate((name) => globalThis.seqtide.figures.points[name].filter((point) => point !== null), name);

test('every file comes with a policy that allows nothing from elsewhere, and is asked about before it is used again', async () => {
  const page = await fetch(`${serverUrl}/_dashboard`);
  assert.equal(page.url, `${serverUrl}/_dashboard/`, 'the page names its files relative to a folder');
  const links = [...(await page.text()).matchAll(/(?:src|href)="([^"#]+\.\w+)"/g)].map(([, link]) => link);
  assert.ok(links.includes('js/main.js'), links.join());
  for (const link of ['', ...links]) {
    const { status, headers } = await fetch(new URL(link, page.url));
    assert.equal(status, 200, link);
    const policy = headers.get('content-security-policy');
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    const again = await fetch(new URL(link, page.url), { headers: { 'If-None-Match': headers.get('etag') } });
    assert.equal(again.status, 304, link);
  }
  assert.equal((await fetch(new URL('js/none.js', page.url))).status, 404);
  assert.equal((await fetch(page.url, { method: 'PUT' })).status, 405);
});

test('databases appear, count and vanish as it happens, and the charts move', async (t) => {
  const page = await openPage(t);
  await createDatabase('overview-a');
  await sees(page, row('overview-a'), '0');
  await writeDocuments('overview-a', documents('live', 30));
  await until('the row counts 30 documents', async () => (await documentsOf(page, 'overview-a')) === '30');
  await until('the writes are charted', async () => (await points(page, 'writes')).some((rate) => rate > 0));
  await until('the latency of commits is charted', async () => (await points(page, 'commitMost')).some((seconds) => seconds > 0));
  assert.match(await figuresOf(page, 'Writes'), /now documents [\d.,K]+\/s, commits [\d.,K]+\/s$/);
  assert.match(await figuresOf(page, 'Memory'), /resident [\d.]+ MiB/);
  await request('DELETE', 'overview-a');
  await page.locator(row('overview-a')).waitFor({ state: 'detached' });
});

// All rows were made anew, and with one that had the focus that was gone.
test('a row keeps the focus while other databases come and go', async (t) => {
  for (const name of ['overview-before', 'overview-stays']) await createDatabase(name);
  const page = await openPage(t);
  const link = page.getByRole('link', { name: 'overview-stays', exact: true });
  await link.focus();
  const stays = await link.elementHandle();
  await createDatabase('overview-stays-not-alone');
  await sees(page, row('overview-stays-not-alone'), '0');
  await request('DELETE', 'overview-before');
  await page.locator(row('overview-before')).waitFor({ state: 'detached' });
  assert.ok(await stays.evaluate((link) => link === document.activeElement));
});

test('open feeds are counted by kind', async (t) => {
  const database = await createDatabase('overview-feeds');
  const page = await openPage(t);
  const lines = page.locator('.kinds div:has(dt:text-is("lines")) dd');
  await until('no feed of lines', async () => (await lines.innerText()) === '0');
  const abort = new AbortController();
  const followed = await fetch(`${database}/_feed?since=0`, { signal: abort.signal });
  await until('one feed of lines', async () => (await lines.innerText()) === '1');
  // A response that nobody keeps is collected, and its feed ends.
  assert.ok(followed.ok, 'it was open until now');
  abort.abort();
  await until('none again', async () => (await lines.innerText()) === '0');
});

test('a page that is opened late shows the minutes before', async (t) => {
  await createDatabase('overview-late');
  const first = await openPage(t);
  await writeDocuments('overview-late', documents('late', 20));
  await until('the writes are charted', async () => (await points(first, 'writes')).some((rate) => rate > 0));
  const total = async (page) => (await points(page, 'writes')).reduce((sum, rate) => sum + rate, 0);
  const known = await total(first);
  const late = await openPage(t);
  await until('the same writes are charted', async () => (await total(late)) >= known * 0.99);
});

test('a stopped server is told, and a page that was open all the while misses nothing', async (t) => {
  await createDatabase('overview-restart');
  const page = await openPage(t);
  await writeDocuments('overview-restart', documents('before', 5));
  await until('5 documents', async () => (await documentsOf(page, 'overview-restart')) === '5');
  await stopServer();
  await sees(page, '#server-state', 'connection lost');
  await startServer();
  await sees(page, '#server-state', /^live$/);
  await createDatabase('overview-restart-new');
  await writeDocuments('overview-restart', documents('after', 5));
  await sees(page, row('overview-restart-new'), '0');
  await until('10 documents', async () => (await documentsOf(page, 'overview-restart')) === '10');
  const gap = await page.evaluate(() => globalThis.seqtide.figures.points.memory.includes(null));
  assert.ok(gap, 'the time without a server is a gap in the charts');
});

// Its charts stood still until the clock had come to where it had been.
test('the charts go on where a server began anew with an earlier clock', async (t) => {
  const page = await openPage(t, '/none');
  const sample = (time, more) => `data: ${JSON.stringify({ time, values: {}, ...more })}\nid: ${time}\n\n`;
  const whole = { whole: true };
  const body = [sample(5000, whole), sample(6000), sample(2000, whole), sample(3000), sample(3000)].join('');
  await page.route('**/_dashboard/figures', (route) => route.fulfill({ body, contentType: 'text/event-stream' }));
  await page.reload();
  await until('the newest', () => page.evaluate(() => globalThis.seqtide.figures.time === 3000));
  assert.deepEqual(await page.evaluate(() => globalThis.seqtide.figures.times), [2, 3]);
});

test('many databases are found by name and turned over by page', async (t) => {
  const names = Array.from({ length: 60 }, (_, at) => `many-${String(at).padStart(2, '0')}`);
  await Promise.all(names.map((name) => createDatabase(name)));
  const page = await openPage(t);
  await page.getByRole('searchbox').fill('many-');
  await sees(page, 'caption', '60 of');
  assert.equal(await page.locator('tbody tr').count(), 25);
  // A button that is made anew loses a click that is under way, and the focus.
  const next = await page.getByRole('button', { name: 'Next' }).elementHandle();
  await writeDocuments('many-00', documents('counted', 3));
  await until('3 documents', async () => (await documentsOf(page, 'many-00')) === '3');
  assert.ok(await next.evaluate((button) => button.isConnected));
  await page.getByRole('button', { name: 'Next' }).click();
  await page.getByRole('button', { name: 'Next' }).click();
  assert.equal(await page.locator('tbody tr').count(), 10);
  await sees(page, row('many-59'), '0');
  await page.getByRole('searchbox').fill('many-07');
  await sees(page, row('many-07'), '0');
});

// The page that stood there before was closed, and this one never came.
test('an address that no page has says so', async (t) => {
  await createDatabase('overview-left');
  const page = await openPage(t, '/db/overview-left');
  for (const [place, why] of [['/db/%', 'A % in its address'], ['/db/%C3/doc/a', 'A % in its address'], ['/db/..', ''], ['/none', '']]) {
    await page.evaluate(() => (location.hash = '#/'));
    await sees(page, 'main h2', 'Databases');
    await page.evaluate((place) => (location.hash = `#${place}`), place);
    await sees(page, 'main h1', 'There is no such page');
    assert.ok((await page.locator('main').innerText()).includes(why), place);
  }
});

// The answer to whoever had asked first came last, and the database was shown for ever; its counts were kept, too.
test('of lists that come late none brings back a database that is deleted, and of that nothing is kept', async (t) => {
  const page = await openPage(t);
  await sees(page, 'main .state', /^live$/);
  await page.getByRole('searchbox').fill('overview-');
  const known = () => page.evaluate(() => {
    const { infos, stale, names, stream } = globalThis.seqtide.page.databases;
    return { counted: infos.has('overview-late-list'), stale: stale.has('overview-late-list'), listed: names.includes('overview-late-list'), since: stream.since };
  });
  await createDatabase('overview-late-list');
  await sees(page, row('overview-late-list'), '0');

  const lists = [];
  await page.route('**/_all_dbs', async (route) => {
    const list = { sent: false };
    lists.push(list);
    const response = await route.fetch();
    list.send = async () => {
      await route.fulfill({ response });
      list.sent = true;
    };
    if (list !== lists[0]) await list.send();
  });
  await createDatabase('overview-other');
  await until('it asks for the list', () => lists[0]?.send);
  const { since } = await known();
  await request('DELETE', 'overview-late-list');
  await until('it is told of the deletion', async () => (await known()).since !== since);
  // What it asked for before is on its way.
  await page.evaluate(() => fetch('../_up'));
  await until('who asks meanwhile is answered', () => lists.slice(1).every(({ sent }) => sent));
  await lists[0].send();
  await page.locator(row('overview-late-list')).waitFor({ state: 'detached' });
  await sees(page, row('overview-other'), '0');
  const { counted, stale, listed } = await known();
  assert.deepEqual({ counted, stale, listed }, { counted: false, stale: false, listed: false });
});
