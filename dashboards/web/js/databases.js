// What is known of databases: their names, and the counts of those that are shown, asked anew when the server's own
// feed says that they changed.

import { address, ask } from './api.js';
import { latest } from './latest.js';
import { version } from './sequence.js';
import { Stream } from './stream.js';

/** Most databases the server is asked about in one request. */
const ASKED_MAX = 100;
const ASK_EVERY_MS = 1000;

export class Databases {
  /** `changed()` is called whenever there is something new, `state(name, detail)` with how their feed stands. */
  constructor(changed, state) {
    Object.assign(this, { changed, told: state, names: [], infos: new Map(), shown: [], stale: new Set(), error: null, loaded: false });
    this.load = latest(() => this.list());
    this.refresh = latest(() => this.count());
    this.timer = setInterval(() => this.tick(), ASK_EVERY_MS);
    this.follow();
  }

  /** Lists them, and follows which are made, written to and deleted. There may be no feed to be had. */
  follow() {
    this.load();
    this.stream = new Stream({
      url: (since) => address(['_feed'], { since: since ?? 'now', heartbeat: 5000 }),
      on: {
        message: ({ id, db_name: name = id, type }) => this.note(name, type),
        rewind: () => this.load(),
      },
      state: (state, detail) => {
        this.told(state, detail);
        // What happened before the feed began, or while it was away for too long, is in the list.
        if (state === 'live') this.load();
      },
    });
  }

  close() {
    this.stream.close();
    clearInterval(this.timer);
  }

  /** Says which databases are looked at; the others' counts are not asked for. */
  show(names) {
    this.shown = names.slice(0, ASKED_MAX);
    for (const name of this.shown) if (!this.infos.has(name)) this.stale.add(name);
    if (this.shown.some((name) => !this.infos.has(name))) this.refresh();
  }

  async list() {
    try {
      const names = await ask('GET', address(['_all_dbs']));
      // Of what is not listed any more nothing is kept.
      Object.assign(this, { names, stale: new Set(names), error: null, loaded: true });
      for (const name of this.infos.keys()) if (!this.stale.has(name)) this.infos.delete(name);
    } catch (error) {
      this.error = error;
    }
    this.changed();
    this.refresh();
  }

  note(name, type) {
    this.stale.add(name);
    if (type !== 'updated') this.load();
  }

  async count() {
    const keys = this.shown.filter((name) => this.stale.has(name));
    if (keys.length === 0) return;
    keys.forEach((name) => this.stale.delete(name));
    try {
      const asked = performance.now();
      const infos = await ask('POST', address(['_dbs_info']), { body: { keys }, reads: true });
      infos.forEach(({ key, info, error }) => this.learn(key, info, error, asked));
    } catch {
      // The next tick asks again.
      keys.forEach((name) => this.stale.add(name));
      return;
    }
    this.changed();
  }

  /** The writes a second follow from two answers: each changed document is one sequence. */
  learn(name, info, error, at) {
    // It may have been deleted while it was asked about.
    if (!this.names.includes(name)) return;
    const before = this.infos.get(name);
    const grown = before?.info && info ? version(info.update_seq) - version(before.info.update_seq) : 0;
    const rate = before?.info && grown >= 0 ? (grown * 1000) / (at - before.at) : null;
    this.infos.set(name, { info, error, at, rate });
  }

  tick() {
    this.rest();
    this.refresh();
  }

  /** A database that is not told of any more is not written to. */
  rest() {
    const now = performance.now();
    let any = false;
    for (const known of this.infos.values()) {
      if (known.rate !== 0 && now - known.at > 2 * ASK_EVERY_MS) {
        known.rate = 0;
        any = true;
      }
    }
    if (any) this.changed();
  }
}
