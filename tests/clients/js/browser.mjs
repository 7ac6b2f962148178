// The JavaScript client in a real browser: across a restart of the server, and one connection for all tabs.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer, request as forward } from 'node:http';
import { after, test } from 'node:test';
import { launch } from '../lib/chromium.mjs';
import { followAcrossRestart } from '../lib/follow.mjs';
import { createDatabase, request, serverUrl, writeDocuments } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(300);

const sources = new URL('../../../clients/js/src/', import.meta.url);
const page = '<!doctype html><title>client</title><link rel="icon" href="data:,"><script type="module">' +
  "import { Seqtide } from '/client/index.js';" +
  'window.Seqtide = Seqtide; window.rows = []; window.states = [];' +
  "window.follow = (db, settings) => { window.seqtide = new Seqtide(location.origin, { heartbeat: 10_000, ...settings });" +
  ' window.subscription = seqtide.follow(db, { since: 0, onRow: (row) => rows.push(row), onState: (state) => states.push(state) }); };' +
  '</script>';

/** Serves a page and the client, and passes everything else on to the server; counts the connections for feeds. */
const site = { open: 0, opened: 0 };
const server = createServer(async (request, answer) => {
  if (request.url === '/page') return answer.setHeader('content-type', 'text/html').end(page);
  if (request.url.startsWith('/client/')) {
    answer.setHeader('content-type', 'text/javascript');
    return answer.end(await readFile(new URL(request.url.slice('/client/'.length), sources)));
  }
  const [, status, location] = /^\/moved\/(\d+)(.*)/.exec(request.url) ?? [];
  if (location !== undefined) return answer.writeHead(status, { location }).end();
  const { method, headers, url } = request;
  const passed = forward(serverUrl + url, { method, headers }, (from) => {
    answer.writeHead(from.statusCode, from.headers);
    answer.flushHeaders();
    from.pipe(answer);
    from.on('error', () => answer.destroy());
  });
  if (url === '/_feed/many') {
    site.opened += 1;
    site.open += 1;
    answer.on('close', () => ((site.open -= 1), passed.destroy()));
  }
  passed.on('error', () => answer.destroy());
  return request.pipe(passed);
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const origin = `http://127.0.0.1:${server.address().port}`;

const browser = await launch();
after(async () => {
  await browser.close();
  server.closeAllConnections();
  server.close();
});

async function tab(context, before) {
  const tab = await context.newPage();
  const faults = [];
  tab.on('pageerror', (error) => faults.push(String(error)));
  if (before) await tab.addInitScript(before);
  await tab.goto(`${origin}/page`);
  await tab.waitForFunction(() => window.Seqtide !== undefined);
  tab.faults = faults;
  return tab;
}

const follow = (tab, db, settings) => tab.evaluate(([db, settings]) => window.follow(db, settings), [db, settings]);
const seen = (tab) => tab.evaluate(() => window.rows.map(({ id }) => id));
const documents = (from, to) => Array.from({ length: to - from }, (_, index) => ({ _id: `d-${String(from + index).padStart(4, '0')}` }));
const ids = (list) => list.map(({ _id }) => _id);

test('a tab has each row once, across a restart of the server', async (t) => {
  await createDatabase('browser-restart');
  const context = await browser.newContext();
  t.after(() => context.close());
  const one = await tab(context);
  await follow(one, 'browser-restart', {});
  const rows = [];
  const taking = setInterval(async () => {
    const all = await one.evaluate(() => window.rows).catch(() => rows);
    rows.push(...all.slice(rows.length));
  }, 100);
  t.after(() => clearInterval(taking));
  await followAcrossRestart('browser-restart', rows);
  const states = await one.evaluate(() => window.states);
  assert.ok(states.includes('live') && states.includes('connecting'), states.join(' '));
  assert.deepEqual(one.faults, []);
});

test('tabs share one connection, and one that is closed leaves the others alone', async (t) => {
  await createDatabase('browser-shared');
  await until('the tab before has gone', () => site.open === 0);
  const context = await browser.newContext();
  t.after(() => context.close());
  const tabs = [await tab(context), await tab(context), await tab(context)];
  const opened = site.opened;
  for (const each of tabs) await follow(each, 'browser-shared', { shared: true });
  await writeDocuments('browser-shared', documents(0, 20));
  for (const each of tabs) {
    await until('every tab has all rows', async () => (await seen(each)).length === 20);
    assert.deepEqual(await seen(each), ids(documents(0, 20)));
  }
  assert.deepEqual([site.open, site.opened - opened], [1, 1], 'one connection for three tabs');

  await tabs[0].close();
  await tabs[1].evaluate(() => window.seqtide.close());
  const open = async () => {
    const metrics = await (await fetch(`${serverUrl}/metrics`)).text();
    return Number(/^seqtide_feeds_open\{kind="lines"\} (\d+)$/m.exec(metrics)[1]);
  };
  await until('two subscriptions are given up', async () => (await open()) === 1);
  await writeDocuments('browser-shared', documents(20, 40));
  await until('the last tab goes on', async () => (await seen(tabs[2])).length === 40);
  assert.deepEqual(await seen(tabs[2]), ids(documents(0, 40)));
  assert.equal((await seen(tabs[1])).length, 20);
  assert.deepEqual([site.open, site.opened - opened], [1, 1], 'it is the same connection still');
  assert.deepEqual(tabs.flatMap(({ faults }) => faults), []);
});

// They were live for ever, and got nothing more.
test('tabs whose worker the browser has ended go on with another one', async (t) => {
  await createDatabase('browser-killed');
  await until('the tabs before have gone', () => site.open === 0);
  const context = await browser.newContext();
  t.after(() => context.close());
  const tabs = [await tab(context), await tab(context)];
  for (const each of tabs) await follow(each, 'browser-killed', { shared: true });
  await writeDocuments('browser-killed', documents(0, 5));
  for (const each of tabs) await until('its rows', async () => (await seen(each)).length === 5);
  const tools = await browser.newBrowserCDPSession();
  const { targetInfos } = await tools.send('Target.getTargets');
  const [{ targetId }] = targetInfos.filter(({ type }) => type === 'shared_worker');
  await tools.send('Target.closeTarget', { targetId });
  await writeDocuments('browser-killed', documents(5, 10));
  for (const each of tabs) {
    await until('each row once', async () => (await seen(each)).length === 10);
    assert.deepEqual(await seen(each), ids(documents(0, 10)));
    const { state, states } = await each.evaluate(() => ({ state: subscription.state, states }));
    assert.ok(states.includes('connecting') && state !== 'connecting', states.join(' '));
  }
  await until('one connection for both', () => site.open === 1);
  assert.deepEqual(tabs.flatMap(({ faults }) => faults), []);
});

// Its worker was not told of rows that were taken, and the connection of all tabs was not read any more.
test('a tab that takes its rows slowly gets all of them over the shared connection', async (t) => {
  await createDatabase('browser-slow');
  await until('the tabs before have gone', () => site.open === 0);
  const all = documents(0, 5000);
  const { status } = await request('POST', 'browser-slow/_bulk_docs', { docs: all });
  assert.equal(status, 201);
  const context = await browser.newContext();
  t.after(() => context.close());
  const [slow, other] = [await tab(context), await tab(context)];
  await slow.evaluate(() => {
    window.seqtide = new Seqtide(location.origin, { heartbeat: 10_000, shared: true });
    const next = () => new Promise((resolve) => setTimeout(resolve));
    seqtide.follow('browser-slow', { since: 0, onRow: async (row) => (rows.push(row), rows.length % 10 === 0 && (await next())) });
  });
  await follow(other, 'browser-slow', { shared: true });
  for (const each of [slow, other]) {
    await until('all rows', async () => (await seen(each)).length === all.length, { state: async () => (await seen(each)).length });
    assert.deepEqual(await seen(each), ids(all));
  }
  assert.equal(site.open, 1);
});

// A browser's own was called as a method, which it does not bear.
test('a tab follows with a `fetch` of its own', async (t) => {
  await createDatabase('browser-fetch');
  await writeDocuments('browser-fetch', documents(0, 5));
  const context = await browser.newContext();
  t.after(() => context.close());
  const one = await tab(context);
  await one.evaluate(() => window.follow('browser-fetch', { fetch }));
  await until('its rows', async () => (await seen(one)).length === 5);
});

test('a tab says why nothing comes from behind a redirect that makes a GET of a POST', async (t) => {
  await createDatabase('browser-moved');
  await writeDocuments('browser-moved', documents(0, 5));
  const context = await browser.newContext();
  t.after(() => context.close());
  const one = await tab(context);
  await one.evaluate(() => {
    window.reasons = {};
    for (const status of [302, 307]) {
      const onEvent = ({ event, reason }) => event === 'refused' && (reasons[status] = reason);
      new Seqtide(`${location.origin}/moved/${status}`).follow('browser-moved', { since: 0, onRow: (row) => rows.push(row), onEvent });
    }
  });
  await until('what keeps the POST is followed, the other one not', () => one.evaluate(() => rows.length === 5 && reasons[302] !== undefined));
  const reasons = await one.evaluate(() => window.reasons);
  assert.deepEqual(Object.keys(reasons), ['302']);
  assert.match(reasons[302], new RegExp(`a redirect led to ${origin}: give that address`));
});

test('without shared workers a tab has a connection of its own', async (t) => {
  await createDatabase('browser-alone');
  await until('the tabs before have gone', () => site.open === 0);
  const context = await browser.newContext();
  t.after(() => context.close());
  const tabs = [await tab(context, () => delete window.SharedWorker), await tab(context, () => delete window.SharedWorker)];
  for (const each of tabs) await follow(each, 'browser-alone', { shared: true });
  await writeDocuments('browser-alone', documents(0, 5));
  for (const each of tabs) await until('its rows', async () => (await seen(each)).length === 5);
  assert.equal(site.open, 2);
  assert.deepEqual(tabs.flatMap(({ faults }) => faults), []);
});
