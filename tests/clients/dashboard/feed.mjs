// The feed viewer of the dashboard in a real browser.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { EventSource } from 'eventsource';
import { WebSocket } from 'ws';
import { CHARACTERS_MAX, Log } from '../../../dashboards/web/js/log.js';
import { sequenceAt, version } from '../../../dashboards/web/js/sequence.js';
import { hold, openPage, sees } from '../lib/browser.mjs';
import { createDatabase, request, startServer, stopServer, writeDocuments } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(300);

const documents = (prefix, many) =>
  Array.from({ length: many }, (_, at) => ({ _id: `${prefix}-${String(at).padStart(5, '0')}`, at, status: at % 2 ? 'odd' : 'even' }));
const ids = (page) => page.evaluate(() => globalThis.seqtide.page.log.rows.map((row) => row.id));
const named = (list) => list.map(({ _id }) => _id);
const button = (page, name) => page.getByRole('button', { name, exact: true });

/** Runs each snippet that the page shows, and expects it to print these ids, joined by commas. */
async function checkSnippets(t, page, expected) {
  await page.getByText('The same in curl').click();
  const snippet = (name) => page.locator(`[aria-label="${name} snippet"]`).innerText();

  const curl = spawn('bash', ['-c', `exec ${await snippet('curl')}`], { stdio: ['ignore', 'pipe', 'ignore'] });
  t.after(() => curl.kill());
  let said = '';
  curl.stdout.on('data', (data) => (said += data));
  const rows = () => [...said.matchAll(/^data: (\{"seq.*\})$/gm)].map(([, data]) => JSON.parse(data).id).join();
  await until('curl prints them', () => rows() === expected, { state: () => said });

  const known = expected.split(',');
  for (const [name, Client] of Object.entries({ EventSource, WebSocket })) {
    const printed = [];
    const feed = new Function(name, 'console', `${await snippet(name)}; return feed;`)(Client, { log: (_, id) => printed.push(id) });
    t.after(() => feed.close());
    await until(`${name} prints them`, () => printed.filter((id) => known.includes(id)).join() === expected, { state: () => printed.join() });
  }
}

/** What a field of the filter is said to have wrong. */
async function errorUnder(page, label) {
  const field = page.getByLabel(label, { exact: true });
  const id = (await field.getAttribute('aria-describedby')).split(' ')[0];
  return { invalid: await field.getAttribute('aria-invalid'), text: await page.locator(`#${id}`).innerText() };
}

test('rows come as they are written, and a paused page loses none, even across a restart', async (t) => {
  await createDatabase('feed-pause');
  const page = await openPage(t, '/db/feed-pause');
  const [first, second, third, fourth] = ['a', 'b', 'c', 'd'].map((prefix) => documents(prefix, 20));
  await writeDocuments('feed-pause', first);
  await until('20 rows', async () => (await ids(page)).length === 20);
  await button(page, 'Pause').click();
  await writeDocuments('feed-pause', second);
  await sees(page, '.controls .notice', '20 rows, 20 wait');
  assert.equal((await ids(page)).length, 20, 'a paused page does not move');
  await stopServer();
  await sees(page, '.controls .state', 'the server has stopped');
  await startServer();
  await writeDocuments('feed-pause', third);
  await sees(page, '.controls .notice', '20 rows, 40 wait');
  await button(page, 'Resume').click();
  await writeDocuments('feed-pause', fourth);
  await until('80 rows', async () => (await ids(page)).length >= 80);
  assert.deepEqual(await ids(page), named([...first, ...second, ...third, ...fourth]), 'each once and in order');
  // Rows are drawn once a frame.
  await sees(page, '.rows .row:first-child', 'd-00019');
});

test('a page that follows goes on after a restart where it was', async (t) => {
  await createDatabase('feed-restart');
  const page = await openPage(t, '/db/feed-restart');
  const [first, second] = ['a', 'b'].map((prefix) => documents(prefix, 20));
  await writeDocuments('feed-restart', first);
  await until('20 rows', async () => (await ids(page)).length === 20);
  await stopServer();
  await sees(page, '.controls .state', 'the server has stopped');
  await startServer();
  await writeDocuments('feed-restart', second);
  await sees(page, '.controls .state', /^live$/);
  await until('40 rows', async () => (await ids(page)).length >= 40);
  assert.deepEqual(await ids(page), named([...first, ...second]), 'each once and in order');
});

test('a paused page that can hold no more leaves the rest at the server, and gets it when it goes on', async (t) => {
  await createDatabase('feed-full');
  const page = await openPage(t, '/db/feed-full?since=0');
  await button(page, 'Pause').click();
  const all = documents('n', 10_500);
  await request('POST', 'feed-full/_bulk_docs', { docs: all });
  await sees(page, '.controls .notice', '10,000 wait here, the rest at the server');
  await button(page, 'Resume').click();
  await until('the last row has come', async () => (await ids(page)).at(-1) === 'n-10499');
  const seen = await ids(page);
  assert.deepEqual(seen, named(all).slice(-seen.length), 'what is kept are the newest, without a gap');
});

// Ten thousand large documents took all the memory of their page.
test('long rows are bounded by what they take, those that are kept and those that wait', () => {
  const log = new Log();
  const row = (key) => ({ key, text: 'x'.repeat(CHARACTERS_MAX / 8) });
  for (let key = 0; key < 100; key += 1) assert.ok(log.add(row(key)));
  assert.ok(log.rows.length <= 9 && log.rows.at(-1).key === 99, `${log.rows.length} are kept`);
  assert.equal(log.dropped, 100 - log.rows.length);
  log.pause();
  const room = Array.from({ length: 8 }, (_, key) => log.add(row(100 + key)));
  assert.deepEqual(room, [...Array(7).fill(true), false]);
  log.resume();
  assert.deepEqual(log.rows.map(({ key }) => key), [100, 101, 102, 103, 104, 105, 106, 107]);
  assert.equal(log.characters, CHARACTERS_MAX);
  log.add({ key: 108, text: 'y'.repeat(2 * CHARACTERS_MAX) });
  assert.deepEqual(log.rows.map(({ key }) => key), [108], 'the newest is kept however long it is');
});

test('ten thousand rows are a few elements, by wheel and by keyboard', async (t) => {
  await createDatabase('feed-long');
  await request('POST', 'feed-long/_bulk_docs', { docs: documents('n', 10_000) });
  const page = await openPage(t, '/db/feed-long?since=0');
  await sees(page, '.controls .notice', '10,000 rows');
  const list = page.getByRole('listbox');
  const options = page.getByRole('option');
  assert.ok((await options.count()) < 80, 'only rows in sight are elements');
  await list.evaluate((element) => (element.scrollTop = element.scrollHeight / 2));
  await sees(page, '.rows .row', 'n-04999');
  await list.focus();
  await page.keyboard.press('End');
  await sees(page, '.rows .row[aria-selected="true"]', 'n-00000');
  assert.equal(await list.getAttribute('aria-activedescendant'), await page.locator('.row[aria-selected="true"]').getAttribute('id'));
  await page.keyboard.press('ArrowUp');
  await sees(page, '.detail h2', 'n-00001');
  await sees(page, '.detail .json', '"status": "odd"');
  assert.ok((await options.count()) < 80);
  await page.keyboard.press('Enter');
  await until('the document is opened', () => page.url().endsWith('#/db/feed-long/doc/n-00001'));
});

test('who has scrolled keeps what he looks at while rows come', async (t) => {
  await createDatabase('feed-scroll');
  await request('POST', 'feed-scroll/_bulk_docs', { docs: documents('old', 500) });
  const page = await openPage(t, '/db/feed-scroll?since=0');
  await sees(page, '.controls .notice', '500 rows');
  const top = () =>
    page.evaluate(() => {
      const box = document.querySelector('.rows').getBoundingClientRect();
      return document.elementFromPoint(box.x + 120, box.y + 17)?.closest('.rows .row')?.querySelector('.id').textContent;
    });
  await page.getByRole('listbox').evaluate((element) => (element.scrollTop = 34 * 100));
  await until('a row in the middle', async () => (await top()) === 'old-00399', { state: top });
  await writeDocuments('feed-scroll', documents('new', 10));
  await sees(page, '.controls .notice', '510 rows');
  await until('it is still there', async () => (await top()) === 'old-00399', { state: top });

  // Where he stands at the end there is no room below that the list could be moved into.
  const last = () => page.evaluate(() => [...document.querySelectorAll('.rows .row')].at(-1).querySelector('.id').textContent);
  await page.getByRole('listbox').evaluate((element) => (element.scrollTop = element.scrollHeight));
  await until('the oldest row', async () => (await last()) === 'old-00000');
  const atTheEnd = await top();
  await writeDocuments('feed-scroll', documents('newer', 10));
  await sees(page, '.controls .notice', '520 rows');
  await until('it is still there as well', async () => (await top()) === atTheEnd, { state: top });
});

test('a row of a list that moves is selected by a click and opened by a double one', async (t) => {
  await createDatabase('feed-click');
  await writeDocuments('feed-click', documents('n', 20));
  const page = await openPage(t, '/db/feed-click');
  await sees(page, '.controls .notice', '20 rows');
  const box = await page.getByRole('listbox').boundingBox();
  await page.mouse.move(box.x + 120, box.y + 17);
  await page.mouse.down();
  await writeDocuments('feed-click', documents('between', 1));
  await sees(page, '.rows .row', 'between-00000');
  await page.mouse.up();
  await sees(page, '.detail h2', 'n-00019');
  await page.mouse.dblclick(box.x + 120, box.y + 17);
  await until('the document is opened', () => page.url().endsWith('#/db/feed-click/doc/between-00000'));
});

test('a frame of scrolling through ten thousand rows is done in the time of a frame, and has rows', async (t) => {
  await createDatabase('feed-smooth');
  await request('POST', 'feed-smooth/_bulk_docs', { docs: documents('n', 10_000) });
  const page = await openPage(t, '/db/feed-smooth?since=0');
  await sees(page, '.controls .notice', '10,000 rows');
  const tools = await page.context().newCDPSession(page);
  // The time that the page's own thread works: another program on this machine does not count.
  await tools.send('Performance.enable', { timeDomain: 'threadTicks' });
  const worked = async () => (await tools.send('Performance.getMetrics')).metrics.find(({ name }) => name === 'TaskDuration').value;
  const frames = 200;
  const before = await worked();
  const empty = await page.evaluate(async (frames) => {
    const list = document.querySelector('.rows');
    const box = list.getBoundingClientRect();
    const frame = () => new Promise(requestAnimationFrame);
    let empty = 0;
    for (let at = 0; at < frames; at += 1) {
      list.scrollTop += 1500;
      await frame();
      // The next frame begins: what was drawn for the one before is what was seen.
      await frame();
      if (!document.elementFromPoint(box.x + 120, box.y + box.height / 2).closest('.rows .row')) empty += 1;
    }
    return empty;
  }, frames);
  const each = ((await worked()) - before) / (2 * frames);
  assert.equal(empty, 0, 'frames without rows');
  assert.ok(each < 1 / 60, `a frame takes ${(each * 1000).toFixed(1)} ms of the page's thread`);
  t.diagnostic(`${(each * 1000).toFixed(1)} ms a frame`);
});

test('each filter has its error under its field, and a good one filters', async (t) => {
  await createDatabase('feed-filter');
  await request('PUT', 'feed-filter/_design/d', {
    filters: { even: 'function (doc) { return doc.status === "even"; }', broken: 'function (doc) { return doc.none.here; }' },
  });
  await writeDocuments('feed-filter', documents('x', 10));
  const page = await openPage(t, '/db/feed-filter?since=0');
  await until('all rows', async () => (await ids(page)).length === 11);
  await page.getByText('Filter', { exact: true }).click();
  const error = (label) => errorUnder(page, label);
  const fill = (label, text) => page.getByLabel(label, { exact: true }).fill(text);
  await fill('Selector', '{"status": {"$nope": 1}}');
  await fill('Ids', '[7]');
  await fill('Filter function', 'd/none');
  await fill('Prefix', 'x-');
  await button(page, 'Apply').click();
  await until('the selector is refused', async () => (await error('Selector')).text.includes('$nope'));
  await until('the function is refused', async () => (await error('Filter function')).text.includes('none'));
  await until('the ids are refused', async () => (await error('Ids')).text !== '');
  assert.equal((await error('Selector')).invalid, 'true');
  assert.deepEqual(await error('Prefix'), { invalid: null, text: '' });
  assert.equal((await ids(page)).length, 11, 'a refused filter changes nothing');

  await fill('Selector', '{"at": {"$gte": 4}}');
  await fill('Ids', 'x-00002, x-00004, x-00005\nx-00008');
  await fill('Filter function', 'd/even');
  await button(page, 'Apply').click();
  await until('what passes all of them', async () => (await ids(page)).join() === 'x-00004,x-00008');
  assert.deepEqual(await error('Selector'), { invalid: null, text: '' });
  await page.reload();
  await until('the address keeps the filter', async () => (await ids(page)).join() === 'x-00004,x-00008');

  await button(page, 'Clear').last().click();
  await until('everything again', async () => (await ids(page)).length === 11);
  await fill('Filter function', 'd/broken');
  await button(page, 'Apply').click();
  await until('a function that fails says so under its field', async () => (await error('Filter function')).text.includes('filters.broken of _design/d failed'));
});

// What was applied stood in the fields when the answers came, and nobody had tried it.
test('a filter is applied as it was tried, whatever is typed meanwhile, and not by a page that is left', async (t) => {
  await createDatabase('feed-typed');
  await writeDocuments('feed-typed', documents('x', 10));
  const page = await openPage(t, '/db/feed-typed?since=0');
  await until('all rows', async () => (await ids(page)).length === 10);
  await page.getByText('Filter', { exact: true }).click();
  const prefix = page.getByLabel('Prefix', { exact: true });
  const tries = await hold(page, ({ searchParams }) => searchParams.get('live') === 'false');
  await prefix.fill('x-00001');
  await prefix.press('Enter');
  await until('the field is tried', () => tries.length === 1);
  await prefix.fill('x-00002');
  await tries[0].send();
  await until('all of them are tried', () => tries.length === 2);
  await tries[1].send();
  await until('what was tried', async () => (await ids(page)).join() === 'x-00001', { state: () => ids(page) });
  assert.match(page.url(), /prefix=x-00001/);
  assert.equal(await prefix.inputValue(), 'x-00002', 'what is typed stays');

  await prefix.press('Enter');
  await until('it is tried', () => tries.length === 3);
  await tries[2].send();
  await until('all of them are tried again', () => tries.length === 4);
  await page.evaluate(() => (location.hash = '#/none'));
  await sees(page, 'main h1', 'There is no such page');
  await tries[3].send();
  assert.equal(new URL(page.url()).hash, '#/none');
});

// The answers to both were taken in the order in which they came.
test('what was tried before something else changes nothing when it is answered late', async (t) => {
  await createDatabase('feed-late');
  await writeDocuments('feed-late', documents('x', 10));
  const page = await openPage(t, '/db/feed-late?since=0');
  await until('all rows', async () => (await ids(page)).length === 10);
  await page.getByText('Filter', { exact: true }).click();
  const early = await hold(page, ({ searchParams }) => searchParams.has('selector') && searchParams.get('live') === 'false');
  const [selector, prefix] = ['Selector', 'Prefix'].map((label) => page.getByLabel(label, { exact: true }));
  for (const [at, text] of ['{"at": {"$nope": 1}}', '{"at": 1}'].entries()) {
    await selector.fill(text);
    await prefix.press('Enter');
    await until('it is tried', () => early.length === at + 1);
    await selector.fill('');
    await prefix.fill(`x-0000${at}`);
    await prefix.press('Enter');
    await until('what was tried last', async () => (await ids(page)).join() === `x-0000${at}`);
    await early[at].send();
    assert.deepEqual(await errorUnder(page, 'Selector'), { invalid: null, text: '' });
    assert.deepEqual(await ids(page), [`x-0000${at}`]);
    assert.equal(early.length, at + 1, 'nothing more is tried');
  }
});

test('a filter function gets its query, which has its own error', async (t) => {
  await createDatabase('feed-query');
  await request('PUT', 'feed-query/_design/d', {
    filters: { by: 'function (doc, req) { return doc.status === req.query.status; }' },
  });
  await writeDocuments('feed-query', documents('x', 10));
  const page = await openPage(t, '/db/feed-query?since=0');
  await until('all rows', async () => (await ids(page)).length === 11);
  await page.getByText('Filter', { exact: true }).click();
  const query = page.getByLabel('Query', { exact: true });
  for (const [text, wrong] of [
    ['{"status"', 'This is no JSON'],
    ['["odd"]', 'A query is a JSON object'],
    ['{"status": "odd"}', '`query` is what a `filter` function is asked with, and none is given'],
  ]) {
    await query.fill(text);
    await query.press('Enter');
    await until(`${text} is refused`, async () => (await errorUnder(page, 'Query')).text.includes(wrong));
    assert.equal((await errorUnder(page, 'Query')).invalid, 'true');
  }
  const name = page.getByLabel('Filter function', { exact: true });
  await name.fill('d/none');
  await name.press('Enter');
  await until('the function is refused', async () => (await errorUnder(page, 'Filter function')).text.includes('none'));
  assert.equal((await errorUnder(page, 'Query')).text, '', 'what the function has wrong is said once');
  await name.fill('d/by');
  await name.press('Enter');
  await until('the odd ones', async () => (await ids(page)).join() === 'x-00001,x-00003,x-00005,x-00007,x-00009');
  assert.deepEqual(await errorUnder(page, 'Query'), { invalid: null, text: '' });
  await page.reload();
  await until('the address keeps it', async () => (await ids(page)).join() === 'x-00001,x-00003,x-00005,x-00007,x-00009');
  assert.equal(await query.inputValue(), '{"status": "odd"}');
  await checkSnippets(t, page, 'x-00001,x-00003,x-00005,x-00007,x-00009');
});

test('the slider goes back over history', async (t) => {
  await createDatabase('feed-since');
  await writeDocuments('feed-since', documents('h', 150));
  const page = await openPage(t, '/db/feed-since');
  await until('the newest 100 at first', async () => (await ids(page)).length === 100);
  const slider = page.getByLabel('Changes since');
  await slider.fill('20');
  await until('from 20 on', async () => (await ids(page)).length === 130);
  assert.equal(await slider.getAttribute('aria-valuetext'), '20 of 150');
  await button(page, 'Beginning').click();
  await until('from the beginning', async () => (await ids(page)).length === 150);
  await button(page, 'Now').click();
  await until('nothing yet', async () => (await ids(page)).length === 0);
  await writeDocuments('feed-since', documents('later', 1));
  await until('what comes now', async () => (await ids(page)).join() === 'later-00000');
});

test('a database with text sequences has a slider too', async (t) => {
  await request('PUT', 'feed-text?seq_format=versionstamp');
  await writeDocuments('feed-text', documents('v', 12));
  const page = await openPage(t, '/db/feed-text');
  await until('12 rows', async () => (await ids(page)).length === 12);
  await page.getByLabel('Changes since').fill('10');
  await until('two rows behind the tenth', async () => (await ids(page)).length === 2);
});

test('a version is read of either form of a sequence, and of nothing else', () => {
  const stamp = '0200000000000001a400000000';
  for (const [seq, expected] of [[0, 0], ['7', 7], [2 ** 45 + 7, 7], [stamp, 420], [stamp.toUpperCase(), 420]]) assert.equal(version(seq), expected, seq);
  for (const other of ['', 'now', '2026-03-01T12:00:00Z', '-1', '1.5', '1e3', `${stamp}0`, stamp.replace('a', 'g'), null]) assert.equal(version(other), null, other);
  assert.deepEqual([sequenceAt(2 ** 45 + 7, 5), sequenceAt(stamp, 419), sequenceAt(7, -3)], [String(2 ** 45 + 5), '0200000000000001a300000000', '0']);
});

// The page stayed dead where its address named no sequence, or one in the other form.
test('a feed begins at whatever place its address names', async (t) => {
  await createDatabase('feed-place');
  await request('PUT', 'feed-place-text?seq_format=versionstamp');
  for (const name of ['feed-place', 'feed-place-text']) await writeDocuments(name, documents('p', 12));
  const slider = (page) => page.getByLabel('Changes since');
  const shows = async (place, many) => {
    const page = await openPage(t, `/db/${place}`);
    await sees(page, '.controls .state', /^live$/);
    await until(`${many} rows`, async () => (await ids(page)).length === many);
    return page;
  };
  const time = await shows('feed-place?since=2000-01-01T00:00:00Z', 12);
  assert.equal(await slider(time).getAttribute('aria-valuetext'), '2000-01-01T00:00:00Z of 12');
  await slider(time).fill('10');
  await until('two rows behind the tenth', async () => (await ids(time)).length === 2);
  await shows('feed-place?since=', 12);
  const text = await shows('feed-place-text?since=10', 2);
  assert.equal(await slider(text).inputValue(), '10');

  const wrong = await openPage(t, '/db/feed-place?since=yesterday');
  await sees(wrong, '.controls .state', /^ended: .*yesterday/);
  await button(wrong, 'Beginning').click();
  await until('all of it', async () => (await ids(wrong)).length === 12);
});

test('what is no answer about a database ends its feed, which is begun again on demand', async (t) => {
  await createDatabase('feed-proxy');
  const page = await openPage(t, '/none');
  await page.route('**/feed-proxy', (route) => route.fulfill({ body: '<!doctype html>' }), { times: 1 });
  await page.evaluate(() => (location.hash = '#/db/feed-proxy'));
  await sees(page, '.controls .state', 'ended: ');
  await button(page, 'Follow again').click();
  await sees(page, '.controls .state', /^live$/);
});

test('the snippets give what the page shows', async (t) => {
  await createDatabase('feed-snippets');
  await writeDocuments('feed-snippets', documents("it's", 4));
  const selector = encodeURIComponent('{"status":"odd"}');
  const page = await openPage(t, `/db/feed-snippets?since=0&selector=${selector}&include_docs=true`);
  await until('two rows', async () => (await ids(page)).length === 2);
  await checkSnippets(t, page, "it's-00001,it's-00003");
});

// The address had changed already, and the page that was left wrote its own over it.
test('a link is followed while a feed begins anew', async (t) => {
  await createDatabase('feed-left');
  const page = await openPage(t, '/db/feed-left');
  await sees(page, '.controls .state', /^live$/);
  await button(page, 'Beginning').evaluate((beginning) => {
    document.querySelector('.path a').click();
    beginning.click();
  });
  await sees(page, 'main h2', 'Databases');
});

test('a database that is deleted, or was never there, is told', async (t) => {
  await createDatabase('feed-gone');
  const page = await openPage(t, '/db/feed-gone');
  await sees(page, '.controls .state', /^live$/);
  await request('DELETE', 'feed-gone');
  await sees(page, '.controls .state', 'the database was deleted');
  await page.reload();
  await sees(page, '.controls .state', /ended: .*does not exist/);
});
