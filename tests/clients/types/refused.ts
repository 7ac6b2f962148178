// What the types of the JavaScript client refuse: without an error on the line below it, each comment is one.

import { Seqtide, SeqtideError } from '../../../clients/js/src/index.js';
import type { Row, Settings, State, TokenStorage } from '../../../clients/js/src/index.js';

const seqtide = new Seqtide('http://127.0.0.1:5984');
const subscription = seqtide.follow<{ total: number }>('orders');

// @ts-expect-error: a server has an address
new Seqtide();
// @ts-expect-error: which is text, or a URL
new Seqtide(undefined);
// @ts-expect-error: milliseconds, as a number
new Seqtide('http://127.0.0.1:5984', { heartbeat: '10s' });
// @ts-expect-error: a database has a name
seqtide.follow();
// @ts-expect-error: which is text
seqtide.follow(null);
// @ts-expect-error: there is no such option
seqtide.follow('orders', { sinec: 0 });
// @ts-expect-error: one of the words there are
seqtide.follow('orders', { style: 'some_docs' });
// @ts-expect-error: a list, also of one
seqtide.follow('orders', { doc_ids: 'o-1' });
// @ts-expect-error: the heartbeat is the connection's
seqtide.follow('orders', { heartbeat: 10 });
// @ts-expect-error: what keeps tokens reads them too
seqtide.follow('orders', { storage: { setItem: () => {} } });
// @ts-expect-error: the server says where it stands
subscription.state = 'live';
// @ts-expect-error: a document may not be there
subscription.close(); (row: Row<{ total: number }>) => row.doc.total;
// @ts-expect-error: a document has what was said that it has
(row: Row<{ total: number }>) => row.doc?.totla;
// @ts-expect-error: no such state
const state: State = 'open';
// @ts-expect-error: headers are text
const settings: Settings = { headers: { 'X-Number': 1 } };
// @ts-expect-error: a token is text there
const storage: TokenStorage = { getItem: () => 1, setItem: () => {} };
// @ts-expect-error: what was thrown may be anything
seqtide.follow('orders', { onEvent: ({ cause }) => cause.message });
// @ts-expect-error: a status is a number
const status: string = new SeqtideError({ error: 'gone' }).status;
// @ts-expect-error: the word for it has a name
new SeqtideError('gone');

export { settings, state, status, storage };
