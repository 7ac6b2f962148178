// A document's revisions, read and written. Requests have its id in their body: in a path a browser takes `.` and `..` for
// folders, however they are written.

import { ApiError, address, ask, askText } from './api.js';
import { elementsOf, memberOf, without } from './json.js';

export class Revisions {
  constructor(database, id) {
    Object.assign(this, { database, id });
  }

  /** Every leaf: where it came from, and its text. None where there is no document. */
  async leaves() {
    const texts = await this.texts({ id: this.id }, { revs: true, revs_info: true });
    return texts.map((text) => {
      const { _rev, _deleted, _revisions, _revs_info } = JSON.parse(text);
      return { _rev, _deleted, _revisions, _revs_info, text };
    });
  }

  /** The text of a revision. */
  async read(rev) {
    const [text] = await this.texts({ id: this.id, rev });
    if (text === undefined) throw new ApiError(404, { error: 'not_found', reason: 'missing' });
    return text;
  }

  async texts(asked, options) {
    const body = JSON.stringify({ docs: [asked] });
    const answer = await askText('POST', address([this.database, '_bulk_get'], options), { body, reads: true });
    // A text keeps every digit.
    const [result] = elementsOf(memberOf(answer, 'results'));
    const found = elementsOf(memberOf(result, 'docs'));
    return found.flatMap((one) => memberOf(one, 'ok') ?? missing(one));
  }

  /** Writes a text as the successor of a revision, `null` for that of none. */
  write(rev, text) {
    const own = [`"_id":${JSON.stringify(this.id)}`, rev && `"_rev":${JSON.stringify(rev)}`, without(text, ['_id', '_rev']).slice(1, -1)];
    return ask('POST', address([this.database]), { body: `{${own.filter(Boolean).join(',')}}` });
  }

  /** Deletes revisions, in one request; says what became of each. */
  remove(revs) {
    const docs = revs.map((_rev) => ({ _id: this.id, _rev, _deleted: true }));
    return ask('POST', address([this.database, '_bulk_docs']), { body: { docs } });
  }
}

/** Nothing, where that is what there is; else why it cannot be had. */
function missing(one) {
  const { error } = JSON.parse(one);
  if (error.error !== 'not_found') throw new ApiError(400, error);
  return [];
}
