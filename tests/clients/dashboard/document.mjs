// The document view of the dashboard in a real browser.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { elementsOf, memberOf, pretty, without } from '../../../dashboards/web/js/json.js';
import { hold, openPage, sees } from '../lib/browser.mjs';
import { createDatabase, request, serverUrl, startServer, stopServer } from '../lib/server.mjs';
import { deadline, until } from '../lib/wait.mjs';

deadline(300);

const button = (page, name) => page.getByRole('button', { name, exact: true });
const revisionOf = async (path) => (await request('GET', path)).body._rev;
const textOf = async (path) => (await fetch(`${serverUrl}/${path}`)).text();
const editor = (page) => page.getByLabel('Body as JSON');

async function put(path, body) {
  const { status, body: answer } = await request('PUT', path, body);
  assert.equal(status, 201, JSON.stringify(answer));
  return answer.rev;
}

/** Leaves `3-c` and `3-d` side by side, and `2-e` deleted, all from `1-a`. */
async function writeConflict(database, id) {
  const leaf = (rev, ids, more) => ({ _id: id, _rev: rev, _revisions: { start: ids.length, ids }, ...more });
  const docs = [leaf('3-c', ['c', 'b', 'a'], { says: 'c' }), leaf('3-d', ['d', 'b', 'a'], { says: 'd' }), leaf('2-e', ['e', 'a'], { _deleted: true })];
  const { status } = await request('POST', `${database}/_bulk_docs`, { new_edits: false, docs });
  assert.equal(status, 201);
}

test('a body is shown and saved with every digit it was written with, and follows whoever changes it', async (t) => {
  await createDatabase('document-edit');
  const body = '{"price":12.50,"big":12345678901234567890,"nested":{"list":[1,{"a":[]}],"text":"a, \\"b\\": {c}"}}';
  const written = await fetch(`${serverUrl}/document-edit/a%2Fb%20c`, { method: 'PUT', body });
  assert.equal(written.status, 201);
  const page = await openPage(t, '/db/document-edit/doc/a%2Fb%20c');
  await sees(page, '.body .json', '"price": 12.50');
  await sees(page, '.body .json', '"text": "a, \\"b\\": {c}"');
  const feed = await openPage(t, '/db/document-edit?since=0&include_docs=true');
  await sees(feed, '.rows .row', '{"price":12.50,"big":12345678901234567890,"nested"');
  await button(page, 'Edit').click();
  const text = await editor(page).inputValue();
  await editor(page).fill(text.replace('12.50', '13.00'));
  await button(page, 'Save').click();
  await sees(page, '.body h2', 'Revision 2-');
  assert.match(await textOf('document-edit/a%2Fb%20c'), /"price":13\.00,"big":12345678901234567890,"nested":\{"list":\[1,\{"a":\[\]\}\],"text":"a, \\"b\\": \{c\}"\}\}/);

  const rev = await revisionOf('document-edit/a%2Fb%20c');
  await put('document-edit/a%2Fb%20c', { _rev: rev, elsewhere: true });
  await sees(page, '.body .json', '"elsewhere": true');
  await sees(page, '.body h2', 'Revision 3-');
});

// It was another one, and what was edited or deleted was a loser; beyond 2^53 nothing was shown at all.
test('the winner is the server\'s, whatever hashes and generations there are', async (t) => {
  await createDatabase('document-winner');
  const leaves = {
    hexadecimal: ['1-ffffffffffffffffffffffffffffffff', '1-zz', '1-00000000000000000000000000000000'],
    text: ['1-\u{10000}', '1-\uFFFD', '1-a'],
    longer: ['1-ab', '1-abc', '1-b', '1-a'],
    far: ['9007199254740992-b', '9007199254740993-a'],
  };
  for (const [id, revs] of Object.entries(leaves)) {
    const docs = revs.map((_rev) => ({ _id: id, _rev, says: _rev }));
    assert.equal((await request('POST', 'document-winner/_bulk_docs', { new_edits: false, docs })).status, 201);
    const page = await openPage(t, `/db/document-winner/doc/${id}`);
    const winner = await revisionOf(`document-winner/${id}`);
    await sees(page, '.body .json', `"says": ${JSON.stringify(winner)}`);
    await sees(page, '.body h2', `Revision ${winner}`);
  }
});

