import { SeqtideError } from './error.js';
import { events } from './events.js';
import { Watchdog, backoff, pause } from './waits.js';

/** Before a first attempt has told otherwise, in milliseconds. */
const RETRY = 500;

/**
 * One connection to a server, for any number of subscriptions. It is there while there is one, comes back by itself, and
 * asks then for what lies behind what each has received.
 */
export class Connection {
  #url;
  #settings;
  #subscriptions = new Map();
  #run = null;
  /** The server's name of what is open now. */
  #id = null;
  #changes = Promise.resolve();
  /** How long silence is none, in milliseconds: two heartbeats of the connection that is open. */
  #patience;
  #retry = RETRY;
  #failures = 0;

  constructor(url, { heartbeat = 30_000, headers = {}, fetch = globalThis.fetch.bind(globalThis) } = {}) {
    this.#url = String(url).replace(/\/+$/, '');
    this.#settings = { heartbeat, headers, fetch };
  }

  add(subscription) {
    this.#subscriptions.set(subscription.name, subscription);
    if (this.#run === null) {
      const stop = new AbortController();
      this.#run = stop;
      // Those that are asked for in one go are asked for together.
      queueMicrotask(() => this.#follow(stop));
    } else if (this.#id !== null) {
      this.#change(subscription.asked, subscription);
    }
  }

  remove(subscription) {
    if (!this.#subscriptions.delete(subscription.name)) return;
    if (this.#subscriptions.size === 0) {
      this.#run?.abort();
      this.#run = null;
      this.#id = null;
    } else if (this.#id !== null) {
      this.#change({ unsubscribe: subscription.name });
    }
  }

  close() {
    for (const subscription of [...this.#subscriptions.values()]) subscription.close();
  }

  async #follow(stop) {
    while (!stop.signal.aborted) {
      await this.#once(stop);
      if (stop.signal.aborted) return;
      this.#id = null;
      await pause(backoff(this.#failures, this.#retry), stop.signal);
      this.#failures += 1;
    }
  }

  /** Opens a connection and reads it to its end, which may be that it has fallen silent. */
  async #once(stop) {
    const attempt = new AbortController();
    const giveUp = () => attempt.abort();
    stop.signal.addEventListener('abort', giveUp);
    const asked = [...this.#subscriptions.values()];
    const watchdog = new Watchdog(() => {
      this.#all((subscription) => subscription.become('silent'));
      attempt.abort();
    });
    this.#patience = 2 * this.#settings.heartbeat;
    try {
      watchdog.heard(this.#patience);
      const body = JSON.stringify({
        heartbeat: this.#settings.heartbeat,
        subscriptions: asked.map((subscription) => subscription.asked),
      });
      const answer = await this.#post('/_feed/many', body, attempt.signal, { Accept: 'text/event-stream' });
      if (!answer.ok) return await this.#refused(answer, asked);
      for await (const { data, retry } of events(answer.body)) {
        if (stop.signal.aborted) return;
        if (retry !== undefined) this.#retry = retry;
        for (const item of data === undefined ? [] : JSON.parse(data)) await this.#receive(item, asked, watchdog);
        watchdog.heard(this.#patience);
      }
    } catch {
      // It is lost, or was given up; what was received is where the next one begins.
    } finally {
      watchdog.stop();
      stop.signal.removeEventListener('abort', giveUp);
      attempt.abort();
      if (!stop.signal.aborted) this.#all((subscription) => subscription.become('connecting'));
    }
  }

  async #receive(item, asked, watchdog) {
    if (item.event === 'connection') {
      // The server may beat in a time of its own.
      if (item.heartbeat !== undefined) this.#patience = 2 * item.heartbeat;
      this.#opened(item.id, asked);
      return;
    }
    if (item.retry !== undefined) this.#retry = item.retry;
    if (item.sub === undefined) {
      for (const [name, seq] of Object.entries(item.seqs ?? {})) this.#subscriptions.get(name)?.moved(seq);
      if (item.event === 'draining') this.#all((subscription) => subscription.become('draining'));
      return;
    }
    const subscription = this.#subscriptions.get(item.sub);
    if (subscription === undefined) return;
    if (item.event === 'refused' && item.error === 'service unavailable') {
      this.#later(subscription);
      return;
    }
    subscription.receive(item);
    if (subscription.state === 'ended') this.#subscriptions.delete(item.sub);
    const room = subscription.room();
    if (room !== undefined) {
      // Who does not read cannot hear that the other side is silent.
      watchdog.stop();
      await room;
      watchdog.heard(this.#patience);
    }
  }

  #opened(id, asked) {
    this.#id = id;
    this.#failures = 0;
    const open = new Set(asked);
    for (const subscription of this.#subscriptions.values()) {
      if (!open.has(subscription)) this.#change(subscription.asked, subscription);
    }
    for (const subscription of asked) {
      if (!this.#subscriptions.has(subscription.name)) this.#change({ unsubscribe: subscription.name });
    }
  }

  /** The server had no place for it. */
  async #later(subscription) {
    const stop = this.#run;
    subscription.become('connecting');
    await pause(backoff(0, Math.max(this.#retry, 1000)), stop.signal);
    const isWanted = this.#run === stop && this.#subscriptions.get(subscription.name) === subscription;
    if (isWanted && this.#id !== null) this.#change(subscription.asked, subscription);
  }

  /** Asks for a change of what is open. When it cannot be asked, the connection is lost, and the next one asks for all. */
  #change(change, subscription) {
    const id = this.#id;
    // One after the other: a subscription that is given up at once must not be asked for after that.
    this.#changes = this.#changes.then(() => this.#ask(id, change, subscription));
  }

  async #ask(id, change, subscription) {
    if (this.#id !== id) return;
    try {
      const answer = await this.#post(`/_feed/${id}`, JSON.stringify(change), this.#run?.signal);
      const said = await answer.json();
      if (answer.ok || subscription === undefined || this.#id !== id) return;
      if (answer.status === 503) this.#later(subscription);
      else if (answer.status !== 409) this.#fail(subscription, { ...said, status: answer.status });
    } catch {
      // See above.
    }
  }

  /** The whole was refused: for good, unless the server has no room. */
  async #refused(answer, asked) {
    const said = await answer.json().catch(() => ({}));
    if (answer.status >= 500 || answer.status === 429) {
      const seconds = Number(answer.headers.get('retry-after'));
      if (seconds > 0) this.#retry = seconds * 1000;
      return;
    }
    const error = { error: 'refused', reason: answer.statusText, ...said, status: answer.status };
    for (const subscription of asked) this.#fail(subscription, error);
    if (this.#subscriptions.size === 0) {
      this.#run?.abort();
      this.#run = null;
    }
  }

  #fail(subscription, error) {
    this.#subscriptions.delete(subscription.name);
    subscription.fail(new SeqtideError(error));
  }

  #post(path, body, signal, headers = {}) {
    return this.#settings.fetch(this.#url + path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...this.#settings.headers, ...headers },
      body,
      signal,
    });
  }

  #all(tell) {
    for (const subscription of this.#subscriptions.values()) tell(subscription);
  }
}
