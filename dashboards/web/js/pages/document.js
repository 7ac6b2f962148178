// A document: its body, its history as a picture, its conflicts, and how to change it.

import { address, ask, askText, documentSegments } from '../api.js';
import { confirmed } from '../dialog.js';
import { fill, h, say } from '../dom.js';
import { counted } from '../format.js';
import { json, notAnObject, pretty, without } from '../json.js';
import { picture } from '../picture.js';
import { StateLine } from '../state.js';
import { Stream } from '../stream.js';
import { LEAVES_MAX, treeOf } from '../tree.js';

/** Members that the server adds to what was written. */
const ADDED = ['_id', '_rev', '_deleted'];

export function documentPage({ main, names: [database, id] }) {
  const page = new DocumentPage(database, id);
  fill(main, page.parts);
  page.begin();
  return { title: id, close: () => page.close(), get stream() { return page.stream; } };
}

class DocumentPage {
  constructor(database, id) {
    Object.assign(this, { database, id, segments: documentSegments(database, id), tree: treeOf([]), selected: null, whole: false, edit: null });
    this.state = new StateLine(() => this.begin());
    this.error = h('p', { class: 'error', role: 'alert' });
    this.conflicts = h('div', {});
    this.body = h('section', { class: 'card body', 'aria-label': 'Body' });
    this.history = h('section', { class: 'card history' });
    const link = h('a', { href: `#/db/${encodeURIComponent(database)}` }, database);
    this.parts = [
      h('nav', { 'aria-label': 'Where you are', class: 'path' }, h('a', { href: '#/' }, 'Databases'), ' / ', link, ' / ', h('span', { 'aria-current': 'page' }, id)),
      h('div', { class: 'head' }, h('h1', {}, id), this.state.element),
      this.error,
      this.conflicts,
      h('div', { class: 'document' }, this.body, this.history),
    ];
  }

