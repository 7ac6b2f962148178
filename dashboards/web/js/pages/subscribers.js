// The feeds that are open: who follows what, how far each has come, and what it lacks; one can be ended.

import { address, ask } from '../api.js';
import { confirmed } from '../dialog.js';
import { fill, h, refill, say } from '../dom.js';
import { bytes, counted, duration, figure } from '../format.js';
import { latest } from '../latest.js';
import { cell, row, table } from '../table.js';

const ASK_EVERY_MS = 1000;
/** Feeds on one page of the table. */
const PAGE = 50;

const HEADS = ['Feed', 'Kind', 'Database', 'Client', 'Filter', 'State', 'Position', 'Lacks', 'For', 'Rows sent', 'Bytes sent', 'Open for'];
/** The first of the columns that are figures. */
const FIGURES = 6;

export function subscribersPage({ main }) {
  const page = new Subscribers();
  fill(main, page.parts);
  page.load();
  return { title: 'Subscribers', close: () => page.close() };
}

class Subscribers {
  constructor() {
    Object.assign(this, { rows: new Map(), places: [0], wanted: [0] });
    this.load = latest(() => this.read());
    this.error = h('p', { class: 'error', role: 'alert' });
    this.caption = h('caption', {}, 'Asking…');
    this.body = h('tbody', { role: 'rowgroup' });
    this.pager = h('div', { class: 'pager' });
    this.previous = h('button', { type: 'button', onclick: () => this.turn(this.places.slice(0, -1)) }, 'Previous');
    this.next = h('button', { type: 'button', onclick: () => this.turn([...this.places, this.last]) }, 'Next');
    fill(this.pager, this.previous, this.next);
    const columns = HEADS.map((name, at) => ({ name, isFigure: at >= FIGURES }));
    this.parts = [
      h('h1', {}, 'Subscribers'),
      this.error,
      h('section', { class: 'card subscribers' }, table('Open feeds', [...columns, { name: 'End it', isUnseen: true }], this.caption, this.body), this.pager),
    ];
    this.timer = setInterval(() => document.hidden || this.load(), ASK_EVERY_MS);
  }

  close() {
    clearInterval(this.timer);
  }

  /** Goes to a page: the places of the pages before it, and its own, each the id of a feed that it comes behind. */
  turn(places) {
    this.wanted = places;
    this.load();
  }

  async read() {
    const places = this.wanted;
    try {
      // One more than is shown tells whether there is another page.
      const { open, feeds } = await ask('GET', address(['_feeds'], { limit: PAGE + 1, after: places.at(-1) }));
      this.places = places;
      this.show(open, feeds);
      say(this.error, '');
    } catch (error) {
      say(this.error, `The feeds cannot be listed: ${error.message}`);
    }
  }

  show(open, feeds) {
    const shown = feeds.slice(0, PAGE);
    this.last = shown.at(-1)?.id;
    say(this.caption, open === 0 ? 'No feed is open.' : `${counted(open, 'feed')} ${open === 1 ? 'is' : 'are'} open`);
    const before = this.rows;
    this.rows = new Map(shown.map((feed) => [feed.id, before.get(feed.id) ?? new Row(feed, () => this.end(feed))]));
    shown.forEach((feed) => this.rows.get(feed.id).show(feed));
    refill(this.body, [...this.rows.values()].map(({ element }) => element));
    this.previous.disabled = this.places.length === 1;
    this.next.disabled = feeds.length <= PAGE;
    this.pager.hidden = this.previous.disabled && this.next.disabled;
  }

  async end({ id, kind, client }) {
    const text = `Its reader${client ? ` at ${client}` : ''} is told that it was ended, and where it can go on.`;
    if (!(await confirmed({ title: `End feed ${id} (${kind})?`, text, yes: 'End it' }))) return;
    try {
      await ask('DELETE', address(['_feeds', String(id)]));
    } catch (error) {
      // Who was quicker has ended it as well.
      if (error.status !== 404) say(this.error, error.message);
    }
    await this.load();
  }
}

/** A row stays the same element while its figures change. */
class Row {
  constructor({ id, kind, database, client, filter }, end) {
    const link = database && h('a', { href: `#/db/${encodeURIComponent(database)}` }, database);
    this.state = cell('State');
    this.figures = HEADS.slice(FIGURES).map((head) => cell(head, { class: 'number' }));
    const button = h('button', { type: 'button', class: 'danger', 'aria-label': `End feed ${id}`, onclick: end }, 'End');
    this.element = row(String(id), [
      cell('Kind', {}, kind),
      cell('Database', {}, link ?? 'all'),
      cell('Client', {}, client ?? 'this program'),
      cell('Filter', { class: 'filter-text' }, filter ?? '–'),
      this.state,
      this.figures,
      cell('', {}, button),
    ]);
  }

  show({ state, seq, lag, sent, opened_on: opened }) {
    say(this.state, state);
    const open = Math.max(0, Date.now() / 1000 - opened);
    const texts = [String(seq), counted(lag.rows, 'row'), lag.rows ? duration(lag.seconds) : '–', figure(sent.rows), bytes(sent.bytes), duration(Math.round(open))];
    texts.forEach((text, at) => say(this.figures[at], text));
    this.figures[1].classList.toggle('behind', lag.rows > 0);
  }
}
