// The picture of a revision tree: lanes and dots on the left, and beside each dot what it is, as a button.

import { h } from './dom.js';
import { counted } from './format.js';
import { rowsOf } from './tree.js';

const ROW_PX = 32;
const LANE_PX = 20;
const MARGIN_PX = 14;

/** What a revision is, in a word: the class of its dot and of its badge. */
function kindOf(node, winner) {
  if (node.leaf?._deleted) return 'deleted';
  if (node.rev === winner) return 'winner';
  if (node.leaf) return 'conflict';
  return node.status === 'available' ? 'ancestor' : 'missing';
}

const WORDS = { deleted: 'deleted', winner: 'winner', conflict: 'conflict', missing: 'no body' };

/** The picture of a tree. `picked(rev)` is called for a revision, `unfolded()` for a run of those that are left out. */
export function picture(tree, { selected, whole, picked, unfolded }) {
  const rows = rowsOf(tree, whole);
  const lanes = Math.max(0, ...rows.map(({ lane }) => lane)) + 1;
  const width = 2 * MARGIN_PX + (lanes - 1) * LANE_PX;
  const places = new Map();
  rows.forEach(({ node, run, lane }, at) => {
    const place = { x: MARGIN_PX + lane * LANE_PX, y: at * ROW_PX + ROW_PX / 2 };
    (run ?? [node]).forEach(({ rev }) => places.set(rev, place));
  });
  const edges = [...tree.nodes.values()]
    .filter(({ rev, parent }) => places.has(parent) && places.get(parent) !== places.get(rev))
    .map(({ rev, parent, lane }) => h('path', { d: edge(places.get(rev), places.get(parent)), class: lane === 0 ? 'line' : 'line side' }));
  const dots = rows.map(({ node, run }) => (run ? rest(places.get(run[0].rev)) : dot(kindOf(node, tree.winner), places.get(node.rev))));
  const drawn = h('svg', { width, height: rows.length * ROW_PX, class: 'lanes', 'aria-hidden': 'true' }, edges, dots);
  const items = rows.map(({ node, run }) => {
    const button = run
      ? h('button', { type: 'button', class: 'quiet', onclick: unfolded }, `${counted(run.length, 'revision')} more`)
      : revision(node, kindOf(node, tree.winner), node.rev === selected, picked);
    return h('li', {}, button);
  });
  return h('div', { class: 'picture' }, drawn, h('ol', { 'aria-label': 'Revisions, the newest first' }, items));
}

function revision({ rev }, kind, selected, picked) {
  const [number, hash] = rev.split(/-(.*)/s);
  return h(
    'button',
    { type: 'button', class: `revision ${kind}`, 'aria-current': selected && 'true', onclick: () => picked(rev), title: rev },
    h('span', { class: 'mono' }, `${number}-${hash.slice(0, 8)}`),
    WORDS[kind] && h('span', { class: `badge ${kind}` }, WORDS[kind]),
  );
}

/** Down the child's lane, then over to the parent's. */
function edge(from, to) {
  if (from.x === to.x) return `M${from.x} ${from.y}V${to.y}`;
  const turn = to.y - ROW_PX;
  return `M${from.x} ${from.y}V${turn}C${from.x} ${turn + ROW_PX * 0.7} ${to.x} ${to.y - ROW_PX * 0.7} ${to.x} ${to.y}`;
}

/** Told apart by shape as well as by colour. */
function dot(kind, { x, y }) {
  if (kind === 'deleted') {
    return h('g', { class: `dot ${kind}` }, h('rect', { x: x - 5, y: y - 5, width: 10, height: 10, rx: 1.5 }), h('path', { d: `M${x - 3} ${y - 3}l6 6m0-6l-6 6` }));
  }
  if (kind === 'conflict') return h('path', { class: `dot ${kind}`, d: `M${x} ${y - 7}l7 7l-7 7l-7-7z` });
  return h('circle', { class: `dot ${kind}`, cx: x, cy: y, r: kind === 'winner' ? 7 : 4.5 });
}

const rest = ({ x, y }) => h('path', { class: 'dot rest', d: `M${x} ${y - 9}v18` });
