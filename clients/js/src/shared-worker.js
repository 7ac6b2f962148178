// The worker that has the one connection of all tabs. What a tab follows is a subscription of this connection; what it gives
// goes to the tab over its port, in order.

import { Asked } from './asked.js';
import { Connection } from './connection.js';
import { Room } from './room.js';
import { isLast } from './subscription.js';

/** One for all tabs: the worker's name says which server it is of. */
let connection = null;
let tabs = 0;

/** A lock that the worker has for as long as it lives: a tab that gets it learns that the worker is gone. */
const life = crypto.randomUUID();
const isAlive = new Promise((resolve) => {
  navigator.locks.request(life, () => (resolve(), new Promise(() => {})));
});

self.onconnect = async ({ ports: [port] }) => {
  tabs += 1;
  const tab = new Tab(port, tabs);
  await isAlive;
  port.postMessage({ life });
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
      navigator.locks.request(lock, () => [...this.#followed.keys()].forEach((name) => this.#close(name)));
    }
    if (follow !== undefined) this.#follow(follow, db, options);
    if (close !== undefined) this.#close(close);
    if (taken !== undefined) this.#followed.get(taken)?.taken();
  }

  #follow(name, db, options) {
    const say = (what) => {
      this.#port.postMessage({ name, ...what });
      if (followed.isOver) this.#followed.delete(name);
    };
    const followed = new Followed(`${this.#number}.${name}`, db, options, say);
    this.#followed.set(name, followed);
    connection.add(followed);
  }

  #close(name) {
    const followed = this.#followed.get(name);
    if (followed === undefined) return;
    this.#followed.delete(name);
    connection.remove(followed);
    followed.end();
  }
}

/** What a tab follows: to the connection what a subscription is. */
class Followed {
  isOver = false;
  #asked;
  #say;
  /** For rows that the tab has none for. */
  #room = new Room();

  constructor(name, db, options, say) {
    this.name = name;
    this.#asked = new Asked(name, db, options);
    this.#say = say;
  }

  get asked() {
    return this.#asked.whole;
  }

  receive({ sub, ...item }) {
    this.#asked.received(item);
    if (item.event === undefined) this.#room.fill();
    // That it has all it wanted the tab counts for itself.
    if (isLast(item) || this.#asked.isDone) this.end();
    this.#say({ item });
  }

  moved(seq) {
    this.#asked.since = seq;
    this.#say({ moved: seq });
  }

  become(state) {
    this.#say({ state });
  }

  room() {
    return this.#room.wait();
  }

  taken() {
    this.#room.free();
  }

  end() {
    this.isOver = true;
    this.#room.close();
  }
}
