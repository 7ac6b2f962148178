import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lines } from '../src/lines.js';

/** What is read of these bytes when they come in pieces of so many, and in how many pieces they came. */
async function read(bytes, size) {
  const pieces = [];
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.slice(at, at + size));
  const items = [];
  let signs = 0;
  const stream = new ReadableStream({
    pull: (controller) => (pieces.length > 0 ? controller.enqueue(pieces.shift()) : controller.close()),
  });
  for await (const some of lines(stream)) {
    signs += 1;
    items.push(...some);
  }
  return { items, signs };
}

test('lines are the same in pieces of any size, and each piece is a sign of life', async () => {
  const bytes = new TextEncoder().encode('{"é":1}\n\n[2]\n{"a":"b\\n"}\n{"cut":');
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const { items, signs } = await read(bytes, size);
    assert.deepEqual(items, [{ é: 1 }, [2], { a: 'b\n' }], `of ${size}`);
    assert.equal(signs, Math.ceil(bytes.length / size));
  }
});

test('what is no line is an error', async () => {
  await assert.rejects(read(new TextEncoder().encode('<html>\n'), 7), SyntaxError);
});

// Each piece had all before it looked through again: a document of 16 MB took minutes.
test('a long line that comes in many pieces is read in the time of its length', async () => {
  const text = 'x'.repeat(16_000_000);
  const began = Date.now();
  const { items } = await read(new TextEncoder().encode(`"${text}"\n`), 1024);
  assert.equal(items[0], text);
  assert.ok(Date.now() - began < 10_000);
});
