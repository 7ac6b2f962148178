// A document: its body, its history as a picture, its conflicts, and how to change it.

import { address, ask } from '../api.js';
import { confirmed } from '../dialog.js';
import { fill, h, say } from '../dom.js';
import { Edit } from '../edit.js';
import { counted } from '../format.js';
import { json, pretty, without } from '../json.js';
import { latest } from '../latest.js';
import { picture } from '../picture.js';
import { Revisions } from '../revisions.js';
import { StateLine } from '../state.js';
import { Stream } from '../stream.js';
import { LEAVES_MAX, treeOf } from '../tree.js';

/** Members that tell of a revision what the history shows. */
const SHOWN = ['_rev', '_revisions', '_revs_info'];
/** Members that the server adds to what was written. */
const ADDED = [...SHOWN, '_id', '_deleted'];

export function documentPage({ main, names: [database, id] }) {
  const page = new DocumentPage(database, id);
  fill(main, page.parts);
  page.begin();
  return { title: id, close: () => page.close(), get stream() { return page.stream; }, get isBusy() { return page.edit?.isUnsaved ?? false; } };
}

class DocumentPage {
  constructor(database, id) {
    Object.assign(this, { database, id, tree: treeOf([]), selected: null, whole: false, edit: null });
    // Writes of the page's own: how many are not answered, and the revisions that were made.
    Object.assign(this, { writing: 0, own: new Set() });
    this.revisions = new Revisions(database, id);
    this.load = latest(() => this.read());
    this.state = new StateLine(() => this.begin());
    // What reading has against it stands until it is read, what an action has until the next one.
    this.unread = h('p', { class: 'error', role: 'alert' });
    this.error = h('p', { class: 'error', role: 'alert' });
    this.conflicts = h('div', {});
    this.body = h('section', { class: 'card body', 'aria-label': 'Body' });
    this.history = h('section', { class: 'card history' });
    const link = h('a', { href: `#/db/${encodeURIComponent(database)}` }, database);
    this.parts = [
      h('nav', { 'aria-label': 'Where you are', class: 'path' }, h('a', { href: '#/' }, 'Databases'), ' / ', link, ' / ', h('span', { 'aria-current': 'page' }, id)),
      h('div', { class: 'head' }, h('h1', {}, id), this.state.element),
      this.unread,
      this.error,
      this.conflicts,
      h('div', { class: 'document' }, this.body, this.history),
    ];
  }

  /** Shows the document, and follows it: whoever changes it, the page shows it. There may be no feed to be had. */
  begin() {
    this.load();
    this.stream = new Stream({
      url: (since) => address([this.database, '_feed'], { doc_ids: JSON.stringify([this.id]), since: since ?? 'now', heartbeat: 5000 }),
      on: { message: () => this.load(), rewind: () => this.load() },
      state: (state, detail) => {
        this.state.show(state, detail);
        if (state === 'live') this.load();
      },
      explain: async () => {
        const answer = await ask('GET', address([this.database])).catch((error) => error);
        return answer.status === 404 ? answer : null;
      },
    });
  }

  close() {
    this.stream.close();
  }

  async read() {
    let leaves;
    try {
      leaves = await this.revisions.leaves();
    } catch (error) {
      say(this.unread, error.message);
      return;
    }
    say(this.unread, '');
    const before = this.tree.winner;
    this.tree = treeOf(leaves);
    // Who looks at the winner goes on looking at the winner; who looks at another one has chosen it.
    if (this.selected === before || !this.tree.nodes.has(this.selected)) this.selected = this.tree.winner;
    this.judge();
    // A write of the page's own is told of by the feed as well, and what is made anew loses a click that is under way.
    if (this.drawn !== this.standing()) await this.show();
  }

  /** The feed may tell of a write of the page's own before its answer does: whose a revision is can be seen when all are answered. */
  judge() {
    if (this.edit && this.writing === 0 && !this.edit.knows(this.tree.winner)) this.overtake();
  }

