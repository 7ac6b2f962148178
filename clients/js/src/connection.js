import { behindRedirect, isAboutWhatIsAsked, isGetOfRedirect, isPassing, refusal, retryAfter } from './answers.js';
import { lost, silent, told } from './error.js';
import { lines } from './lines.js';
import { Turns } from './turns.js';
import { Watchdog, backoff, millis, patience, pause, spread } from './waits.js';

/** Whether the server is full, or the connection: then there may be room later. */
const isFull = ({ error }) => error === 'service unavailable' || error === 'too_many_subscriptions';

/** Whether this says of one subscription that there may be room for it later. */
const hasNoRoom = (item) => (item.event === 'refused' || item.event === 'error') && isFull(item);

/**
 * One connection to a server, for any number of subscriptions. It is there while there is one, comes back by itself, and
 * asks then for what lies behind what each has received.
 */
export class Connection {
  #url;
  #settings;
  #subscriptions = new Map();
  #run = null;
  /** What is open now: the server's name of it, and the attempt that opened it. */
  #open = null;
  /** Those that the server has taken once: it has nothing against how they are asked for. */
  #accepted = new WeakSet();
  /** How often the server could not give each of them, since it took it last. */
  #turnedAway = new WeakMap();
  /** One after the other of one name: a subscription that is given up at once must not be asked for after that. */
  #changes = new Turns();
  /** How long silence is none, in milliseconds: two heartbeats of the connection that is open. */
  #patience;
  /** For how long the server asks not to come back, in milliseconds; 0 where it has not said. */
  #retry = 0;
  /** Attempts since the last that was opened. */
  #failures = 0;
  /** Whether the last attempt fell silent before it was opened: what is asked for may take the server too long together. */
  #isTooMuch = false;

  constructor(url, { heartbeat = 30_000, headers = {}, fetch = globalThis.fetch } = {}) {
    this.#url = url;
    this.#settings = { heartbeat, headers, fetch };
  }