  /** Follows the document: whoever changes it, the page shows it. */
  begin() {
    this.stream = new Stream({
      url: (since) => address([this.database, '_feed'], { doc_ids: JSON.stringify([this.id]), since: since ?? 'now', heartbeat: 5000 }),
      on: { message: () => this.load(), heartbeat: () => {}, rewind: () => this.load() },
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

  url(options) {
    return address(this.segments, options);
  }

  async load() {
    // Of answers that come out of turn the one that was asked for last counts.
    this.asked = (this.asked ?? 0) + 1;
    const { asked } = this;
    let documents = [];
    try {
      const answers = await ask('GET', this.url({ open_revs: 'all', revs: true, revs_info: true }));
      documents = answers.flatMap(({ ok }) => ok ?? []);
    } catch (error) {
      if (error.status !== 404) return this.complain(error);
    }
    if (asked !== this.asked) return;
    const before = this.tree.winner;
    this.tree = treeOf(documents);
    // Who looks at the winner goes on looking at the winner; who looks at another one has chosen it.
    if (this.selected === before || !this.tree.nodes.has(this.selected)) this.selected = this.tree.winner;
    if (this.edit && this.edit.base !== this.tree.winner) this.moved();
    await this.show();
  }

  async show() {
    this.showHistory();
    this.showConflicts();
    if (!this.edit) await this.showBody();
  }

  complain(error) {
    say(this.error, error?.message ?? '');
  }

  /** The text of a revision, or why there is none. */
  read(rev) {
    return askText('GET', this.url({ rev }));
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
      const text = await this.read(selected);
      if (this.selected !== selected || this.edit) return;
      parts.push(json(without(text, ['_rev'])));
    } catch (error) {
      const gone = status === 'missing' && error.status === 404;
      parts.push(h('p', { class: 'notice' }, gone ? 'Its body is gone: no leaf needs it any more, and its room has been freed.' : error.message));
    }
    fill(this.body, parts);
  }

  actions(leaf) {
    const buttons = [];
    if (leaf && leaf._rev === this.tree.winner) {
      const deleted = Boolean(leaf._deleted);
      buttons.push(this.button(deleted ? 'Write it anew' : 'Edit', () => this.editWinner(deleted), 'main'));
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

  async showConflicts() {
    const alive = this.tree.leaves.filter((leaf) => !leaf._deleted);
    if (alive.length < 2) {
      fill(this.conflicts);
      return;
    }
    const cards = alive.slice(0, LEAVES_MAX).map(({ _rev: rev }) => {
      const body = h('div', { class: 'conflict-body', tabindex: 0, role: 'region', 'aria-label': `Body of ${rev}` });
      this.read(rev).then((text) => fill(body, json(without(text, ADDED))), (error) => fill(body, error.message));
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
    if (!(await confirmed({ title: `Keep ${rev.slice(0, 12)}?`, text, yes: 'Keep this one' }))) return;
    this.complain(null);
    try {
      const docs = others.map(({ _rev }) => ({ _id: this.id, _rev, _deleted: true }));
      const results = await ask('POST', address([this.database, '_bulk_docs']), { body: { docs } });
      const refused = results.filter(({ error }) => error);
      if (refused.length) this.complain(new Error(`${counted(refused.length, 'leaf', 'leaves')} had moved meanwhile (${refused[0].reason}): look again`));
    } catch (error) {
      this.complain(error);
    }
    await this.load();
  }

  async remove() {
    const rev = this.tree.winner;
    if (!(await confirmed({ title: 'Delete the document?', text: 'A tombstone takes its place; feeds tell of it as deleted.', yes: 'Delete' }))) return;
    this.complain(null);
    try {
      await ask('DELETE', this.url({ rev }));
    } catch (error) {
      this.complain(error.status === 409 ? new Error('It was changed meanwhile, so it is still there: look at it again.') : error);
    }
    await this.load();
  }

  async editWinner(deleted) {
    try {
      const rev = this.tree.winner;
      const text = deleted ? '{}' : pretty(without(await this.read(rev), ADDED));
      this.beginEdit(text, rev);
    } catch (error) {
      this.complain(error);
    }
  }

  /** Shows a text to be changed. It goes on from a revision, which may be another one by the time it is saved. */
  beginEdit(text, base) {
    const area = h('textarea', { rows: 16, spellcheck: 'false', 'aria-label': 'Body as JSON', 'aria-describedby': 'edit-error' });
    area.value = text;
    const error = h('p', { class: 'error', id: 'edit-error', role: 'alert' });
    const meanwhile = h('div', {});
    this.edit = { area, base, error, meanwhile };
    const keys = (event) => {
      if (event.key === 'Escape') this.endEdit();
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.save();
    };
    fill(
      this.body,
      h('h2', {}, base ? ['Edit ', h('span', { class: 'mono' }, base)] : 'New document'),
      h('form', { class: 'edit', onkeydown: keys, onsubmit: (event) => (event.preventDefault(), this.save()) }, meanwhile, area, error, h('div', { class: 'buttons' }, h('button', { class: 'main' }, 'Save'), this.button('Cancel', () => this.endEdit()), h('span', { class: 'hint' }, 'Ctrl Enter saves, Escape leaves'))),
    );
    area.focus();
  }

  endEdit() {
    this.edit = null;
    this.selected = this.tree.winner;
    this.show();
  }

  async save() {
    const { area, base, error } = this.edit;
    const wrong = notAnObject(area.value, 'A document');
    say(error, wrong ?? '');
    if (wrong) {
      area.setAttribute('aria-invalid', 'true');
      area.focus();
      return;
    }
    area.removeAttribute('aria-invalid');
    try {
      await ask('PUT', this.url({ rev: this.tree.nodes.get(base)?.leaf?._deleted ? null : base }), { body: area.value });
      this.edit = null;
      this.selected = this.tree.winner;
    } catch (failed) {
      if (failed.status !== 409) {
        say(error, failed.message);
        return;
      }
    }
    await this.load();
  }

  /** Somebody else was quicker: both texts are there, and one of three ways to go on is chosen. */
  async moved() {
    const { winner } = this.tree;
    const { meanwhile, area } = this.edit;
    const theirs = await this.read(winner).then((text) => pretty(without(text, ADDED)), () => null);
    const deleted = this.tree.leaves[0]?._deleted;
    const mine = () => {
      this.edit.base = winner;
      fill(meanwhile);
      this.save();
    };
    const take = () => {
      this.edit.base = winner;
      area.value = theirs;
      fill(meanwhile);
      area.focus();
    };
    fill(
      meanwhile,
      h(
        'div',
        { class: 'meanwhile', role: 'alert' },
        h('p', {}, h('b', {}, deleted ? 'It was deleted meanwhile.' : 'It was changed meanwhile.'), ' The newest revision is ', h('span', { class: 'mono' }, winner ?? 'none'), '. What you wrote is still here.'),
        theirs && !deleted && h('details', { open: true }, h('summary', {}, 'What it says now'), json(theirs)),
        h('div', { class: 'buttons' }, this.button('Save mine over it', mine), theirs && !deleted && this.button('Go on from theirs', take)),
      ),
    );
  }
}