  /** Waits for the answer to a write. */
  async written(answer) {
    this.writing += 1;
    try {
      const results = await answer;
      [results].flat().forEach(({ rev }) => this.own.add(rev));
      return results;
    } finally {
      this.writing -= 1;
    }
  }

  /** What the page shows is made of this. */
  standing() {
    return JSON.stringify([this.tree.leaves.map(({ text }) => text), this.selected, this.edit === null]);
  }

  async show() {
    this.drawn = this.standing();
    this.showHistory();
    this.showConflicts();
    if (!this.edit) await this.showBody();
  }

  complain(error) {
    say(this.error, error?.message ?? '');
  }

  async showBody() {
    const { selected, tree } = this;
    if (!selected) {
      fill(this.body, h('p', { class: 'notice' }, 'There is no such document.'), h('div', { class: 'buttons' }, this.button('Write it', () => this.beginEdit('{}', null), 'main')));
      return;
    }
    const { leaf, status } = tree.nodes.get(selected);
    const parts = [h('div', { class: 'head' }, h('h2', {}, 'Revision ', h('span', { class: 'mono' }, selected)), this.actions(leaf))];
    try {
      const text = leaf?.text ?? (await this.revisions.read(selected));
      if (this.selected !== selected || this.edit) return;
      parts.push(json(without(text, SHOWN)));
    } catch (error) {
      if (this.selected !== selected || this.edit) return;
      // It is tried again when something is told of.
      this.drawn = null;
      const gone = status === 'missing' && error.status === 404;
      parts.push(h('p', { class: 'notice' }, gone ? 'Its body is gone: no leaf needs it any more, and its room has been freed.' : error.message));
    }
    fill(this.body, parts);
  }

  actions(leaf) {
    const buttons = [];
    if (leaf && leaf._rev === this.tree.winner) {
      const deleted = Boolean(leaf._deleted);
      buttons.push(this.button(deleted ? 'Write it anew' : 'Edit', () => this.editWinner(leaf), 'main'));
      if (!deleted) buttons.push(this.button('Delete', () => this.remove(), 'danger'));
    } else if (this.tree.winner) {
      buttons.push(this.button('To the winner', () => this.pick(this.tree.winner)));
    }
    return h('div', { class: 'buttons' }, buttons);
  }

  button(label, act, kind) {
    return h('button', { type: 'button', class: kind, onclick: act }, label);
  }

  showHistory() {
    const { tree, selected, whole } = this;
    const { leaves, nodes, conflicts } = tree;
    const deleted = leaves.filter((leaf) => leaf._deleted).length;
    const facts = [counted(nodes.size, 'revision'), counted(leaves.length, 'leaf', 'leaves')];
    if (conflicts.length) facts.push(counted(conflicts.length, 'conflict'));
    if (deleted) facts.push(`${deleted} deleted`);
    if (leaves.length > LEAVES_MAX) facts.push(`${LEAVES_MAX} leaves are drawn`);
    // The button that was pressed is made anew: who stood on it stands on its successor.
    const focused = this.history.contains(document.activeElement) ? document.activeElement.title : null;
    fill(
      this.history,
      h('h2', {}, 'History'),
      h('p', { class: 'notice' }, nodes.size ? facts.join(', ') : 'none'),
      picture(tree, { selected, whole, picked: (rev) => this.pick(rev), unfolded: () => this.unfold() }),
    );
    if (focused) this.history.querySelector(`button[title="${CSS.escape(focused)}"]`)?.focus();
  }

  pick(rev) {
    this.selected = rev;
    this.show();
  }

  unfold() {
    this.whole = true;
    this.showHistory();
    this.history.querySelector('button')?.focus();
  }

