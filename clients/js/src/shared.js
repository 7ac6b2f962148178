/**
 * The connection of a shared worker, which all tabs of an origin have in common. Where there is no shared worker, or it does
 * not start, a tab has a connection of its own.
 */
export class SharedConnection {
  #port;
  #opened;
  #own = null;
  #subscriptions = new Map();

  /** `own` makes a connection of this tab's own. */
  static open(url, settings, own) {
    // Functions, such as a `fetch` of one's own, do not go to a worker.
    const canShare = typeof SharedWorker !== 'undefined' && navigator.locks !== undefined && settings.fetch === undefined;
    if (!canShare) return own();
    const open = { url: String(url), heartbeat: settings.heartbeat, headers: settings.headers };
    const name = `seqtide ${JSON.stringify(open)}`;
    try {
      const worker = new SharedWorker(new URL('./shared-worker.js', import.meta.url), { type: 'module', name });
      return new SharedConnection(worker, open, own);
    } catch {
      return own();
    }
  }

  constructor(worker, open, own) {
    this.#port = worker.port;
    this.#port.onmessage = ({ data }) => this.#hear(data);
    worker.onerror = () => this.#goAlone(own);
    // The worker learns that this tab has gone when it gets the tab's lock.
    const lock = crypto.randomUUID();
    this.#opened = new Promise((resolve) => {
      navigator.locks.request(lock, () => {
        this.#port.postMessage({ open, lock });
        resolve();
        return new Promise(() => {});
      });
    });
  }

  add(subscription) {
    this.#subscriptions.set(subscription.name, subscription);
    if (this.#own !== null) return this.#own.add(subscription);
    const { subscribe, db, ...options } = subscription.asked;
    return this.#say({ follow: subscribe, db, options });
  }

  remove(subscription) {
    this.#subscriptions.delete(subscription.name);
    if (this.#own !== null) return this.#own.remove(subscription);
    return this.#say({ close: subscription.name });
  }

  close() {
    for (const subscription of [...this.#subscriptions.values()]) subscription.close();
  }

  #goAlone(own) {
    this.#own ??= own();
    for (const subscription of this.#subscriptions.values()) this.#own.add(subscription);
  }

  async #say(message) {
    await this.#opened;
    this.#port.postMessage(message);
  }

  async #hear({ name, item, state, moved }) {
    const subscription = this.#subscriptions.get(name);
    if (subscription === undefined) return;
    if (state !== undefined) subscription.become(state);
    if (moved !== undefined) subscription.moved(moved);
    if (item === undefined) return;
    subscription.receive(item);
    if (subscription.state === 'ended') this.#subscriptions.delete(name);
    if (item.event !== undefined) return;
    await subscription.room();
    this.#say({ taken: name });
  }
}
