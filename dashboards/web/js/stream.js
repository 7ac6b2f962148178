// A feed over Server-Sent Events that is kept up: it goes on behind the last event it has seen, after a lost connection,
// a restart of the server, or a time in which nobody looked at the page.

const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 5000;
// A browser opens six connections to a server for all its tabs together: one that nobody sees gives its own back.
const HIDDEN_MS = 15_000;

/**
 * Follows a feed.
 *
 * - `url(since)`: where it is, behind a place (`null` at first)
 * - `on`: by event name what to do with what it says, parsed and as it came; rows have the name `message`
 * - `state(name, detail)`: told `connecting`, `live`, `lost` (tries again), `away` (nobody looks) and `failed`
 * - `explain()`: asked where a connection was refused; an error it returns is final
 */
export class Stream {
  constructor({ url, on, state = () => {}, explain = async () => null, since = null }) {
    Object.assign(this, { url, on, tell: state, explain, since });
    this.delay = RETRY_MS_MIN;
    this.source = null;
    this.timer = null;
    this.ended = false;
    this.looked = () => this.look();
    document.addEventListener('visibilitychange', this.looked);
    this.open();
  }

  /** Ends it. Nothing is told any more. */
  close() {
    this.ended = true;
    this.disconnect();
    document.removeEventListener('visibilitychange', this.looked);
  }

  open() {
    this.disconnect();
    this.state('connecting');
    const source = new EventSource(this.url(this.since));
    this.source = source;
    source.onopen = () => {
      this.delay = RETRY_MS_MIN;
      this.state('live');
    };
    // An event that the server calls `error` has data; a lost connection has none.
    source.onerror = ({ data }) => data === undefined && this.lost();
    for (const [name, take] of Object.entries(this.on)) {
      source.addEventListener(name, ({ data, lastEventId }) => {
        if (source !== this.source) return;
        // A connection that is lost before the event is dealt with must not bring it again.
        if (lastEventId) this.since = lastEventId;
        if (data !== undefined) take(JSON.parse(data), data);
      });
    }
  }

  async lost() {
    this.disconnect();
    this.state('lost');
    const error = await this.explain().catch(() => null);
    if (this.ended || this.source) return;
    if (error) {
      this.state('failed', error);
      this.close();
      return;
    }
    this.later(() => this.open(), this.delay * (0.75 + Math.random() / 2));
    this.delay = Math.min(this.delay * 2, RETRY_MS_MAX);
  }

  look() {
    if (document.hidden) {
      this.later(() => {
        this.disconnect();
        this.state('away');
      }, HIDDEN_MS);
    } else if (this.source) {
      clearTimeout(this.timer);
    } else {
      this.open();
    }
  }

  later(act, ms) {
    clearTimeout(this.timer);
    this.timer = setTimeout(act, ms);
  }

  disconnect() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  state(name, detail) {
    if (!this.ended) this.tell(name, detail);
  }
}

/** What a stream's state is called on the page. */
export const STATES = {
  connecting: 'connecting',
  live: 'live',
  lost: 'connection lost, trying again',
  away: 'resting while nobody looks',
  failed: 'ended',
  paused: 'paused',
};
