/** As it would go to the server: what does not go there goes to no worker either. */
const plain = (given) => JSON.parse(JSON.stringify(given));

/**
 * The connection of a shared worker, which all tabs of an origin have in common. Where there is no shared worker, or it does
 * not start, a tab has a connection of its own.
 */
export class SharedConnection {
  #open;
  /** Makes a connection of this tab's own. */
  #own;
  #alone = null;
  /** The tab's way to the worker, as long as it follows something. */
  #way = null;
  #subscriptions = new Map();

  /** `own` makes a connection of this tab's own. */
  static open(url, settings, own) {
    // Functions, such as a `fetch` of one's own, do not go to a worker.
    const canShare = typeof SharedWorker !== 'undefined' && navigator.locks !== undefined && settings.fetch === undefined;
    return canShare ? new SharedConnection(url, settings, own) : own();
  }

  constructor(url, { heartbeat, headers }, own) {
    this.#open = plain({ url: String(url), heartbeat, headers });
    this.#own = own;
  }

  add(subscription) {
    this.#subscriptions.set(subscription.name, subscription);
    if (this.#alone !== null) return this.#alone.add(subscription);
    try {
      this.#way ??= this.#enter();
    } catch {
      return this.#goAlone();
    }
    const { subscribe, db, ...options } = plain(subscription.asked);
    this.#way.say({ follow: subscribe, db, options });
  }

  remove(subscription) {
    if (this.#alone !== null) this.#alone.remove(subscription);
    this.#way?.say({ close: subscription.name });
    this.#forget(subscription.name);
  }

  #enter() {
    const name = `seqtide ${JSON.stringify(this.#open)}`;
    const worker = new SharedWorker(new URL('./shared-worker.js', import.meta.url), { type: 'module', name });
    worker.onerror = () => this.#goAlone();
    return new Way(worker.port, this.#open, (said) => this.#hear(said));
  }

  #goAlone() {
    if (this.#alone !== null) return;
    this.#leave();
    this.#alone = this.#own();
    for (const subscription of this.#subscriptions.values()) this.#alone.add(subscription);
  }

  /** A tab that follows nothing is none of the worker's. */
  #forget(name) {
    this.#subscriptions.delete(name);
    if (this.#subscriptions.size === 0) this.#leave();
  }

  #leave() {
    this.#way?.leave();
    this.#way = null;
  }

  async #hear({ name, item, state, moved }) {
    const subscription = this.#subscriptions.get(name);
    if (subscription === undefined) return;
    if (state !== undefined) subscription.become(state);
    if (moved !== undefined) subscription.moved(moved);
    if (item === undefined) return;
    subscription.receive(item);
    if (subscription.isOver) this.#forget(name);
    if (item.event !== undefined) return;
    await subscription.room();
    this.#way?.say({ taken: name });
  }
}

/** A tab's way to the worker, which learns that the tab has gone when it gets the tab's lock. */
class Way {
  #port;
  #opened;
  #release;

  constructor(port, open, hear) {
    this.#port = port;
    port.onmessage = ({ data }) => hear(data);
    const lock = crypto.randomUUID();
    const released = new Promise((resolve) => (this.#release = resolve));
    this.#opened = new Promise((resolve) => {
      navigator.locks.request(lock, () => {
        port.postMessage({ open, lock });
        resolve();
        return released;
      });
    });
  }

  async say(message) {
    await this.#opened;
    this.#port.postMessage(message);
  }

  /** Behind all that was said. */
  async leave() {
    await this.#opened;
    this.#release();
    this.#port.close();
  }
}
