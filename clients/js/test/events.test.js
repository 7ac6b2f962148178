import assert from 'node:assert/strict';
import { test } from 'node:test';
import { events } from '../src/events.js';

/** What is read of these bytes when they come in pieces of so many. */
async function read(bytes, size) {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
  const said = [];
  for await (const event of events(new Blob(pieces).stream().pipeThrough(resized(size)))) said.push(event);
  return said.filter((event) => Object.keys(event).length > 0);
}

const resized = (size) =>
  new TransformStream({
    transform(chunk, controller) {
      for (let at = 0; at < chunk.length; at += size) controller.enqueue(chunk.slice(at, at + size));
    },
  });

test('events are the same in pieces of any size', async () => {
  const bytes = new TextEncoder().encode(': hello\n\nretry: 1500\n\ndata: [{"é":1}]\nid: x\n\ndata: a\ndata: b\n\ndata: cut');
  const expected = [{ retry: 1500 }, { data: '[{"é":1}]' }, { data: 'a\nb' }];
  for (const size of [1, 2, 3, 7, bytes.length]) assert.deepEqual(await read(bytes, size), expected, `of ${size}`);
});
