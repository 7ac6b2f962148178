// Every name that the JavaScript client exports, as a program in TypeScript uses it. It is compiled and not run.

import { Seqtide, SeqtideError } from '../../../clients/js/src/index.js';
import type { FeedEvent, FollowOptions, Row, Seq, Settings, State, Subscription, TokenStorage } from '../../../clients/js/src/index.js';

interface Order {
  status: 'open' | 'done';
  total: number;
}

const settings: Settings = { heartbeat: 10_000, headers: { 'X-Who': 'me' }, fetch: globalThis.fetch, shared: false };
const known: Settings[] = [{ headers: new Headers({ 'X-Who': 'me' }) }, { headers: [['X-Who', 'me']] }, { headers: Object.entries({ 'X-Who': 'me' }) }];
const gone = new SeqtideError({ error: 'gone', reason: 'it was here' });
const ids = ['o-1', 'o-2'] as const;
const seqtide = new Seqtide(new URL('http://127.0.0.1:5984'), settings);

const kept = new Map<string, string>();
const storage: TokenStorage = { getItem: (key) => kept.get(key) ?? null, setItem: (key, token) => void kept.set(key, token) };

const states: State[] = ['connecting', 'catching-up', 'live', 'lagging', 'draining', 'silent', 'ended'];

function total(row: Row<Order>): number {
  const place: Seq = row.seq;
  const revisions: string[] = row.changes.map(({ rev }) => rev);
  console.log(place, revisions, row.doc?._id, row.doc?._rev, row.deleted === true);
  console.log(row.doc?._deleted === true, row.doc?._conflicts?.length);
  return row.left ? 0 : (row.doc?.total ?? 0);
}

const options: FollowOptions<Order> = {
  since: '2026-03-01T12:00:00Z',
  until: 1337,
  snapshot: true,
  leave: true,
  include_docs: true,
  conflicts: true,
  conflicts_only: false,
  doc_ids: ids,
  prefix: 'o-',
  selector: { total: { $gt: 100 } },
  filter: 'app/mine',
  view: 'app/orders',
  query: { owner: 'ann' },
  style: 'all_docs',
  limit: 10,
  live: true,
  on_rewind: 'error',
  storage,
  key: 'orders',
  onRow: async (row, subscription) => {
    console.log(total(row), subscription.db);
    await Promise.resolve();
  },
  onState: (state) => console.log(states.indexOf(state)),
  onEvent: (event: FeedEvent, subscription) => {
    const words: (string | undefined)[] = [event.event, event.error, event.reason];
    const status: number | undefined = event.status;
    console.log(words, status, event.cause, event.seq, event.pending, subscription.token);
  },
};

async function follow(): Promise<number> {
  const told: Subscription<Order> = seqtide.follow('orders', options);
  const taken = seqtide.follow<Order>('orders', { since: 0 });
  const plain: Subscription = seqtide.follow('people');
  let sum = 0;
  try {
    for await (const row of taken) sum += total(row);
    for await (const { doc } of plain) console.log(doc?.anything);
  } catch (error) {
    if (!(error instanceof SeqtideError)) throw error;
    const status: number | undefined = error.status;
    console.log(error.error, error.message, status, told.state);
  } finally {
    told.close();
    seqtide.close();
  }
  return sum;
}

export { follow, gone, known };