// A call had no room for so many parts, and nothing was shown.
test('a document of very many parts is shown, and the first of them in colours', async (t) => {
  await createDatabase('document-many');
  await put('document-many/d', { list: Array.from({ length: 200_000 }, (_, at) => at), says: 'the end' });
  const page = await openPage(t, '/db/document-many/doc/d');
  await sees(page, '.body .json', /\[\s*0,\s*1,[^]*199999\s*\],\s*"says": "the end"/);
  assert.equal(await page.locator('.json .key').first().innerText(), '"_id"');
  assert.ok((await page.locator('.json span').count()) < 50_000);
});

test('a text of any number of escapes is a text', () => {
  for (const text of ['\n'.repeat(4_000_000), '\\'.repeat(4_000_000), '"'.repeat(4_000_001)]) {
    const member = JSON.stringify(text);
    const whole = `{"a":1,${member}:2,"text":${member}}`;
    assert.equal(elementsOf(whole).length, 3);
    assert.equal(memberOf(whole, 'text'), member);
    assert.equal(memberOf(whole, text), '2');
    assert.equal(without(whole, ['text', text]), '{"a":1}');
    assert.equal(pretty(`[${member},""]`), `[\n  ${member},\n  ""\n]`);
  }
});

test('what is no document is refused under the field, and nothing is written', async (t) => {
  await createDatabase('document-wrong');
  const page = await openPage(t, '/db/document-wrong/doc/new');
  await sees(page, '.body', 'There is no such document');
  await button(page, 'Write it').click();
  await editor(page).fill('{"a": }');
  await page.keyboard.press('Control+Enter');
  await sees(page, '#edit-error', 'This is no JSON');
  await editor(page).fill('[1]');
  await button(page, 'Save').click();
  await sees(page, '#edit-error', 'A document is a JSON object');
  await editor(page).fill('{"_wrong": 1}');
  await button(page, 'Save').click();
  await sees(page, '#edit-error', '_wrong');
  assert.equal((await request('GET', 'document-wrong')).body.doc_count, 0);
  await editor(page).fill('{"a": 1}');
  await button(page, 'Save').click();
  await sees(page, '.body .json', '"a": 1');
  assert.equal((await request('GET', 'document-wrong/new')).body.a, 1);
});

test('a document that is changed under who edits it: his text is kept, and he decides', async (t) => {
  await createDatabase('document-409');
  const first = await put('document-409/d', { by: 'first' });
  const page = await openPage(t, '/db/document-409/doc/d');
  await button(page, 'Edit').click();
  await editor(page).fill('{"by": "me"}');
  const second = await put('document-409/d', { _rev: first, by: 'second' });
  await sees(page, '.meanwhile', 'changed meanwhile');
  await sees(page, '.meanwhile .json', '"by": "second"');
  assert.equal(await editor(page).inputValue(), '{"by": "me"}');
  await button(page, 'Save mine over it').click();
  await sees(page, '.body h2', 'Revision 3-');
  assert.equal((await request('GET', 'document-409/d')).body.by, 'me');

  // The same where the page could not know of it: the answer to the write is what tells.
  await button(page, 'Edit').click();
  await editor(page).fill('{"by": "me again"}');
  await page.route('**/document-409/_feed?*', (route) => route.abort());
  await page.evaluate(() => globalThis.seqtide.page.stream.disconnect());
  await put('document-409/d', { _rev: await revisionOf('document-409/d'), by: 'third' });
  await button(page, 'Save').click();
  await sees(page, '.meanwhile .json', '"by": "third"');
  await button(page, 'Go on from theirs').click();
  assert.match(await editor(page).inputValue(), /"by": "third"/);
  await button(page, 'Save').click();
  await sees(page, '.body h2', 'Revision 5-');
  assert.notEqual(second, first);
});