  showConflicts() {
    const alive = this.tree.leaves.filter((leaf) => !leaf._deleted);
    if (alive.length < 2) {
      fill(this.conflicts);
      return;
    }
    const cards = alive.slice(0, LEAVES_MAX).map(({ _rev: rev, text }) => {
      const body = h('div', { class: 'conflict-body', tabindex: 0, role: 'region', 'aria-label': `Body of ${rev}` }, json(without(text, ADDED)));
      const winner = rev === this.tree.winner && h('span', { class: 'badge winner' }, 'winner');
      const keep = h('button', { type: 'button', 'aria-label': `Keep this one: ${rev}`, onclick: () => this.keep(rev) }, 'Keep this one');
      return h('div', { class: 'choice' }, h('div', { class: 'head' }, h('span', {}, h('span', { class: 'mono' }, rev.slice(0, 12)), ' ', winner), keep), body);
    });
    const text = `${counted(alive.length, 'leaf', 'leaves')} stand side by side. Pick the one that is right: the others are deleted.`;
    fill(this.conflicts, h('section', { class: 'card conflicts' }, h('h2', {}, 'Conflict'), h('p', { class: 'notice' }, text), h('div', { class: 'choices' }, cards)));
  }

  /** Resolves a conflict: every other leaf gets a tombstone, in one request. */
  async keep(rev) {
    const others = this.tree.leaves.filter((leaf) => !leaf._deleted && leaf._rev !== rev);
    const text = `${counted(others.length, 'other leaf', 'other leaves')} will be deleted.`;
    if (!(await confirmed({ title: `Keep ${rev.slice(0, 12)} of ${this.id}?`, text, yes: 'Keep this one' }))) return;
    this.complain(null);
    try {
      const results = await this.written(this.revisions.remove(others.map(({ _rev }) => _rev)));
      const refused = results.filter(({ error }) => error);
      if (refused.length) this.complain(new Error(`${counted(refused.length, 'leaf', 'leaves')} had moved meanwhile (${refused[0].reason}): look again`));
    } catch (error) {
      this.complain(error);
    }
    await this.load();
  }

  async remove() {
    const { winner: rev, conflicts } = this.tree;
    const text = conflicts.length ? `This leaf alone is deleted: ${conflicts[0]._rev.slice(0, 12)} wins then.` : 'A tombstone takes its place; feeds tell of it as deleted.';
    if (!(await confirmed({ title: `Delete ${this.id}?`, text, yes: 'Delete' }))) return;
    this.complain(null);
    try {
      const [{ error, reason }] = await this.written(this.revisions.remove([rev]));
      if (error) this.complain(new Error(error === 'conflict' ? 'It was changed meanwhile, so it is still there: look at it again.' : reason));
    } catch (error) {
      this.complain(error);
    }
    await this.load();
  }

  editWinner({ _rev: rev, _deleted: deleted, text }) {
    this.beginEdit(deleted ? '{}' : pretty(without(text, ADDED)), rev);
  }

  /** Shows a text to be changed. It goes on from a revision, which may be another one by the time it is saved. */
  beginEdit(text, base) {
    this.edit = new Edit({ text, base, save: () => this.save(), leave: () => this.endEdit() });
    fill(this.body, this.edit.parts);
    this.edit.area.focus();
  }

  endEdit() {
    this.edit = null;
    this.selected = this.tree.winner;
    this.show();
  }

  async save() {
    const { edit } = this;
    if (edit.isBeingSaved || !edit.isFit()) return;
    this.complain(null);
    const base = this.tree.nodes.get(edit.base)?.leaf?._deleted ? null : edit.base;
    try {
      await edit.hold(this.written(this.revisions.write(base, edit.value)));
      // It may have been left meanwhile, and another one begun.
      if (this.edit === edit) {
        this.edit = null;
        this.selected = this.tree.winner;
      }
    } catch (failed) {
      if (failed.status !== 409) {
        edit.complain(failed.message);
        this.judge();
        return;
      }
    }
    await this.load();
  }

  /** Tells the edit of a winner that it does not go on from. */
  overtake() {
    const { winner, leaves: [leaf] } = this.tree;
    const theirs = leaf && !leaf._deleted ? pretty(without(leaf.text, ADDED)) : null;
    this.edit.overtaken({ winner, theirs, deleted: leaf?._deleted, isOwn: this.own.has(winner) });
  }
}
