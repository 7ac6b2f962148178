/** What the server is asked for of a subscription: all that was not received yet. */
export class Asked {
  /** What comes next lies behind this. */
  since;
  /** Whether as many rows came as were wanted. */
  isDone = false;
  #given;
  #limit;

  constructor(name, db, { since, limit, ...options }) {
    this.since = since;
    this.#limit = limit;
    this.#given = { ...options, subscribe: name, db };
  }

  /** Takes note of what the server says: a row or an event. */
  received({ event, seq }) {
    if (seq !== undefined) this.since = seq;
    if (event !== undefined || this.#limit === undefined) return;
    this.#limit -= 1;
    this.isDone = this.#limit <= 0;
  }

  /** As the server reads it. */
  get whole() {
    return { ...this.#given, since: this.since, limit: this.#limit };
  }
}