// The feed told of a write before the write was answered, and it was taken for somebody else's.
test('whose a change is that comes before the answer to a write is said when that is there', async (t) => {
  await createDatabase('document-own');
  await put('document-own/d', { by: 'first' });
  const page = await openPage(t, '/db/document-own/doc/d');
  const writes = await hold(page, ({ pathname }) => /\/document-own(\/_bulk_docs)?$/.test(pathname));
  const meanwhile = page.locator('.meanwhile');
  await button(page, 'Edit').click();
  await editor(page).fill('{"by": "me"}');
  await button(page, 'Save').click();
  await until('it is sent', () => writes.length === 1);
  const saved = await writes[0].route.fetch();
  await sees(page, '.history', '2 revisions');
  assert.equal(await meanwhile.count(), 0, 'it may be the one that is saved');
  await writes[0].route.fulfill({ response: saved });
  await sees(page, '.body h2', 'Revision 2-');

  await button(page, 'Edit').click();
  await editor(page).fill('{"by": "me again"}');
  await button(page, 'Save').click();
  await until('it is sent', () => writes.length === 2);
  await put('document-own/d', { _rev: await revisionOf('document-own/d'), by: 'somebody else' });
  await sees(page, '.history', '3 revisions');
  assert.equal(await meanwhile.count(), 0, 'it may be this one');
  await writes[1].route.abort();
  await sees(page, '#edit-error', /./);
  await sees(page, '.meanwhile', 'It was changed meanwhile');
  await button(page, 'Cancel').click();

  await button(page, 'Delete').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await until('it is sent', () => writes.length === 3);
  await button(page, 'Edit').click();
  const deleted = await writes[2].route.fetch();
  await sees(page, '.history .badge', 'deleted');
  assert.equal(await meanwhile.count(), 0, 'nor this one');
  await writes[2].route.fulfill({ response: deleted });
  await sees(page, '.meanwhile', 'You deleted it yourself');
});

test('what is being saved is neither changed nor saved once more until that is answered', async (t) => {
  await createDatabase('document-saving');
  await put('document-saving/d', { by: 'first' });
  const page = await openPage(t, '/db/document-saving/doc/d');
  const writes = await hold(page, ({ pathname }) => pathname === '/document-saving');
  await button(page, 'Edit').click();
  await editor(page).fill('{"by": "me"}');
  await button(page, 'Save').click();
  await until('it is sent', () => writes.length === 1);
  await editor(page).focus();
  await page.keyboard.type('more');
  assert.equal(await editor(page).inputValue(), '{"by": "me"}');
  await page.keyboard.press('Control+Enter');
  await button(page, 'Save').click();
  await writes[0].route.abort();
  await sees(page, '#edit-error', /./);
  assert.equal(writes.length, 1, 'it was sent once');
  await editor(page).fill('{"by": "me, later"}');
  await button(page, 'Save').click();
  await until('it is sent', () => writes.length === 2);
  await writes[1].route.continue();
  await sees(page, '.body .json', '"by": "me, later"');
});

test('a document is deleted once it was asked, and written anew', async (t) => {
  await createDatabase('document-delete');
  await put('document-delete/d', { a: 1 });
  const page = await openPage(t, '/db/document-delete/doc/d');
  await button(page, 'Delete').click();
  await page.keyboard.press('Escape');
  assert.equal((await request('GET', 'document-delete/d')).status, 200, 'Escape is no');
  await button(page, 'Delete').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await sees(page, '.history .badge', 'deleted');
  assert.equal((await request('GET', 'document-delete/d')).body.reason, 'deleted');
  await button(page, 'Write it anew').click();
  await editor(page).fill('{"a": 2}');
  await button(page, 'Save').click();
  await sees(page, '.body h2', 'Revision 3-');
  assert.equal((await request('GET', 'document-delete/d')).body.a, 2);
});

// It stayed open over the next page, and a yes to it deleted a document that was not shown any more.
test('a question names what it is about, and goes with the page that asked it', async (t) => {
  await createDatabase('document-left');
  await put('document-left/d', { a: 1 });
  await writeConflict('document-left', 'e');
  const page = await openPage(t, '/db/document-left/doc/e');
  const question = page.getByRole('dialog');
  await button(page, 'Keep this one: 3-c').click();
  await sees(page, 'dialog h2', 'Keep 3-c of e?');
  await page.evaluate(() => (location.hash = '#/db/document-left/doc/d'));
  await sees(page, 'h1', /^d$/);
  await until('nothing is asked any more', async () => (await question.count()) === 0);
  await button(page, 'Delete').click();
  await sees(page, 'dialog h2', 'Delete d?');
  await page.goBack();
  await sees(page, 'h1', /^e$/);
  await until('nothing is asked any more', async () => (await question.count()) === 0);
  assert.equal((await request('GET', 'document-left/d')).status, 200);
  assert.equal((await request('GET', 'document-left/e?conflicts=true')).body._conflicts.length, 1);
});

