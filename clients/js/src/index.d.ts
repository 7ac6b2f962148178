/** A token: a place in a database's order of changes. */
export type Seq = number | string;

/** A document that changed. */
export interface Row<Doc = Record<string, unknown>> {
  seq: Seq;
  id: string;
  changes: { rev: string }[];
  deleted?: true;
  /** With `leave`: it was given before and does not pass any more, or is deleted. */
  left?: true;
  /** With `include_docs`; `_conflicts` with `conflicts`, where there are any. */
  doc?: Doc & { _id: string; _rev: string; _deleted?: true; _conflicts?: string[] };
}

/**
 * What is told besides rows: the server's events, each when the rows before it were taken, and two of the client's own, at once. `connecting`: an attempt failed or a connection was
 * lost, and is made anew; `error` is `lost`, `silent`, or the word of the server. `error`: what the program's own code threw ends
 * the subscription.
 */
export interface FeedEvent {
  event: string;
  seq?: Seq;
  /** The word for what went wrong. */
  error?: string;
  /** What went wrong; of an `end` why it is one. */
  reason?: string;
  /** Where a whole request was answered so. */
  status?: number;
  /** With the client's `error`: what was thrown. */
  cause?: unknown;
  [member: string]: unknown;
}

/**
 * `connecting`: there is no connection, or no answer yet; the event of that name says why. `catching-up`: rows of the past come.
 * `live`: rows come as they are written. `lagging`: the server reads for this client from its disk again. `draining`: the server
 * is about to stop, and says no more of the others.
 * `silent`: nothing was heard for two heartbeats, and the connection is made anew. `ended`: nothing comes any more, and all that
 * had come was taken. Every other state is told at once, whatever waits to be taken.
 */
export type State = 'connecting' | 'catching-up' | 'live' | 'lagging' | 'draining' | 'silent' | 'ended';

/** What is kept between visits: `localStorage`, or anything with these two functions. `getItem` gives it at once. */
export interface TokenStorage {
  getItem(key: string): string | null;
  setItem(key: string, token: string): unknown;
}

/** Everything a database's `_feed` takes, but for `heartbeat`; and what is done with what comes. */
export interface FollowOptions<Doc = Record<string, unknown>> {
  /** Where to begin: a token, `0`, a time of RFC 3339, or `now`, which is the default. */
  since?: Seq;
  /** Where to end: a token. */
  until?: Seq;
  /** First what there is, then what changes. */
  snapshot?: boolean;
  /** Whether documents that do not pass any more are told. */
  leave?: boolean;
  include_docs?: boolean;
  conflicts?: boolean;
  conflicts_only?: boolean;
  doc_ids?: readonly string[];
  prefix?: string;
  selector?: object;
  filter?: string;
  view?: string;
  query?: object;
  style?: 'main_only' | 'all_docs';
  /** How many rows, of all connections together. */
  limit?: number;
  live?: boolean;
  on_rewind?: 'rewind' | 'error';
  /** Is given each row, the next one when it is done. Without it rows are taken with `for await`. */
  onRow?(row: Row<Doc>, subscription: Subscription<Doc>): unknown;
  onState?(state: State, subscription: Subscription<Doc>): unknown;
  /**
   * Is told what the subscription ends with, which the loop throws, too. Without both of them it is an error that nobody caught: Node.js
   * ends with it, a browser reports it.
   */
  onEvent?(event: FeedEvent, subscription: Subscription<Doc>): unknown;
  /** Where the token is kept; what is there wins over `since`. `follow` throws where another subscription keeps its own there. */
  storage?: TokenStorage;
  /** Under which name; one of the server, the database and the options that choose rows where none is given. */
  key?: string;
}

/** A database that is followed. */
export interface Subscription<Doc = Record<string, unknown>> extends AsyncIterable<Row<Doc>> {
  readonly db: string;
  readonly state: State;
  /** Where to go on: everything up to here was taken. */
  readonly token: Seq;
  /** Nothing more is wanted: no row is given any more, and what has its token's key may be followed anew. */
  close(): void;
}

export interface Settings {
  /** How often the server says that it is there, in whole milliseconds up to 240,000; 30,000 where none is given. */
  heartbeat?: number;
  /** Sent with each request. */
  headers?: Headers | Record<string, string> | readonly (readonly [string, string])[];
  /** Used in place of the global `fetch`. With it, `shared` is passed over: a function does not go to a worker. */
  fetch?: typeof fetch;
  /** One connection for all tabs of the origin, where the browser has shared workers. */
  shared?: boolean;
}

/** A server, and the one connection over which its databases are followed. */
export class Seqtide {
  /**
   * Throws a `TypeError` where `url` is no absolute URL of http or https, has a query or a fragment, or a user or a password, which belong
   * into `headers`; and where `heartbeat` is no whole number from 1 to 240,000, `headers` are none, or there is no such setting.
   */
  constructor(url: string | URL, settings?: Settings);
  /**
   * Follows a database. Throws a `TypeError` where its name is no text, or an option is nothing that can work; a `SeqtideError` where its
   * token's key is in use.
   */
  follow<Doc = Record<string, unknown>>(db: string, options?: FollowOptions<Doc>): Subscription<Doc>;
  /** Ends all that is followed, and the connection. */
  close(): void;
}

/** What a server refuses, or why a subscription cannot go on. */
export class SeqtideError extends Error {
  /** `reason` is the message; without one `error` is. */
  constructor(said: { error: string; reason?: string; status?: number; db?: string });
  readonly error: string;
  /** Where a whole request was refused. */
  readonly status?: number;
  /** What is followed, where it is of one subscription. */
  readonly db?: string;
}
