// A server that misbehaves as it is told to, and what tests take from it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';

/**
 * A server whose connections are told what to do by `script`, one function for each and the last for all that follow; `change`
 * answers what comes by `/_feed/{connection}`, or says nothing. What connections were asked for is in `asked`, what came for
 * them later in `changes`. Below `/moved/{status}` it redirects with that to where it is.
 */
export async function serve(t, script, change = () => [200, [{ ok: true }]]) {
  const told = { asked: [], changes: [], at: [], open: 0 };
  const server = createServer(async (request, answer) => {
    let body = '';
    for await (const piece of request) body += piece;
    const [, status, place] = /^\/moved\/(\d+)(.*)/.exec(request.url) ?? [];
    if (place !== undefined) return answer.writeHead(status, { Location: place }).end();
    const isGet = request.method === 'GET';
    if (request.url === '/_feed/many') {
      told.asked.push(isGet ? { subscriptions: [] } : JSON.parse(body));
      told.at.push(Date.now());
      told.open += 1;
      answer.on('close', () => (told.open -= 1));
      const number = told.asked.length;
      const { heartbeat } = told.asked.at(-1);
      const send = (...items) => answer.write(items.map((item) => `${JSON.stringify(item)}\n`).join(''));
      const open = (more = {}) => {
        answer.writeHead(200, { 'Content-Type': 'application/x-ndjson' });
        send({ event: 'connection', id: `c-${number}`, heartbeat, ...more });
      };
      const refuse = (status, said, headers = {}) => answer.writeHead(status, headers).end(JSON.stringify(said));
      const { subscriptions } = told.asked.at(-1);
      script[Math.min(number, script.length) - 1]({ answer, send, open, refuse, subscriptions });
    } else if (isGet) {
      answer.writeHead(405).end('{"error":"method_not_allowed","reason":"Only POST allowed"}');
    } else {
      told.changes.push(...JSON.parse(body));
      const said = change(told.changes.at(-1), answer);
      if (said) answer.writeHead(said[0], { 'Content-Type': 'application/json' }).end(JSON.stringify(said[1]));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  told.url = `http://127.0.0.1:${server.address().port}`;
  return told;
}

export const row = (sub, seq) => ({ sub, seq, id: `d-${seq}`, changes: [] });

/** The sequences of so many rows, or of all there are. */
export async function take(subscription, count) {
  const rows = [];
  for await (const { seq } of subscription) {
    rows.push(seq);
    if (rows.length === count) return rows;
  }
  return rows;
}

/** Runs a program that follows `server`, in a process of its own, until it ends by itself, and returns its exit and what it printed. */
export async function run(server, source) {
  const program = `
    import { Seqtide } from ${JSON.stringify(new URL('../src/index.js', import.meta.url))};
    const seqtide = new Seqtide(${JSON.stringify(server.url)});
    ${source}`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], { stdio: ['ignore', 'pipe', 'pipe'] });
  const late = setTimeout(() => child.kill(), 10_000);
  const printed = { out: '', err: '' };
  child.stdout.on('data', (piece) => (printed.out += piece));
  child.stderr.on('data', (piece) => (printed.err += piece));
  const [code, signal] = await once(child, 'close');
  clearTimeout(late);
  return { code, signal, ...printed };
}

/** Polls `condition` until it holds, and fails with `state()` after ten seconds. */
export async function until(what, condition, state = () => '') {
  const end = Date.now() + 10_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`not within 10 s: ${what} ${state()}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** A storage as browsers have it, and what is in it. */
export function storageOf(kept = new Map()) {
  return { kept, getItem: (key) => kept.get(key) ?? null, setItem: (key, token) => kept.set(key, token) };
}