// It stood there for ever.
test('what a read says goes with the next that is good, and what an action says with the next action', async (t) => {
  await createDatabase('document-errors');
  const rev = await put('document-errors/d', { says: 'first' });
  const page = await openPage(t, '/none');
  const refused = { status: 500, body: '{"error":"disk_failed","reason":"the disk cannot be read"}' };
  await page.route('**/document-errors/_bulk_get?*', (route) => route.fulfill(refused), { times: 1 });
  await page.evaluate(() => (location.hash = '#/db/document-errors/doc/d'));
  const errors = () => page.locator('main > .error').allInnerTexts();
  // The feed begins with a read, too.
  await sees(page, '.body .json', 'first');
  await until('nothing is wrong any more', async () => (await errors()).join('') === '');

  await page.route('**/document-errors/_bulk_docs', (route) => route.fulfill(refused), { times: 1 });
  const remove = async () => {
    await button(page, 'Delete').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  };
  await remove();
  await sees(page, 'main > .error', 'the disk cannot be read');
  await put('document-errors/d', { _rev: rev, says: 'second' });
  await sees(page, '.body .json', 'second');
  assert.equal((await errors()).join(''), 'the disk cannot be read', 'it was read, and yet not deleted');
  await remove();
  await sees(page, '.history .badge', 'deleted');
  assert.equal((await errors()).join(''), '');
});

// It was gone without a word.
test('who leaves a text that is not saved is asked first', async (t) => {
  await createDatabase('document-unsaved');
  await put('document-unsaved/d', { says: 'first' });
  const page = await openPage(t, '/db/document-unsaved');
  await page.evaluate(() => (location.hash = '#/db/document-unsaved/doc/d'));
  await button(page, 'Edit').click();
  await page.goBack();
  await sees(page, '.controls .state', /^live$/);
  await page.goForward();
  await button(page, 'Edit').click();
  await editor(page).fill('{"says": "mine"}');
  const answer = (name) => page.getByRole('dialog').getByRole('button', { name, exact: true }).click();
  const address = page.url();
  await page.goBack();
  await sees(page, 'dialog h2', 'Leave without saving?');
  assert.equal(page.url(), address);
  await answer('Cancel');
  assert.equal(await editor(page).inputValue(), '{"says": "mine"}');

  const unload = page.waitForEvent('dialog');
  await page.evaluate(() => void setTimeout(() => location.reload()));
  const asked = await unload;
  assert.equal(asked.type(), 'beforeunload');
  await asked.dismiss();
  await page.evaluate(() => (location.hash = '#/feeds'));
  await answer('Leave');
  await sees(page, 'main h1', 'Subscribers');
  assert.ok(page.url().endsWith('#/feeds'));
});

test('the tree is drawn: winner, loser, deleted leaf, missing bodies', async (t) => {
  await createDatabase('document-tree');
  await writeConflict('document-tree', 'd');
  const page = await openPage(t, '/db/document-tree/doc/d');
  await sees(page, '.history', '5 revisions, 3 leaves, 1 conflict, 1 deleted');
  for (const [kind, many] of Object.entries({ winner: 1, conflict: 1, deleted: 1, missing: 2 })) {
    assert.equal(await page.locator(`.lanes .dot.${kind}`).count(), many, kind);
  }
  assert.equal(await page.locator('.lanes .line').count(), 4, 'each revision but the first has a line to where it came from');
  const rows = await page.locator('.picture li').allInnerTexts();
  assert.deepEqual(rows.map((row) => row.replaceAll(/\s+/g, ' ').trim()), ['3-d winner', '3-c conflict', '2-b no body', '2-e deleted', '1-a no body']);
  await page.locator('.revision.conflict').click();
  await sees(page, '.body .json', '"says": "c"');
  await page.locator('.revision.missing').first().click();
  await sees(page, '.body', 'Its body is gone');
});

test('a long history is folded, and unfolds', async (t) => {
  await createDatabase('document-long');
  let rev;
  for (let at = 0; at < 30; at += 1) rev = await put('document-long/d', { _rev: rev, at });
  const page = await openPage(t, '/db/document-long/doc/d');
  await sees(page, '.picture', '25 revisions more');
  assert.equal(await page.locator('.picture li').count(), 6);
  await button(page, '25 revisions more').click();
  await until('all revisions', async () => (await page.locator('.picture li').count()) === 30);
  await page.locator('.revision', { hasText: '7-' }).first().click();
  await sees(page, '.body h2', 'Revision');
});

