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
    if (this.#alone !== null) this.#alone.add(subscription);
    else if (this.#way !== null) this.#follow(subscription);
    else this.#enter();
  }

  remove(subscription) {
    if (this.#alone !== null) this.#alone.remove(subscription);
    this.#way?.say({ close: subscription.name });
    this.#forget(subscription.name);
  }

  /** Goes to the worker, which is started where there is none, with all that is followed. */
  #enter() {
    const name = `seqtide ${JSON.stringify(this.#open)}`;
    try {
      const worker = new SharedWorker(new URL('./shared-worker.js', import.meta.url), { type: 'module', name });
      worker.onerror = () => this.#goAlone();
      this.#way = new Way(worker.port, this.#open, (said) => this.#hear(said), () => this.#lost());
    } catch {
      return this.#goAlone();
    }
    for (const subscription of this.#subscriptions.values()) this.#follow(subscription);
  }

  #follow(subscription) {
    const { subscribe, db, ...options } = plain(subscription.asked);
    this.#way.say({ follow: subscribe, db, options });
  }

  /** The worker is gone, and its connection with it. */
  #lost() {
    this.#leave();
    const why = { error: 'lost', reason: 'the worker that the tabs share has ended' };
    for (const subscription of [...this.#subscriptions.values()]) subscription.receive({ event: 'connecting', ...why });
    // Who was told may have given it up, or followed something that it has been entered for.
    if (this.#subscriptions.size > 0 && this.#way === null && this.#alone === null) this.#enter();
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
    const way = this.#way;
    const subscription = this.#subscriptions.get(name);
    if (subscription === undefined) return;
    if (state !== undefined) subscription.become(state);
    if (moved !== undefined) subscription.moved(moved);
    if (item === undefined) return;
    subscription.receive(item);
    if (subscription.isOver) this.#forget(name);
    if (item.event !== undefined) return;
    await subscription.room();
    way.say({ taken: name });
  }
}

/**
 * A tab's way to the worker. Each has a lock for as long as it is there, and learns that the other one has gone when it gets
 * that one's.
 */
class Way {
  #port;
  #opened;
  #release;
  #left = new AbortController();

  /** `hear` is given what the worker says, `gone` is called when there is no worker any more. */
  constructor(port, open, hear, gone) {
    this.#port = port;
    port.onmessage = ({ data: { life, ...said } }) => {
      if (this.#left.signal.aborted) return;
      if (life === undefined) hear(said);
      else this.#watch(life, gone);
    };
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

  #watch(life, gone) {
    // Who leaves does not wait for it any more.
    navigator.locks.request(life, { signal: this.#left.signal }, gone).catch(() => {});
  }

  async say(message) {
    await this.#opened;
    this.#port.postMessage(message);
  }

  /** Behind all that was said. */
  async leave() {
    this.#left.abort();
    await this.#opened;
    this.#release();
    this.#port.close();
  }
}
