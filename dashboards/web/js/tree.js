// A document's revisions as a tree, and the tree as rows of a picture: newest generation first, a lane a leaf.

/** Leaves that are drawn; a document may have more. */
export const LEAVES_MAX = 24;
/** Revisions shown at the ends of a long line. */
const ENDS = 3;

/** Generations may be larger than what a double is exact for. */
const generation = (rev) => BigInt(rev.slice(0, rev.indexOf('-')));
/** What a hash is compared by: 32 hex digits are 16 bytes, anything else is its text. */
const bytesOf = (hash) => (/^[0-9a-f]{32}$/i.test(hash) ? Uint8Array.from(hash.match(/../g), (digits) => parseInt(digits, 16)) : new TextEncoder().encode(hash));
const order = (a, b) => (a < b ? -1 : Number(a > b));

/** In the order of their bytes; what begins as another one does comes behind it. */
function orderOfHashes(a, b) {
  const [ours, theirs] = [a, b].map(bytesOf);
  const at = ours.findIndex((byte, at) => byte !== theirs[at]);
  // Of the same bytes a text is the higher one.
  return at < 0 ? order(ours.length, theirs.length) || order(b.length, a.length) : order(ours[at], theirs[at] ?? -1);
}

/** The winner is CouchDB's: what is not deleted before what is, the longest line, then the highest hash. */
function before(a, b) {
  const deleted = Number(Boolean(a._deleted)) - Number(Boolean(b._deleted));
  const hash = ({ _rev }) => _rev.slice(_rev.indexOf('-') + 1);
  return deleted || order(generation(b._rev), generation(a._rev)) || orderOfHashes(hash(b), hash(a));
}

/**
 * Makes the tree of a document's leaves, with `_revisions` and `_revs_info`.
 *
 * Leaves come in the order in which they win; a node has `{rev, generation, parent, children, lane, status, leaf}`.
 */
export function treeOf(documents) {
  const leaves = [...documents].sort(before);
  const nodes = new Map();
  leaves.slice(0, LEAVES_MAX).forEach((leaf, lane) => addLine(nodes, leaf, lane));
  for (const node of nodes.values()) nodes.get(node.parent)?.children.push(node);
  return { leaves, nodes, winner: leaves[0]?._rev ?? null, conflicts: leaves.filter((leaf) => !leaf._deleted).slice(1) };
}

function addLine(nodes, leaf, lane) {
  const { ids } = leaf._revisions;
  const start = generation(leaf._rev);
  const status = new Map((leaf._revs_info ?? []).map(({ rev, status }) => [rev, status]));
  ids.forEach((id, at) => {
    const own = start - BigInt(at);
    const rev = `${own}-${id}`;
    // Lines come together on the way down: what is below belongs to the one that wins.
    if (nodes.has(rev)) return;
    const parent = at + 1 < ids.length ? `${own - 1n}-${ids[at + 1]}` : null;
    nodes.set(rev, { rev, generation: own, parent, lane, status: status.get(rev) ?? 'missing', leaf: at === 0 ? leaf : null, children: [] });
  });
}

/** The rows of the picture. A long line without branches is one row, unless `whole`. */
export function rowsOf({ nodes }, whole) {
  const kept = whole ? () => true : keeper(nodes);
  const rows = [];
  const runs = new Map();
  for (const node of [...nodes.values()].sort((a, b) => order(b.generation, a.generation) || a.lane - b.lane)) {
    if (kept(node)) {
      rows.push({ node, lane: node.lane });
      continue;
    }
    const above = runs.get(node.children[0]?.rev);
    const run = above ?? { run: [], lane: node.lane };
    if (!above) rows.push(run);
    run.run.push(node);
    runs.set(node.rev, run);
  }
  return rows;
}

/** Tells which revisions of long lines are shown: those near a leaf, a root or a fork. */
function keeper(nodes) {
  const near = new Set();
  const marked = [...nodes.values()].filter(({ parent, children }) => !nodes.has(parent) || children.length !== 1);
  for (const node of marked) {
    near.add(node.rev);
    node.children.forEach(({ rev }) => near.add(rev));
    let below = node;
    for (let at = 0; at < ENDS && below; at += 1) {
      near.add(below.rev);
      below = nodes.get(below.parent);
    }
  }
  // One revision alone takes no more room than the word for it.
  return (node) => near.has(node.rev) || (near.has(node.parent) && near.has(node.children[0]?.rev));
}