test('a conflict is resolved by picking a leaf, on a page that was open across a restart', async (t) => {
  await createDatabase('document-conflict');
  await put('document-conflict/d', { says: 'alone' });
  const page = await openPage(t, '/db/document-conflict/doc/d');
  await sees(page, '.body .json', '"says": "alone"');
  await stopServer();
  await sees(page, 'main .state', 'the server has stopped');
  await startServer();
  await writeConflict('document-conflict', 'd');
  await sees(page, '.conflicts', '3 leaves stand side by side');
  await sees(page, '.choice', '"says": "alone"');
  await button(page, 'Keep this one: 3-c').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Keep this one' }).click();
  await page.locator('.conflicts').waitFor({ state: 'detached' });
  await sees(page, '.body .json', '"says": "c"');
  const { body } = await request('GET', 'document-conflict/d?conflicts=true&deleted_conflicts=true');
  assert.equal(body._rev, '3-c');
  assert.equal(body._conflicts, undefined);
  assert.equal(body._deleted_conflicts.length, 3, 'every other leaf has a tombstone');
});

// A click that was under way was lost: what was read again was drawn anew, though it was the same.
test('a document that is read again and has not changed is not drawn anew', async (t) => {
  await createDatabase('document-same');
  await put('document-same/d', { says: 'same' });
  const page = await openPage(t, '/db/document-same/doc/d');
  await sees(page, '.body .json', '"says": "same"');
  const edit = await button(page, 'Edit').elementHandle();
  const read = page.waitForResponse((response) => response.url().includes('_bulk_get'));
  await stopServer();
  await sees(page, 'main .state', 'the server has stopped');
  await startServer();
  await (await read).finished();
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  assert.ok(await edit.evaluate((button) => button.isConnected));
});

// Each row of the feed had all leaves read, the body, and each leaf of a conflict, whatever was being read already.
test('a document that changes often is read once at a time, and its last revision is shown', async (t) => {
  await createDatabase('document-often');
  let rev = await put('document-often/d', { at: 0 });
  const page = await openPage(t, '/db/document-often/doc/d');
  await sees(page, '.body .json', '"at": 0');
  const held = await hold(page, ({ pathname }) => /\/document-often\/(_bulk_get|d)$/.test(pathname));
  for (let at = 1; at <= 20; at += 1) rev = await put('document-often/d', { _rev: rev, at });
  await until('it is told of all', () => page.evaluate(() => globalThis.seqtide.page.stream.since === '21'));
  await page.evaluate(() => fetch('../_up'));
  assert.equal(held.length, 1, 'one at a time');
  await held[0].send();
  await until('one behind it, for all others', () => held.length === 2);
  await held[1].send();
  await sees(page, '.body .json', '"at": 20');
  assert.equal(held.length, 2);
});

// In a path a browser takes these for folders: the page showed something else, or nothing.
for (const id of ['.', '..', '_design/.', 'a/..', '%2E']) {
  test(`a document with the id ${id} is shown, written and deleted`, async (t) => {
    const name = `document-named-${Buffer.from(id).toString('hex')}`;
    const database = await createDatabase(name);
    const write = async (body) => {
      const { status } = await request('POST', name, { _id: id, ...body });
      assert.equal(status, 201);
    };
    const read = async () => {
      const { body } = await request('POST', `${name}/_bulk_get`, { docs: [{ id }] });
      return body.results[0].docs[0].ok;
    };
    await write({ says: 'first' });
    const page = await openPage(t, `/db/${name}/doc/${encodeURIComponent(id)}`);
    await sees(page, '.body .json', '"says": "first"');
    await button(page, 'Edit').click();
    await editor(page).fill('{"price": 12.50}');
    await button(page, 'Save').click();
    await sees(page, '.body .json', '"price": 12.50');
    await write({ _rev: (await read())._rev, says: 'elsewhere' });
    await sees(page, '.body .json', '"says": "elsewhere"');
    await sees(page, '.history', '3 revisions');
    await page.locator('.revision', { hasText: '2-' }).click();
    await sees(page, '.body', /12\.50|Its body is gone/);
    await button(page, 'To the winner').click();
    await button(page, 'Delete').click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await sees(page, '.history .badge', 'deleted');
    assert.equal((await read())._deleted, true);
    assert.equal((await (await fetch(database)).json()).doc_del_count, 1);
  });
}