  add(subscription) {
    this.#subscriptions.set(subscription.name, subscription);
    if (this.#run === null) {
      const stop = new AbortController();
      this.#run = stop;
      // Those that are asked for in one go are asked for together.
      queueMicrotask(() => this.#follow(stop));
    } else {
      this.#subscribe(subscription);
    }
  }

  remove(subscription) {
    if (!this.#subscriptions.has(subscription.name)) return;
    this.#forget(subscription.name);
    this.#unsubscribe(subscription);
  }

  /** Without a subscription there is no connection. */
  #forget(name) {
    this.#subscriptions.delete(name);
    if (this.#subscriptions.size === 0) this.#stop();
  }

  #stop() {
    this.#run?.abort();
    this.#run = null;
    this.#open = null;
    this.#retry = 0;
    this.#failures = 0;
    this.#isTooMuch = false;
  }

  async #follow(stop) {
    while (!stop.signal.aborted) {
      this.#failures += 1;
      await this.#once(stop);
      if (stop.signal.aborted) return;
      const wait = backoff(this.#failures, this.#retry);
      this.#retry = 0;
      await pause(wait, stop.signal);
    }
  }

  /** Opens a connection and reads it to its end, which may be that it has fallen silent, and tells why it is none any more. */
  async #once(stop) {
    const attempt = new AbortController();
    const giveUp = () => attempt.abort();
    stop.signal.addEventListener('abort', giveUp);
    const watchdog = new Watchdog(() => {
      this.#isTooMuch = this.#open === null;
      this.#all((subscription) => subscription.become('silent'));
      attempt.abort(silent(this.#patience));
    });
    this.#patience = patience(this.#settings.heartbeat);
    let why;
    try {
      watchdog.heard(this.#patience);
      const { answer, asked } = await this.#ask(attempt.signal);
      if (!answer.ok) {
        why = await this.#refused(answer);
        return;
      }
      for await (const items of lines(answer.body)) {
        for (const item of items) {
          if (stop.signal.aborted) return;
          if (item.event === 'connection') this.#opened(item, asked, attempt, answer);
          else await this.#receive(item, watchdog);
        }
        watchdog.heard(this.#patience);
      }
      const reason = this.#open === null ? `the answer is no feed${behindRedirect(answer)}` : 'the server has ended the connection';
      why = { error: 'lost', reason };
    } catch (thrown) {
      // It is lost, or was given up; what was received is where the next one begins.
      why = lost(attempt.signal.aborted ? attempt.signal.reason : thrown);
    } finally {
      watchdog.stop();
      stop.signal.removeEventListener('abort', giveUp);
      attempt.abort();
      if (!stop.signal.aborted) {
        this.#open = null;
        this.#all((subscription) => subscription.receive({ event: 'connecting', ...why }));
      }
    }
  }

  /**
   * Asks for a connection with all there are. Where one of them keeps the server from opening it, it is asked for with those
   * that it has taken before, or with none; with none, too, where all of them took too long. The others are then asked for one by
   * one: what is refused is refused alone, and what takes long has its own time for it.
   */
  async #ask(signal) {
    const all = [...this.#subscriptions.values()];
    const fewer = [all.filter((subscription) => this.#accepted.has(subscription)), []];
    for (let asked = this.#isTooMuch ? [] : all; ; ) {
      const body = JSON.stringify({
        heartbeat: this.#settings.heartbeat,
        subscriptions: asked.map((subscription) => subscription.asked),
      });
      const answer = await this.#post('/_feed/many', body, signal, { accept: 'application/x-ndjson' });
      const next = fewer.find(({ length }) => length < asked.length);
      if (next === undefined || !isAboutWhatIsAsked(answer)) return { answer, asked };
      await answer.body?.cancel();
      asked = next;
    }
  }

  #opened({ id, heartbeat, retry }, asked, attempt, answer) {
    // The server may beat in a time of its own.
    this.#patience = patience(millis(heartbeat, this.#settings.heartbeat));
    this.#retry = millis(retry, 0);
    this.#failures = 0;
    this.#isTooMuch = false;
    this.#open = { id, attempt };
    // Behind a redirect it may have been opened by a GET, which asks for nothing: a list of changes, be it empty, tells.
    if (answer.redirected) this.#change('', []);
    const open = new Set(asked);
    for (const subscription of this.#subscriptions.values()) {
      if (!open.has(subscription)) this.#subscribe(subscription);
    }
    for (const subscription of asked) {
      if (!this.#subscriptions.has(subscription.name)) this.#unsubscribe(subscription);
    }
  }

  async #receive(item, watchdog) {
    // Each that drains says how long to wait: the longest is it.
    if (item.retry !== undefined) this.#retry = Math.max(this.#retry, millis(item.retry, 0));
    if (item.sub === undefined) {
      for (const [name, seq] of Object.entries(item.seqs ?? {})) this.#subscriptions.get(name)?.moved(seq);
      if (item.event === 'draining') this.#all((subscription) => subscription.become('draining'));
      return;
    }
    const subscription = this.#subscriptions.get(item.sub);
    if (subscription === undefined) return;
    if (item.event === 'subscribed') this.#takenIn(subscription);
    this.#tell(subscription, item);
    const room = subscription.room();
    if (room !== undefined) {
      // Who does not read cannot hear that the other side is silent.
      watchdog.stop();
      await room;
      watchdog.heard(this.#patience);
    }
  }

  #takenIn(subscription) {
    this.#accepted.add(subscription);
    this.#turnedAway.delete(subscription);
  }

  #tell(subscription, item) {
    // What refuses the whole connection for good does so whatever it is called.
    if (hasNoRoom(item) && this.#open !== null) {
      this.#later(subscription, item);
      return;
    }
    subscription.receive(item);
    if (subscription.isOver) this.#forget(subscription.name);
  }

  /** The server cannot give it now: it has no room for it, none yet or none any more, or takes too long to open it. */
  async #later(subscription, refused) {
    const open = this.#open;
    const times = (this.#turnedAway.get(subscription) ?? 0) + 1;
    this.#turnedAway.set(subscription, times);
    subscription.receive({ ...refused, event: 'connecting' });
    await pause(backoff(times, this.#retry), open.attempt.signal);
    // The next connection asks for all.
    const isWanted = this.#open === open && this.#subscriptions.get(subscription.name) === subscription;
    if (isWanted) this.#subscribe(subscription);
  }

  #subscribe(subscription) {
    this.#change(subscription.name, [subscription.asked], subscription);
  }

  #unsubscribe({ name }) {
    this.#change(name, [{ unsubscribe: name }]);
  }

  /** Asks for changes of what is open. When they cannot be asked for, the connection is lost, and the next one asks for all. */
  #change(name, changes, subscription) {
    const open = this.#open;
    if (open !== null) this.#changes.take(name, () => this.#make(open, changes, subscription));
  }

  async #make({ id, attempt }, changes, subscription) {
    if (attempt.signal.aborted) return;
    const asking = new AbortController();
    const giveUp = () => asking.abort(attempt.signal.reason);
    attempt.signal.addEventListener('abort', giveUp);
    const watchdog = new Watchdog(() => asking.abort(silent(this.#patience)));
    try {
      watchdog.heard(this.#patience);
      // To a list of changes 404 says that there is no such connection, and nothing else.
      const answer = await this.#post(`/_feed/${id}`, JSON.stringify(changes), asking.signal);
      if (isGetOfRedirect(answer)) {
        await this.#refused(answer);
        return;
      }
      const isAboutChange = isAboutWhatIsAsked(answer);
      const [said = { ok: changes.length === 0 }] = isAboutChange ? [await refusal(answer)] : await answer.json();
      if (said.ok !== true && typeof said.error !== 'string') throw new Error(`${answer.status} is no answer to a change`);
      // What is subscribed to already, and what is no more, is as it was asked for.
      if (said.ok || said.error === 'conflict' || subscription === undefined || attempt.signal.aborted) return;
      const { sub, ...refused } = said;
      this.#tell(subscription, { event: 'refused', ...refused });
    } catch (thrown) {
      // What takes the server long keeps nobody waiting but who asked for it.
      const isLate = asking.signal.aborted && !attempt.signal.aborted && subscription !== undefined;
      if (!isLate) attempt.abort(thrown);
      // The answer may be late, and its rows be here.
      else if (subscription.state === 'connecting') this.#later(subscription, told(asking.signal.reason));
    } finally {
      watchdog.stop();
      attempt.signal.removeEventListener('abort', giveUp);
    }
  }

  /** Every connection is refused, for the reason that is returned: for good, unless it passes. */
  async #refused(answer) {
    const refused = await refusal(answer);
    if (!isPassing(answer)) this.#all((subscription) => this.#tell(subscription, { event: 'refused', ...refused }));
    // All whom it refuses are told the same.
    else this.#retry = spread(retryAfter(answer));
    return refused;
  }

  #post(path, body, signal, headers = {}) {
    // A browser's `fetch` is nobody's method: called as one of the settings' it is an illegal invocation.
    const { fetch, headers: given } = this.#settings;
    return fetch(this.#url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...given, ...headers },
      body,
      signal,
    });
  }

  #all(tell) {
    for (const subscription of [...this.#subscriptions.values()]) tell(subscription);
  }
}
