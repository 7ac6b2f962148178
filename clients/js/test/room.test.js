// Who takes rows slowly is read for slowly, and gets all of them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Seqtide } from '../src/index.js';
import { Room } from '../src/room.js';
import { row, serve } from './server.js';

test('all who wait for room get in, and again, and when nothing comes any more', async () => {
  const room = new Room();
  const fill = (rows) => { for (let count = 0; count < rows; count += 1) room.fill(); };
  const free = (rows) => { for (let count = 0; count < rows; count += 1) room.free(); };
  for (let again = 0; again < 2; again += 1) {
    fill(999);
    assert.equal(room.wait(), undefined);
    fill(1);
    let waiting = 2;
    const waits = [room.wait(), room.wait()].map((wait) => wait.then(() => (waiting -= 1)));
    free(500);
    await null;
    assert.equal(waiting, 2, 'until half of them are taken');
    free(1);
    await Promise.all(waits);
    free(499);
  }
  fill(1000);
  const wait = room.wait();
  room.close();
  await wait;
  assert.equal(room.wait(), undefined);
});

test('who does not take rows is not read for', async (t) => {
  let written = 0;
  const server = await serve(t, [
    ({ open, answer, send }) => {
      open();
      const more = () => {
        while (written < 200_000 && send(...Array.from({ length: 100 }, () => row('1', (written += 1)))));
        if (written < 200_000) answer.once('drain', more);
      };
      more();
    },
  ]);
  const seqtide = new Seqtide(server.url);
  const subscription = seqtide.follow('db', { since: 0 });
  const rows = subscription[Symbol.asyncIterator]();
  assert.equal((await rows.next()).value.seq, 1);
  let before;
  do {
    before = written;
    await new Promise((resolve) => setTimeout(resolve, 200));
  } while (written !== before);
  assert.ok(written < 200_000, 'it waits for the reader');
  for (let expected = 2; expected <= 200_000; expected += 1) assert.equal((await rows.next()).value.seq, expected);
  seqtide.close();
});
