// A database's feed as it comes, from any place in its history on, through a filter that can be tried out.

import { address, ask, isPassing } from '../api.js';
import { fill, h, say } from '../dom.js';
import { Filter } from '../filter.js';
import { bytes, clock, count, counted } from '../format.js';
import { brief, json, memberOf, without } from '../json.js';
import { Log } from '../log.js';
import { Rows } from '../rows.js';
import { sequenceAt, version } from '../sequence.js';
import { Snippets } from '../snippets.js';
import { StateLine } from '../state.js';
import { Stream } from '../stream.js';

/** How far back a feed begins that is asked for no place. */
const BACK = 100;
const HEARTBEAT_MS = 2000;

export function feedPage({ main, names: [database], options, keep }) {
  const page = new FeedPage(database, options, keep);
  fill(main, page.parts);
  page.begin();
  return { title: database, log: page.log, close: () => page.close(), get stream() { return page.stream; } };
}

class FeedPage {
  constructor(database, given, keep) {
    Object.assign(this, { database, keep, since: given.get('since') || null, log: new Log(), shown: 0, added: 0, updateSeq: 0, chosen: false });
    if (!given.has('include_docs')) given.set('include_docs', 'true');
    this.state = new StateLine(() => this.again());
    this.told = h('p', { class: 'notice', role: 'status' });
    this.facts = h('p', { class: 'notice' });
    this.pauseButton = h('button', { type: 'button', class: 'main', onclick: () => this.turnPause() }, 'Pause');
    this.rows = new Rows({
      label: `Changes of ${database}, the newest first`,
      draw: cells,
      key: (row) => row.key,
      chosen: (row) => this.choose(row),
      opened: (row) => (location.hash = documentLink(database, row.id)),
    });
    this.nothing = h('p', { class: 'notice nothing' }, 'No change to show yet');
    this.detail = h('section', { class: 'card detail', 'aria-label': 'The selected change' });
    this.waiting = h('p', { class: 'notice', role: 'status' });
    // What is tried takes its time, and the page may have been left.
    this.filter = new Filter(database, given, (options) => this.closed || this.tries(() => this.restart(this.since, options)));
    this.snippets = new Snippets();
    this.slider = new SinceSlider((since) => this.tries(() => this.restart(since, this.applied)));
    this.applied = this.filter.options();
    this.parts = [
      h('nav', { 'aria-label': 'Where you are', class: 'path' }, h('a', { href: '#/' }, 'Databases'), ' / ', h('span', { 'aria-current': 'page' }, database)),
      h('div', { class: 'head' }, h('h1', {}, database), this.facts),
      h(
        'section',
        { class: 'card controls', 'aria-label': 'The feed' },
        h('div', { class: 'head' }, this.state.element, this.waiting, h('div', { class: 'buttons' }, this.pauseButton, h('button', { type: 'button', onclick: () => this.clear() }, 'Clear'))),
        this.told,
        this.slider.element,
      ),
      this.filter.element,
      h('div', { class: 'feed' }, h('section', { class: 'card list' }, heads(), this.nothing, this.rows.element), this.detail),
      this.snippets.element,
    ];
    this.choose(null);
  }

  begin() {
    return this.tries(() => this.look());
  }

  /** Does something that a feed begins with; where it cannot be done, the feed has ended with that. */
  async tries(act) {
    try {
      await act();
    } catch (error) {
      this.says('failed', error.message);
    }
  }

  /** Looks at the database, then follows it from its newest changes on, unless a place was asked for. */
  async look() {
    this.says('connecting');
    const answer = await ask('GET', address([this.database])).catch((error) => error);
    if (this.closed) return;
    if (answer instanceof Error) {
      this.notSeen(answer);
      return;
    }
    this.know(answer);
    this.since ??= sequenceAt(this.updateSeq, version(this.updateSeq) - BACK);
    this.restart(this.since, this.applied);
  }

  /** The database cannot be looked at: for good, or it is looked at again. */
  notSeen(error) {
    if (error.status && !isPassing(error)) {
      this.says('failed', error.message);
      return;
    }
    this.says('lost');
    this.timer = setTimeout(() => this.begin(), 1000);
  }

  know({ update_seq: updateSeq, doc_count: documents, sizes }) {
    this.updateSeq = updateSeq;
    say(this.facts, `${counted(documents, 'document')}, ${bytes(sizes.file)} on disk`);
  }

  close() {
    this.closed = true;
    clearTimeout(this.timer);
    cancelAnimationFrame(this.frame);
    this.stream?.close();
    this.rows.close();
  }

  /** Begins anew at a place, through a filter. */
  restart(since, options) {
    Object.assign(this, { since, applied: options, resumeAt: null });
    this.keep(new URLSearchParams({ ...options, since }));
    this.snippets.show(this.database, { ...options, since });
    this.slider.show(since, this.updateSeq);
    this.clear();
    this.follow(since);
  }

  clear() {
    const { paused } = this.log;
    this.log.clear();
    if (paused) this.log.pause();
    this.rows.selected = null;
    this.rows.toNewest();
    this.choose(null);
    this.paint();
  }

  follow(since) {
    this.stream?.close();
    say(this.told, '');
    this.stream = new Stream({
      since,
      url: (place) => address([this.database, '_feed'], { ...this.applied, since: place, heartbeat: HEARTBEAT_MS }),
      on: {
        message: (row, text) => this.take(row, text),
        heartbeat: (event) => this.stands(event),
        'caught-up': (event) => this.stands(event),
        rewind: ({ reason }) => say(this.told, reason),
        error: ({ reason }) => this.filter.failed(reason) || say(this.told, reason),
      },
      state: (state, detail) => this.says(state, detail),
      explain: () => this.refusal(),
    });
  }

