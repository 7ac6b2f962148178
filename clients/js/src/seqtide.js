import { Connection } from './connection.js';
import { databaseName, options, serverUrl, settings } from './given.js';
import { SharedConnection } from './shared.js';
import { Subscription } from './subscription.js';

/** A server, and the one connection over which its databases are followed. */
export class Seqtide {
  #url;
  #connection;
  #count = 0;
  /** What has not ended. */
  #followed = new Set();

  /** Throws a `TypeError` where `url` is none that can be asked, or not with these settings. */
  constructor(url, { shared = false, ...given } = {}) {
    this.#url = serverUrl(url);
    const how = settings(given);
    const own = () => new Connection(this.#url, how);
    this.#connection = shared ? SharedConnection.open(this.#url, how, own) : own();
  }

  /** Follows a database: a subscription, whose rows are taken with `for await` or by `onRow`. Throws a `TypeError`
   * where its name is no text, or what is asked for is nothing that JSON has. */
  follow(db, given = {}) {
    const [name, asked] = [databaseName(db), options(given)];
    this.#count += 1;
    const ended = () => this.#followed.delete(subscription);
    const subscription = new Subscription(this.#connection, String(this.#count), this.#url, name, asked, ended);
    this.#followed.add(subscription);
    this.#connection.add(subscription);
    return subscription;
  }

  /** Ends all that is followed, and with the last the connection. */
  close() {
    for (const subscription of this.#followed) subscription.close();
  }
}
