// What a feed says of itself, on the dashboard's pages in a real browser: that it is behind, that the server stops, that
// an operator closed it. The server keeps little in memory and takes its time to stop.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openPage, sees } from '../lib/browser.mjs';
import { relayed } from '../lib/relay.mjs';
import { createDatabase, request, startServer, stopServer, writeDocuments } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(300);

const STATE = '.controls .state';
const ids = (page) => page.evaluate(() => globalThis.seqtide.page.log.rows.map((row) => row.id));
const button = (page, name) => page.getByRole('button', { name, exact: true });

/** Notes every state that the page shows from here on, and when; gives a function that tells them. */
async function noted(page, selector) {
  await page.evaluate((selector) => {
    const element = document.querySelector(selector);
    globalThis.states = [];
    new MutationObserver(() => globalThis.states.push({ text: element.textContent, at: performance.now() })).observe(element, { childList: true, characterData: true, subtree: true });
  }, selector);
  return () => page.evaluate(() => globalThis.states);
}

/** Closes the one feed of a database, `null` for that of all databases, as an operator does. */
async function revoke(database) {
  const mine = async () => (await request('GET', '_feeds')).body.feeds.filter((feed) => feed.database === database);
  await until('its feed is open', async () => (await mine()).length === 1);
  const [{ id }] = await mine();
  assert.equal((await request('DELETE', `_feeds/${id}`)).status, 200);
}

test('a page that does not keep up is told how far it is behind, and when it has caught up', async (t) => {
  await createDatabase('states-lagging');
  const page = await openPage(t, '/db/states-lagging');
  await sees(page, STATE, /^live$/);
  assert.equal(await page.locator(STATE).getAttribute('role'), 'status', 'a screen reader reads it out when it has time');
  const states = await noted(page, STATE);
  // The page's program does nothing but ask until all is written, which is more than all buffers on the way hold.
  await page.evaluate(() => {
    const isWritten = () => {
      const asked = new XMLHttpRequest();
      asked.open('GET', '/states-lagging', false);
      asked.send();
      return JSON.parse(asked.responseText).doc_count === 200;
    };
    setTimeout(() => {
      const end = performance.now() + 60_000;
      while (!isWritten() && performance.now() < end);
    });
  });
  const text = 'x'.repeat(200_000);
  for (let at = 0; at < 20; at += 1) {
    const docs = Array.from({ length: 10 }, (_, of) => ({ _id: `large-${at}-${of}`, text }));
    assert.equal((await request('POST', 'states-lagging/_bulk_docs', { docs })).status, 201);
  }
  const taken = () => page.evaluate(() => globalThis.seqtide.page.log.rows.length + globalThis.seqtide.page.log.dropped);
  await until('it has all', async () => (await taken()) === 200);
  await until('it has caught up', async () => (await states()).at(-1)?.text === 'live', { state: async () => JSON.stringify(await states()) });
  assert.match((await states())[0].text, /^behind by [\d,]+ rows?(, [\d.]+ (s|ms|µs))?$/);
});

test('a server that stops says so first, and the page comes back when it was told to and misses nothing', async (t) => {
  await createDatabase('states-draining');
  const page = await openPage(t, '/db/states-draining');
  await sees(page, STATE, /^live$/);
  const states = await noted(page, STATE);
  await page.evaluate(() => {
    const { source } = globalThis.seqtide.page.stream;
    source.addEventListener('draining', ({ data }) => (globalThis.retry = JSON.parse(data).retry));
  });
  const stopped = stopServer();
  // Either while it stops or once it is back, which is a matter of how quick this machine is.
  const written = writeDocuments('states-draining', [{ _id: 'meanwhile' }]);
  await stopped;
  await startServer();
  await written;
  await until('the document', async () => (await ids(page)).join() === 'meanwhile');
  await sees(page, STATE, /^live$/);
  const told = await states();
  assert.deepEqual(told.map(({ text }) => text), ['the server is about to stop', 'the server has stopped, trying again', 'live']);
  const wait = await page.evaluate(() => globalThis.retry);
  assert.ok(wait > 0, 'it was told when to come back');
  // A clock of the browser's is rounded.
  assert.ok(told[2].at - told[1].at >= wait - 5, 'it waits as long as it was told');
});

test('a connection that died without a word is noticed by the heartbeats that do not come, and nothing is missed', async (t) => {
  await createDatabase('states-silent');
  const relay = await relayed();
  t.after(relay.close);
  const page = await openPage(t, '/db/states-silent', { origin: relay.url });
  await sees(page, STATE, /^live$/);
  const states = await noted(page, STATE);
  relay.freeze();
  await writeDocuments('states-silent', [{ _id: 'meanwhile' }]);
  await until('the document', async () => (await ids(page)).join() === 'meanwhile');
  assert.deepEqual((await states()).map(({ text }) => text), ['connection lost, trying again', 'live']);
});

test('a proxy whose server is away ends nothing, of a page that is opened meanwhile neither', async (t) => {
  await createDatabase('states-away');
  const relay = await relayed();
  t.after(relay.close);
  const page = await openPage(t, '/db/states-away', { origin: relay.url });
  await sees(page, STATE, /^live$/);
  relay.leave();
  await sees(page, STATE, 'connection lost, trying again');
  await writeDocuments('states-away', [{ _id: 'meanwhile' }]);
  // It has asked again by then, and was answered with 502.
  await page.waitForResponse((response) => response.status() === 502);
  relay.comeBack();
  await until('the document', async () => (await ids(page)).join() === 'meanwhile');
  await sees(page, STATE, /^live$/);
  relay.leave();
  await page.evaluate(() => (location.hash = '#/'));
  await page.evaluate(() => (location.hash = '#/db/states-away'));
  await sees(page, STATE, 'connection lost, trying again');
  relay.comeBack();
  await sees(page, STATE, /^live$/);
});

