// What two replicas of a database must agree on, read through PouchDB from either side.

import assert from 'node:assert/strict';

const AT_ONCE = 32;

/** Every document's leaves as `_changes` lists them: a map from id to the sorted revisions, as one text. */
export async function leafRevisions(db) {
  const { results } = await db.changes({ since: 0, style: 'all_docs', batch_size: 2000 });
  return new Map(results.map(({ id, changes }) => [id, changes.map(({ rev }) => rev).sort().join(' ')]));
}

/** The ids whose leaves differ between two maps of `leafRevisions`. */
export function differing(left, right) {
  return [...new Set([...left.keys(), ...right.keys()])].filter((id) => left.get(id) !== right.get(id));
}

/** Fails unless both replicas hold the same leaves, bodies, histories, winners, conflicts and counts. */
export async function assertSameReplicas(left, right) {
  const leaves = await leafRevisions(left);
  assert.deepEqual(differing(leaves, await leafRevisions(right)), [], 'documents with different leaves');

  const ids = [...leaves.keys()];
  assert.deepEqual(await winners(left, ids), await winners(right, ids), 'winners');
  await forEach(ids, async (id) => {
    const bodies = await leafBodies(left, id);
    assert.deepEqual(await leafBodies(right, id), bodies, `leaves of ${id}`);
    assert.equal(bodies.map(({ _rev }) => _rev).join(' '), leaves.get(id), `the feed names the leaves of ${id}`);
    if (bodies.length > 1) assert.deepEqual(await winnerAndConflicts(right, id), await winnerAndConflicts(left, id));
  });

  const [leftInfo, rightInfo] = await Promise.all([left.info(), right.info()]);
  assert.equal(leftInfo.doc_count, rightInfo.doc_count, 'doc_count');
}

/** The winning revision of each document, and whether it is a tombstone. */
async function winners(db, ids) {
  const { rows } = await db.allDocs({ keys: ids });
  return rows.map(({ id, value }) => ({ id, rev: value.rev, deleted: value.deleted === true }));
}

/** The bodies of all leaves, deleted ones too, each with its ancestry, in the order of their revisions. */
async function leafBodies(db, id) {
  const leaves = await db.get(id, { open_revs: 'all', revs: true });
  return leaves.map(({ ok }) => ok).sort((a, b) => (a._rev < b._rev ? -1 : 1));
}

/** The winner as a plain GET shows it with its live conflicts; null where the winner is a tombstone. */
async function winnerAndConflicts(db, id) {
  const winner = await db.get(id, { conflicts: true }).catch((error) => {
    if (error.status === 404) return null;
    throw error;
  });
  winner?._conflicts?.sort();
  return winner;
}

/** Runs `task` for every item, a bounded number at a time. */
async function forEach(items, task) {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await task(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
