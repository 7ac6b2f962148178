// A feed over Server-Sent Events that is kept up: it goes on behind the last event it has seen, after a lost connection,
// a restart of the server, or a time in which nobody looked at the page.

const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 5000;
// A browser opens six connections to a server for all its tabs together: one that nobody sees gives its own back.
const HIDDEN_MS = 15_000;
// What has come while the page was busy is dealt with before a connection counts as dead.
const GRACE_MS = 1000;
/** A connection that says nothing for so long from its beginning is dead; a feed says at once that it is open. */
const OPENING_MS = 4000;
/** Why a feed ends for good, by the reasons the server gives. */
const FINAL = { deleted: 'the database was deleted', revoked: 'an operator closed this feed' };

/**
 * Follows a feed.
 *
 * - `url(since)`: where it is, behind a place (`null` at first)
 * - `on`: by event name what to do with what it says, parsed and as it came; rows have the name `message`
 * - `state(name, detail)`: told `connecting`, `live`, `lagging` (how far behind), `draining` (the server is about to stop),
 *   `stopped` and `lost` (tries again), `away` (nobody looks) and `failed` (why)
 * - `explain()`: asked where a connection was refused; an error it returns is final
 * - `heartbeat`: for how many milliseconds it is silent at most; a feed says so itself
 */
export class Stream {
  constructor({ url, on, state = () => {}, explain = async () => null, since = null, heartbeat = null }) {
    // `why` it is not connected, and for how many milliseconds a server that stops wants it to `wait`.
    Object.assign(this, { url, on, tell: state, explain, since, delay: RETRY_MS_MIN, why: 'lost', wait: 0 });
    // Timers: one tries `again`, one goes off where nothing is heard, one where nobody looks.
    Object.assign(this, { source: null, again: null, watch: null, unseen: null, resting: false, heartbeat, ended: false });
    // What a feed says of itself, whatever it is a feed of.
    const begins = ({ heartbeat }) => (this.heartbeat = heartbeat);
    this.says = {
      opened: begins,
      rewind: begins,
      heartbeat: () => {},
      lagging: (lag) => this.state('lagging', lag),
      live: () => this.state('live'),
      draining: ({ retry }) => {
        this.wait = retry;
        this.state('draining');
      },
      end: ({ reason }) => (FINAL[reason] ? this.fail(FINAL[reason]) : (this.why = 'stopped')),
    };
    this.looked = () => this.look();
    document.addEventListener('visibilitychange', this.looked);
    this.state('connecting');
    this.open();
    this.look();
  }

  /** Ends it. Nothing is told any more. */
  close() {
    this.ended = true;
    clearTimeout(this.unseen);
    this.disconnect();
    document.removeEventListener('visibilitychange', this.looked);
  }

  open() {
    this.disconnect();
    this.resting = false;
    const source = new EventSource(this.url(this.since));
    this.source = source;
    this.heard(OPENING_MS);
    source.onopen = () => {
      Object.assign(this, { delay: RETRY_MS_MIN, why: 'lost' });
      this.state('live');
    };
    // An event that the server calls `error` has data; a lost connection has none.
    source.onerror = ({ data }) => data === undefined && this.lost();
    for (const takes of [this.says, this.on]) {
      for (const [name, take] of Object.entries(takes)) {
        source.addEventListener(name, ({ data, lastEventId }) => {
          if (source !== this.source) return;
          // A connection that is lost before the event is dealt with must not bring it again.
          if (lastEventId) this.since = lastEventId;
          if (data !== undefined) take(JSON.parse(data), data);
          this.heard();
        });
      }
    }
  }

  /** A connection over which nothing comes for two heartbeats is dead, though nobody has said so. */
  heard(silence = this.heartbeat === null ? OPENING_MS : 2 * this.heartbeat) {
    clearTimeout(this.watch);
    if (!this.source) return;
    this.watch = setTimeout(() => {
      // It was not refused, so there is nothing to explain.
      this.watch = setTimeout(() => this.lost(async () => null), GRACE_MS);
    }, silence);
  }

  async lost(explain = this.explain) {
    this.disconnect();
    this.state(this.why);
    const error = await explain().catch(() => null);
    if (this.ended || this.resting || this.source) return;
    if (error) {
      this.fail(error.message);
      return;
    }
    clearTimeout(this.again);
    this.again = setTimeout(() => this.open(), Math.max(this.wait, this.delay * (0.75 + Math.random() / 2)));
    Object.assign(this, { delay: Math.min(this.delay * 2, RETRY_MS_MAX), wait: 0 });
  }

  fail(reason) {
    this.state('failed', reason);
    this.close();
  }

  /** Who is not looked at for a while rests, whatever became of the connection meanwhile. */
  look() {
    clearTimeout(this.unseen);
    if (document.hidden) {
      this.unseen = setTimeout(() => this.rest(), HIDDEN_MS);
    } else if (!this.source) {
      this.state('connecting');
      this.open();
    }
  }

  rest() {
    this.resting = true;
    this.disconnect();
    this.state('away');
  }

  disconnect() {
    clearTimeout(this.again);
    clearTimeout(this.watch);
    this.source?.close();
    this.source = null;
  }

  state(name, detail) {
    if (!this.ended) this.tell(name, detail);
  }
}
