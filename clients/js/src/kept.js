import { SeqtideError } from './error.js';

/** Options that say where rows begin and end or what is in them; all others say which rows there are. */
const OF_THE_SAME_ROWS = new Set(['since', 'until', 'live', 'limit', 'snapshot', 'on_rewind', 'include_docs', 'conflicts']);

/** Of each storage the keys that have a subscription: a second one would write over its token. */
const inUse = new WeakMap();

/** The key of whoever gives none: another for each server, database and choice of rows. */
export function keyOf(url, db, options) {
  const chosen = Object.keys(options).filter((name) => options[name] !== undefined && !OF_THE_SAME_ROWS.has(name));
  const choice = Object.fromEntries(chosen.sort().map((name) => [name, options[name]]));
  return `seqtide:${url}/${encodeURIComponent(db)}${chosen.length === 0 ? '' : ` ${JSON.stringify(choice)}`}`;
}

/** A token in a storage. Its key belongs to one subscription until that gives it back. */
export class Kept {
  #storage;
  #key;

  constructor(storage, key) {
    const keys = inUse.get(storage) ?? new Set();
    if (keys.has(key)) {
      const reason = `a subscription keeps its token under ${JSON.stringify(key)} already: give each a \`key\` of its own`;
      throw new SeqtideError({ error: 'key_in_use', reason });
    }
    const token = storage.getItem(key);
    if (typeof token === 'object' && token !== null) {
      const instead = 'one that takes its time is asked before `follow`, and `getItem` gives what it said';
      throw new TypeError(`a storage gives a token at once, as a text, or null, not ${String(token)}: ${instead}`);
    }
    this.token = token;
    this.#storage = storage;
    this.#key = key;
    inUse.set(storage, keys.add(key));
  }

  /** What the storage returns: a promise where it takes its time. */
  keep(token) {
    return this.#storage?.setItem(this.#key, String(token));
  }

  /** Nothing is kept from here on. */
  giveBack() {
    if (this.#storage === null) return;
    inUse.get(this.#storage).delete(this.#key);
    this.#storage = null;
  }
}