test('a feed that an operator closed is told, and followed again from where it stood', async (t) => {
  await createDatabase('states-revoked');
  await writeDocuments('states-revoked', [{ _id: 'before' }]);
  const page = await openPage(t, '/db/states-revoked');
  await until('the first row', async () => (await ids(page)).length === 1);
  assert.ok(await button(page, 'Follow again').isHidden(), 'there is nothing to follow again');
  await revoke('states-revoked');
  await sees(page, STATE, 'ended: an operator closed this feed');
  await writeDocuments('states-revoked', [{ _id: 'between' }]);
  await button(page, 'Follow again').click();
  await sees(page, STATE, /^live$/);
  await until('each row once', async () => (await ids(page)).join() === 'before,between');
  assert.ok(await button(page, 'Follow again').isHidden());
});

test('a document\'s view that an operator closed is told, and followed again', async (t) => {
  await createDatabase('states-document');
  await request('PUT', 'states-document/d', { says: 'first' });
  const page = await openPage(t, '/db/states-document/doc/d');
  await sees(page, '.body .json', 'first');
  await revoke('states-document');
  await sees(page, 'main .state', 'ended: an operator closed this feed');
  await request('PUT', 'states-document/d', { _rev: (await request('GET', 'states-document/d')).body._rev, says: 'second' });
  await button(page, 'Follow again').click();
  await sees(page, '.body .json', 'second');
  await sees(page, 'main .state', /^live$/);
});

test('a table of databases whose feed an operator closed says so, and is followed again', async (t) => {
  const page = await openPage(t);
  await sees(page, 'main .state', /^live$/);
  await revoke(null);
  await sees(page, 'main .state', 'ended: an operator closed this feed');
  await createDatabase('states-new');
  await button(page, 'Follow again').click();
  await page.getByRole('link', { name: 'states-new' }).waitFor();
  await sees(page, 'main .state', /^live$/);
});

// Nothing was shown, or asked for.
test('where no feed is to be had the document and the databases are shown all the same', async (t) => {
  await createDatabase('states-no-feed');
  await request('PUT', 'states-no-feed/d', { says: 'shown' });
  const page = await openPage(t, '/none');
  await page.route(/\/_feed\?/, (route) => route.fulfill({ status: 503, body: '{"error":"service unavailable","reason":"at most 10 feeds are open"}' }));
  await page.evaluate(() => (location.hash = '#/db/states-no-feed/doc/d'));
  await sees(page, '.body .json', 'shown');
  await page.evaluate(() => (location.hash = '#/'));
  await page.getByRole('link', { name: 'states-no-feed' }).waitFor();
  await sees(page, 'main .state', 'connection lost, trying again');
});

test('a place that lies ahead of all there is: the page says that it begins again', async (t) => {
  await createDatabase('states-rewind');
  await writeDocuments('states-rewind', [{ _id: 'only' }]);
  const page = await openPage(t, '/db/states-rewind?since=1337');
  await sees(page, '.controls .notice', 'the feed starts again from the beginning');
  await until('the row', async () => (await ids(page)).join() === 'only');
  // It was taken from `opened` alone, so that such a feed with slower beats was given up before its first.
  assert.equal(await page.evaluate(() => globalThis.seqtide.page.stream.heartbeat), 2000, 'it says how often it beats, too');
});

// Coming back took away the time after which it rests, and it kept its connection for as long as nobody looked.
test('a page that nobody looks at rests, though its connection was lost meanwhile, and goes on when somebody does', async (t) => {
  await createDatabase('states-hidden');
  const relay = await relayed();
  t.after(relay.close);
  const page = await openPage(t, '/none', { origin: relay.url });
  await page.clock.install();
  await page.evaluate(() => (location.hash = '#/db/states-hidden'));
  await sees(page, STATE, /^live$/);
  const turnAway = (hidden) =>
    page.evaluate((hidden) => {
      Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
      document.dispatchEvent(new Event('visibilitychange'));
    }, hidden);
  await turnAway(true);
  relay.leave();
  await sees(page, STATE, 'connection lost, trying again');
  relay.comeBack();
  await sees(page, STATE, /^live$/);
  await page.clock.runFor(15_000);
  await sees(page, STATE, 'resting while nobody looks');
  await writeDocuments('states-hidden', [{ _id: 'meanwhile' }]);
  await turnAway(false);
  await until('the document', async () => (await ids(page)).join() === 'meanwhile');
  await sees(page, STATE, /^live$/);
});

// A page that was left asked for its database once a second from then on.
test('a page that is left before it has looked at its database looks no more', async (t) => {
  await createDatabase('states-left');
  const page = await openPage(t, '/none');
  await page.clock.install();
  let asked = 0;
  let held;
  await page.route('**/states-left', (route) => {
    asked += 1;
    held = route;
  });
  await page.evaluate(() => (location.hash = '#/db/states-left'));
  await until('it asks', () => asked === 1);
  await page.evaluate(() => (location.hash = '#/none'));
  await sees(page, 'main h1', 'There is no such page');
  const failed = page.waitForEvent('requestfailed');
  await held.abort();
  await failed;
  await page.clock.runFor(5000);
  // What it had asked for came before this.
  await page.evaluate(() => fetch('../_up'));
  assert.equal(asked, 1);
});
