import { Connection } from './connection.js';
import { SharedConnection } from './shared.js';
import { Subscription } from './subscription.js';

/** A server, and the one connection over which its databases are followed. */
export class Seqtide {
  #url;
  #connection;
  #count = 0;

  constructor(url, { shared = false, ...settings } = {}) {
    this.#url = String(url).replace(/\/+$/, '');
    const own = () => new Connection(this.#url, settings);
    this.#connection = shared ? SharedConnection.open(this.#url, settings, own) : own();
  }

  /** Follows a database: a subscription, whose rows are taken with `for await` or by `onRow`. */
  follow(db, options = {}) {
    this.#count += 1;
    const subscription = new Subscription(this.#connection, String(this.#count), this.#url, db, options);
    this.#connection.add(subscription);
    return subscription;
  }

  /** Ends all that is followed, and the connection. */
  close() {
    this.#connection.close();
  }
}
