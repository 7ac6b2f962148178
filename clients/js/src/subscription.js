import { Asked } from './asked.js';
import { SeqtideError, guarded, told, uncaught } from './error.js';
import { Kept, keyOf } from './kept.js';
import { Room } from './room.js';

/** Whether nothing follows this event: one that ends with its server goes on with it. */
export function isLast({ event, reason }) {
  return event === 'refused' || event === 'error' || (event === 'end' && reason !== 'shutdown');
}

/** Why an ended subscription ended, if that is not what was asked for. */
function failureOf(db, { event, error, reason, status }) {
  const failure = (said) => ({ error: new SeqtideError({ ...said, db }) });
  if (event !== 'end') return failure({ error, reason, status });
  if (reason === 'deleted') return failure({ error: reason, reason: `the database ${db} was deleted` });
  if (reason === 'revoked') return failure({ error: reason, reason: `following ${db} was ended by an operator` });
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
  /** Whether it is to get nothing more; what it has got may wait to be taken. */
  isOver = false;

  #owner;
  #ended;
  #given;
  #asked;
  #kept = null;
  /** Rows that wait to be taken, and the events behind them. */
  #items = [];
  #room = new Room();
  #wanted = null;
  #taking = null;
  /** What it ended with, in an object: anything can be thrown. */
  #failure = null;
  /** Whether rows are being taken with `for await`, which throws what it ends with. */
  #isLooped = false;

  /** `ended` is called once it has ended. */
  constructor(owner, name, url, db, { onRow, onState, onEvent, storage, key, ...options }, ended = () => {}) {
    this.#owner = owner;
    this.#ended = ended;
    this.name = name;
    this.db = db;
    if (storage) this.#kept = new Kept(storage, key ?? keyOf(url, db, options));
    this.#given = { onRow, onState, onEvent, keep: (token) => this.#kept?.keep(token) };
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
    if (!this.isOver) this.#owner.remove(this);
    this.#items = [];
    this.#end();
    this.#kept?.giveBack();
  }

  /**
   * Takes what the server says: a row or an event. Events are told in their places among the rows; that there is no connection is
   * told at once.
   */
  receive({ sub, ...item }) {
    if (this.isOver) return;
    this.#asked.received(item);
    if (item.event === 'connecting') {
      this.#call('onEvent', item);
      this.become('connecting');
      return;
    }
    this.#queue(item);
    if (item.event === undefined) {
      this.#room.fill();
      // The connection may be lost before the server says so.
      if (this.#asked.isDone) this.receive({ event: 'end', seq: item.seq, reason: 'limit' });
    } else {
      if (isLast(item)) {
        this.isOver = true;
        this.#room.close();
      }
      if (this.#taking === null) this.#tell();
      this.#stands(item);
    }
    this.#wanted?.();
  }

  /** Behind a row that is not taken an event replaces the one of its kind: there are no more of them than kinds. */
  #queue(item) {
    if (item.event !== undefined) {
      const behind = this.#items.findLastIndex(({ event }) => event === undefined) + 1;
      const others = this.#items.splice(behind).filter(({ event }) => event !== item.event);
      this.#items.push(...others);
    }
    this.#items.push(item);
  }

  /** Everything up to here was looked at; it is the token unless something waits to be taken. */
  moved(seq) {
    this.#asked.since = seq;
    if (this.#items.length === 0 && this.#taking === null) this.#keep(seq);
  }

  /** Tells the events that no row is in front of. */
  #tell() {
    while (this.#items[0]?.event !== undefined) {
      const event = this.#items.shift();
      const isTold = this.#call('onEvent', event);
      if (event.seq !== undefined && this.state !== 'ended') this.#keep(event.seq);
      if (this.state === 'ended') return;
      if (!isLast(event)) continue;
      this.#failure = failureOf(this.db, event);
      // Without `onRow` it waits for a loop, which may be yet to come.
      if (this.#failure && !isTold && this.#given.onRow) uncaught(this.#failure.error);
      this.#end();
    }
  }

  /** What an event says of how the connection stands. */
  #stands({ event }) {
    switch (event) {
      case 'subscribed':
      case 'opened':
      case 'rewind':
        this.become('catching-up');
        break;
      case 'caught-up':
      case 'live':
        // A server that is about to stop is so when everything was given, too.
        if (this.state !== 'draining') this.become('live');
        break;
      case 'lagging':
      case 'draining':
        this.become(event);
    }
  }

  /** Tells a change of state. */
  become(state) {
    if (this.state === state || this.state === 'ended') return;
    this.state = state;
    this.#call('onState', state);
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
    for (;;) {
      this.#tell();
      if (this.#items.length > 0) break;
      if (this.state === 'ended') {
        if (this.#failure) throw this.#failure.error;
        return undefined;
      }
      await new Promise((resolve) => (this.#wanted = resolve));
      this.#wanted = null;
    }
    const row = this.#items.shift();
    this.#taking = row.seq;
    this.#room.free();
    return row;
  }

  [Symbol.asyncIterator]() {
    if (this.#isLooped || this.#given.onRow) throw new TypeError('each row of a subscription is taken once: by `onRow`, or by one loop');
    this.#isLooped = true;
    const rows = this.#rows();
    // A generator's own waits behind a `next` that waits for a row, and before the first `next` does nothing.
    const leave = (value) => {
      this.#isLooped = false;
      this.close();
      return rows.return(value);
    };
    const loop = { next: () => rows.next(), return: leave, [Symbol.asyncIterator]: () => loop };
    return loop;
  }

  async *#rows() {
    try {
      for (let row; (row = await this.#next()) !== undefined; ) yield row;
    } finally {
      this.#isLooped = false;
      this.close();
    }
  }

  async #hand() {
    try {
      for (let row; (row = await this.#next()) !== undefined; ) await this.#given.onRow(row, this);
    } catch (thrown) {
      // What it ended with before came out then.
      if (this.#failure === null || thrown !== this.#failure.error) this.#fail(thrown);
    } finally {
      this.close();
    }
  }

  /** Calls a function of the program with what it is told, and says whether it has taken it. */
  #call(name, what) {
    if (!this.#given[name]) return false;
    return guarded(() => this.#given[name](what, this), (thrown) => {
      // One that takes its time may have been called more than once.
      if (!this.#given[name]) return;
      // It is not called again: it would throw at its own error, too.
      this.#given[name] = undefined;
      this.#fail(thrown);
    });
  }

  /**
   * What the program's own code throws ends this subscription, and no other. It is told to `onEvent`, and thrown by the loop;
   * where there is neither, nobody has caught it.
   */
  #fail(thrown) {
    this.#failure ??= { error: thrown };
    const isTold = this.#call('onEvent', { event: 'error', ...told(thrown), cause: thrown });
    const isThrown = this.#isLooped && this.#failure.error === thrown;
    if (!isTold && !isThrown) uncaught(thrown);
    this.close();
  }

  #keep(token) {
    if (this.token === token) return;
    this.token = token;
    this.#call('keep', token);
  }

  #end() {
    if (this.state === 'ended') return;
    this.isOver = true;
    this.#ended();
    this.become('ended');
    this.#wanted?.();
    this.#room.close();
  }
}