  /** Why the server does not give this feed, if that will not change by itself. */
  async refusal() {
    const database = await ask('GET', address([this.database])).catch((error) => error);
    if (database.status === 404) return database;
    const refused = await this.filter.tried({ ...this.applied, since: this.stream.since, limit: 1 });
    if (!refused?.status || isPassing(refused)) return null;
    this.filter.failed(refused.message);
    return refused;
  }

  /** Follows a feed that has ended from where it stood. */
  again() {
    if (this.stream) this.follow(this.stream.since);
    else this.begin();
  }

  says(state, detail) {
    this.standing = [state, detail];
    this.state.show(state === 'live' && this.log.paused ? 'paused' : state, detail);
  }

  take(row, text) {
    this.stands(row);
    // The document is in the text: parsed it takes several times as much.
    const { seq, id, changes, deleted } = row;
    const before = this.log.rows.length + this.log.dropped;
    if (!this.log.add({ key: seq, seq, id, changes, deleted, text, at: new Date() })) {
      // What comes from here on waits at the server: the feed goes on behind the last row that was taken.
      this.resumeAt = this.stream.since;
      this.stream.close();
    }
    this.added += this.log.rows.length + this.log.dropped - before;
    this.later();
  }

  stands({ seq }) {
    if (version(seq) > version(this.updateSeq)) this.updateSeq = seq;
    this.later();
  }

  turnPause() {
    if (this.log.paused) {
      this.added += this.log.held.length;
      this.log.resume();
      if (this.resumeAt) this.follow(this.resumeAt);
      this.resumeAt = null;
    } else {
      this.log.pause();
    }
    this.pauseButton.textContent = this.log.paused ? 'Resume' : 'Pause';
    this.says(...this.standing);
    this.paint();
  }

  // Rows may come by the thousand; they are shown once a frame.
  later() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.paint());
  }

  paint() {
    this.rows.show(this.log.rows, this.added);
    this.added = 0;
    this.nothing.hidden = this.log.rows.length > 0;
    this.slider.reach(this.updateSeq);
    const { rows, held, dropped, paused } = this.log;
    const parts = [counted(rows.length, 'row')];
    if (dropped) parts.push(`${count(dropped)} older ones let go`);
    if (paused) parts.push(this.resumeAt ? `${count(held.length)} wait here, the rest at the server` : `${count(held.length)} wait`);
    say(this.waiting, parts.join(', '));
  }

  choose(row) {
    if (!row) {
      fill(this.detail, h('p', { class: 'notice' }, 'Select a change to see it whole. Arrow keys move, Enter opens the document.'));
      return;
    }
    fill(
      this.detail,
      h('div', { class: 'head' }, h('h2', {}, row.id), h('a', { href: documentLink(this.database, row.id) }, 'Open the document')),
      json(row.text),
    );
  }
}

/** A slider over the database's history, in words too. */
class SinceSlider {
  constructor(moved) {
    this.updateSeq = 0;
    this.words = h('output', { for: 'since' });
    const token = () => sequenceAt(this.updateSeq, Number(this.input.value));
    this.input = h('input', {
      type: 'range',
      id: 'since',
      min: 0,
      max: 0,
      step: 1,
      oninput: () => this.say(token()),
      onchange: () => moved(token()),
    });
    const to = (label, since) => h('button', { type: 'button', onclick: () => moved(since()) }, label);
    this.element = h(
      'div',
      { class: 'since' },
      h('label', { for: 'since' }, 'Changes since'),
      this.input,
      this.words,
      h('div', { class: 'buttons' }, to('Beginning', () => '0'), to('Now', () => sequenceAt(this.updateSeq, version(this.updateSeq)))),
    );
  }

  /** Of a place that is no sequence only the server knows where it lies: the knob stays where it is. */
  show(since, updateSeq) {
    this.reach(updateSeq);
    const at = since === 'now' ? this.input.max : version(since);
    if (at !== null) this.input.value = at;
    this.say(since);
  }

  reach(updateSeq) {
    this.updateSeq = updateSeq;
    const max = String(version(updateSeq));
    if (this.input.max !== max) this.input.max = max;
    this.say(this.since);
  }

  say(since) {
    this.since = since;
    const text = `${since} of ${this.updateSeq}`;
    say(this.words, text);
    this.input.setAttribute('aria-valuetext', text);
  }
}

const documentLink = (database, id) => `#/db/${encodeURIComponent(database)}/doc/${encodeURIComponent(id)}`;

const heads = () => h('div', { class: 'row heads', 'aria-hidden': 'true' }, ['Sequence', 'Document', 'Revision', 'Content', 'Seen'].map((head) => h('span', {}, head)));

/** The document of a row, in one short line; empty where it has none. */
function contentOf(text) {
  const doc = memberOf(text, 'doc');
  return doc?.startsWith('{') ? brief(without(doc, ['_id', '_rev'])) : '';
}

function cells(row) {
  const { seq, id, deleted, changes, at } = row;
  row.content ??= contentOf(row.text);
  return [
    h('span', { class: 'seq' }, String(seq)),
    h('span', { class: 'id' }, id),
    h('span', { class: 'rev' }, changes[0].rev.slice(0, 10), changes.length > 1 && ` +${changes.length - 1}`),
    h('span', { class: 'content' }, deleted ? h('b', { class: 'badge deleted' }, 'deleted') : row.content),
    h('span', { class: 'at' }, clock(at)),
  ];
}
