// The worker that has the one connection of all tabs. What a tab follows is a subscription of this connection; what it gives
// goes to the tab over its port, in order.

import { Connection } from './connection.js';
import { isLast } from './subscription.js';

/** Rows that a tab has not taken yet, at most; then the connection is not read. */
const UNTAKEN_MAX = 1000;

/** One for all tabs: the worker's name says which server it is of. */
let connection = null;
let tabs = 0;

self.onconnect = ({ ports: [port] }) => {
  tabs += 1;
  const tab = new Tab(port, tabs);
  port.onmessage = ({ data }) => tab.hear(data);
};

class Tab {
  #port;
  #number;
  #followed = new Map();

  constructor(port, number) {
    this.#port = port;
    this.#number = number;
  }

  hear({ open, lock, follow, db, options, close, taken }) {
    if (open !== undefined) {
      connection ??= new Connection(open.url, open);
      navigator.locks.request(lock, () => this.#followed.forEach((followed) => this.#close(followed)));
    }
    if (follow !== undefined) this.#follow(follow, db, options);
    if (close !== undefined && this.#followed.has(close)) this.#close(this.#followed.get(close));
    if (taken !== undefined) this.#followed.get(taken)?.taken();
  }

  #follow(name, db, options) {
    const say = (what) => this.#port.postMessage({ name, ...what });
    const followed = new Followed(`${this.#number}.${name}`, db, options, say);
    this.#followed.set(name, followed);
    connection.add(followed);
  }

  #close(followed) {
    connection.remove(followed);
    followed.taken(Infinity);
  }
}

/** What a tab follows: to the connection what a subscription is. */
class Followed {
  state = 'connecting';
  #asked;
  #say;
  #untaken = 0;
  #room = null;

  constructor(name, db, options, say) {
    this.name = name;
    this.#asked = { ...options, subscribe: name, db };
    this.#say = say;
  }

  get asked() {
    return this.#asked;
  }

  receive({ sub, ...item }) {
    if (item.seq !== undefined) this.#asked.since = item.seq;
    if (item.event === undefined) this.#untaken += 1;
    if (isLast(item)) this.state = 'ended';
    this.#say({ item });
  }

  moved(seq) {
    this.#asked.since = seq;
    this.#say({ moved: seq });
  }

  become(state) {
    this.#say({ state });
  }

  fail({ error, message, status }) {
    this.receive({ event: 'refused', error, reason: message, status });
  }

  room() {
    return this.#untaken < UNTAKEN_MAX ? undefined : new Promise((resolve) => (this.#room = resolve));
  }

  taken(rows = 1) {
    this.#untaken = Math.max(0, this.#untaken - rows);
    if (this.#untaken < UNTAKEN_MAX / 2) this.#room?.();
  }
}
