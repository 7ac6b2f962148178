// Edits that make two replicas disagree: each function takes documents both sides hold at the same revision, and
// edits them on either side through PouchDB.

import assert from 'node:assert/strict';

const edited = (document, side) => ({ ...document, name: `${document.name} (${side})`, editedBy: side });
const deleted = ({ _id, _rev }, side) => ({ _id, _rev, _deleted: true, deletedBy: side });

/** Both sides edit the same documents differently. */
export const editBoth = (local, remote, documents) => diverge(local, remote, documents, edited, edited);

/** One side deletes what the other edits. */
export const deleteLocally = (local, remote, documents) => diverge(local, remote, documents, deleted, edited);
export const deleteRemotely = (local, remote, documents) => diverge(local, remote, documents, edited, deleted);

/** Both sides delete, each leaving another tombstone. */
export const deleteBoth = (local, remote, documents) => diverge(local, remote, documents, deleted, deleted);

/**
 * Makes one edit of each document on each side at the same time, and returns the ids that both sides took. While
 * replication is live an edit may come too late, after the other side's has arrived: that one is refused.
 */
async function diverge(local, remote, documents, localEdit, remoteEdit) {
  const results = await Promise.all([
    local.bulkDocs(documents.map((document) => localEdit(document, 'local'))),
    remote.bulkDocs(documents.map((document) => remoteEdit(document, 'remote'))),
  ]);
  const taken = results.map((side) => side.map(isTaken));
  return documents.filter((_, index) => taken.every((side) => side[index])).map(({ _id }) => _id);
}

function isTaken(result) {
  assert.ok(result.ok || result.status === 409, `an edit was refused: ${JSON.stringify(result)}`);
  return result.ok === true;
}

/**
 * Pushes branches with revisions of their own making, as a replicator does: on one side a second root that loses to
 * what is there, on the other a tombstone beside it. No check of the current revision can refuse them.
 */
export async function pushLosingBranches(local, remote, documents) {
  const roots = documents.map(({ _id }) => ({ _id, _rev: `1-${'0'.repeat(31)}a`, secondRoot: true }));
  const tombstones = documents.map(({ _id }) => ({ _id, _rev: `1-${'0'.repeat(31)}b`, _deleted: true }));
  for (const [db, docs] of [[local, roots], [remote, tombstones]]) {
    assert.deepEqual(await db.bulkDocs(docs, { new_edits: false }), []);
  }
  return documents.map(({ _id }) => _id);
}

/** Resolves conflicts on one side by deleting the losing leaves. */
export async function resolve(db, ids) {
  for (const id of ids) {
    const { _conflicts = [] } = await db.get(id, { conflicts: true });
    assert.ok(_conflicts.length > 0, `${id} has a conflict to resolve`);
    for (const rev of _conflicts) await db.remove(id, rev);
  }
}
