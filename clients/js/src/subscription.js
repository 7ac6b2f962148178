import { Asked } from './asked.js';
import { SeqtideError } from './error.js';
import { Kept, keyOf } from './kept.js';
import { Room } from './room.js';

/** Whether nothing follows this event: one that ends with its server goes on with it. */
export function isLast({ event, reason }) {
  return event === 'refused' || event === 'error' || (event === 'end' && reason !== 'shutdown');
}

/** Why an ended subscription ended, if that is not what was asked for. */
function errorOf(db, { event, error, reason, status }) {
  if (event !== 'end') return new SeqtideError({ error, reason, status });
  if (reason === 'deleted') return new SeqtideError({ error: reason, reason: `the database ${db} was deleted` });
  if (reason === 'revoked') return new SeqtideError({ error: reason, reason: `following ${db} was ended by an operator` });
  return null;
}

/**
 * A database that is followed: its rows, one after the other, each once, also across lost connections.
 *
 * Take them with `for await`, or give `onRow`. The connection (see `connection.js`, `shared.js`) brings what the server
 * says to `receive`.
 */
export class Subscription {
  /** Where a subscription with the same options goes on: everything up to here was taken. */
  token;
  state = 'connecting';

  #owner;
  #given;
  #asked;
  #kept = null;
  #rows = [];
  #room = new Room();
  #wanted = null;
  #error = null;
  #taking = null;

  constructor(owner, name, url, db, { onRow, onState, onEvent, storage, key, ...options }) {
    this.#owner = owner;
    this.name = name;
    this.db = db;
    this.#given = { onRow, onState, onEvent };
    if (storage) this.#kept = new Kept(storage, key ?? keyOf(url, db, options));
    this.token = this.#kept?.token ?? options.since ?? 'now';
    this.#asked = new Asked(name, db, { ...options, since: this.token });
    if (onRow) this.#hand();
  }

  /** What the server is asked for. */
  get asked() {
    return this.#asked.whole;
  }

  /** Nothing more is wanted. */
  close() {
    if (this.state !== 'ended') this.#owner.remove(this);
    this.#rows = [];
    this.#end(null);
    this.#kept?.giveBack();
  }

  /** Takes what the server says: a row or an event. */
  receive({ sub, ...item }) {
    if (this.state === 'ended') return;
    this.#asked.received(item);
    if (item.event === undefined) {
      this.#rows.push(item);
      this.#room.fill();
      this.#wanted?.();
      // The connection may be lost before the server says so.
      if (this.#asked.isDone) this.receive({ event: 'end', seq: item.seq, reason: 'limit' });
      return;
    }
    this.#given.onEvent?.(item, this);
    if (isLast(item)) return this.#end(errorOf(this.db, item));
    switch (item.event) {
      case 'subscribed':
      case 'opened':
      case 'rewind':
        this.moved();
        return this.become('catching-up');
      case 'caught-up':
      case 'live':
        this.moved();
        // A server that is about to stop is so when everything was given, too.
        return this.state === 'draining' ? undefined : this.become('live');
      case 'lagging':
      case 'draining':
        return this.become(item.event);
    }
    return undefined;
  }

  /** Everything up to here was looked at; it is the token unless rows wait to be taken. */
  moved(seq = this.#asked.since) {
    this.#asked.since = seq;
    if (this.#rows.length === 0 && this.#taking === null) this.#keep(seq);
  }

  /** Tells a change of state. */
  become(state) {
    if (this.state === state || this.state === 'ended') return;
    this.state = state;
    this.#given.onState?.(state, this);
  }

  /** Waits until there is room for more rows; `undefined` when there is. */
  room() {
    return this.#room.wait();
  }

  /** The next row; `undefined` at the end. The one before counts as taken. */
  async #next() {
    if (this.#taking !== null) {
      this.#keep(this.#taking);
      this.#taking = null;
    }
    while (this.#rows.length === 0) {
      if (this.state === 'ended') {
        if (this.#error) throw this.#error;
        return undefined;
      }
      await new Promise((resolve) => (this.#wanted = resolve));
      this.#wanted = null;
    }
    const row = this.#rows.shift();
    this.#taking = row.seq;
    this.#room.free();
    return row;
  }

  async *[Symbol.asyncIterator]() {
    try {
      for (let row; (row = await this.#next()) !== undefined; ) yield row;
    } finally {
      this.close();
    }
  }

  async #hand() {
    try {
      for await (const row of this) await this.#given.onRow(row, this);
    } catch (error) {
      // What the server said was told when it came.
      if (error === this.#error) return;
      this.#given.onEvent?.({ event: 'error', error: error.error ?? error.name, reason: error.message }, this);
    }
  }

  #keep(token) {
    if (this.token === token) return;
    this.token = token;
    this.#kept?.keep(token);
  }

  #end(error) {
    if (this.state === 'ended') return;
    this.#error = error;
    this.become('ended');
    this.#wanted?.();
    this.#room.close();
  }
}
