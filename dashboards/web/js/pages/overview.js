// The overview: what the server does now, and its databases.

import { Chart } from '../chart.js';
import { Databases } from '../databases.js';
import { fill, h, refill, say } from '../dom.js';
import { byLabel } from '../figures.js';
import { bytes, count, counted, duration, figure } from '../format.js';
import { StateLine } from '../state.js';
import { cell, row, table } from '../table.js';

const perSecond = (value) => (value === null ? '–' : `${figure(value)}/s`);
const share = (value) => (value === null ? '–' : `${figure(Math.round(value * 1000) / 10)} %`);

const CHARTS = [
  { title: 'Writes', unit: perSecond, lines: [{ name: 'writes', label: 'documents' }, { name: 'commits', label: 'commits' }] },
  { title: 'Deliveries', unit: perSecond, lines: [{ name: 'deliveries', label: 'rows sent to feeds' }] },
  {
    title: 'Commit latency',
    note: 'until durable',
    unit: duration,
    least: 0.001,
    lines: [{ name: 'commitHalf', label: 'median' }, { name: 'commitMost', label: '99 %' }],
  },
  {
    title: 'Lag',
    note: 'of open feeds',
    unit: duration,
    least: 0.001,
    lines: [{ name: 'lagHalf', label: 'median' }, { name: 'lagMost', label: '99 %' }],
  },
  { title: 'Processor', unit: share, least: 0.1, lines: [{ name: 'processor', label: 'of one core' }] },
  { title: 'Memory', unit: bytes, least: 2 ** 20, binary: true, lines: [{ name: 'memory', label: 'resident' }] },
];

const HEADS = ['Database', 'Documents', 'Update sequence', 'Size', 'Writes a second'];
/** Databases on one page of the table. */
const PAGE = 25;

export function overview({ main, figures }) {
  const charts = CHARTS.map((chart) => new Chart(chart));
  const kinds = h('dl', { class: 'kinds' });
  const total = h('strong', {});
  const listed = new DatabaseTable();
  fill(
    main,
    h('h1', { class: 'unseen' }, 'Overview'),
    h('div', { class: 'charts' }, charts.map((chart) => chart.card)),
    h('section', { class: 'card' }, h('h2', {}, 'Open feeds ', total), kinds),
    listed.card,
  );
  const ended = figures.follow(() => {
    charts.forEach((chart) => chart.show(figures));
    const open = byLabel(figures.values, 'seqtide_feeds_open', 'kind');
    total.textContent = figures.values ? count(figures.last('feeds') ?? 0) : '–';
    fill(kinds, [...open].map(([kind, feeds]) => h('div', { class: feeds ? '' : 'none' }, h('dt', {}, kind), h('dd', {}, count(feeds)))));
  });
  return {
    title: 'Overview',
    databases: listed.databases,
    repaint: () => charts.forEach((chart) => chart.repaint()),
    close() {
      ended();
      charts.forEach((chart) => chart.close());
      listed.close();
    },
  };
}

class DatabaseTable {
  constructor() {
    this.at = 0;
    this.rows = new Map();
    this.search = h('input', {
      type: 'search',
      placeholder: 'Find a database',
      'aria-label': 'Find a database by its name',
      oninput: () => this.turn(0),
    });
    this.body = h('tbody', { role: 'rowgroup' });
    this.caption = h('caption', {});
    // The same elements whatever comes: one that is made anew loses a click that is under way, and the focus.
    const turn = (label, by) => h('button', { type: 'button', onclick: () => this.turn(this.at + by) }, label);
    [this.previous, this.place, this.next] = [turn('Previous', -1), h('span', {}), turn('Next', 1)];
    this.pager = h('div', { class: 'pager', hidden: true }, this.previous, this.place, this.next);
    this.state = new StateLine(() => this.databases.follow());
    this.card = h(
      'section',
      { class: 'card' },
      h('div', { class: 'head' }, h('h2', {}, 'Databases'), h('div', { class: 'buttons' }, this.state.element, this.search)),
      table('Databases', HEADS.map((name, at) => ({ name, isFigure: at > 0 })), this.caption, this.body),
      this.pager,
    );
    this.databases = new Databases(() => this.show(), (state, detail) => this.state.show(state, detail));
  }

  close() {
    this.databases.close();
  }

  turn(at) {
    this.at = at;
    this.show();
  }

  show() {
    const { names, infos, error, loaded } = this.databases;
    const wanted = this.search.value.trim();
    const found = names.filter((name) => name.includes(wanted));
    this.at = Math.min(this.at, Math.max(0, Math.ceil(found.length / PAGE) - 1));
    const shown = found.slice(this.at * PAGE, (this.at + 1) * PAGE);
    this.databases.show(shown);
    this.caption.textContent = captionOf({ error, loaded, names, found, wanted });
    this.rows = new Map(shown.map((name) => [name, this.rows.get(name) ?? new Row(name)]));
    this.rows.forEach((row, name) => row.show(infos.get(name)));
    refill(this.body, [...this.rows.values()].map(({ element }) => element));
    const pages = Math.ceil(found.length / PAGE);
    this.pager.hidden = pages <= 1;
    this.previous.disabled = this.at === 0;
    this.next.disabled = this.at >= pages - 1;
    say(this.place, `Page ${this.at + 1} of ${pages}`);
  }
}

function captionOf({ error, loaded, names, found, wanted }) {
  if (error) return `The databases cannot be listed: ${error.message}`;
  if (!loaded) return 'Asking…';
  if (names.length === 0) return 'There is no database yet: curl -X PUT makes one, and it appears here.';
  return wanted ? `${count(found.length)} of ${counted(names.length, 'database')}` : counted(names.length, 'database');
}

/** A row stays the same element while its figures change, so that who stands on its link stays there. */
class Row {
  constructor(name) {
    this.cells = HEADS.slice(1).map((head) => cell(head, { class: 'number' }, '…'));
    const link = h('a', { href: `#/db/${encodeURIComponent(name)}` }, name);
    this.element = row(link, this.cells);
  }

  show(known) {
    if (!known) return;
    const { info, error, rate } = known;
    const texts = info
      ? [count(info.doc_count), String(info.update_seq), bytes(info.sizes.file), figure(rate)]
      : [error, '–', '–', '–'];
    this.cells.forEach((cell, at) => say(cell, texts[at]));
  }
}
