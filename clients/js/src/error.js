/**
 * What a server refuses, or why a subscription cannot go on: `error` is the word for it, the message is the reason, `db` what is
 * followed, where it is of one subscription.
 */
export class SeqtideError extends Error {
  constructor({ error, reason, status, db }) {
    super(reason ?? error);
    this.name = 'SeqtideError';
    this.error = error;
    if (status !== undefined) this.status = status;
    if (db !== undefined) this.db = db;
  }
}

/** What is told of anything that was thrown. */
export function told(thrown) {
  return { error: thrown?.error ?? thrown?.name ?? 'Error', reason: thrown?.message ?? String(thrown) };
}

/** An error that nobody takes: as any other that is not caught, Node.js ends with it, and a browser reports it. */
export function uncaught(error) {
  queueMicrotask(() => {
    throw error;
  });
}

/**
 * Calls what is the program's own, and says whether that has thrown nothing. What it throws, or what a promise that it returns is
 * rejected with, goes to `caught`.
 */
export function guarded(call, caught) {
  try {
    call()?.then?.(undefined, caught);
    return true;
  } catch (thrown) {
    caught(thrown);
    return false;
  }
}

/** Why a connection was lost. What `fetch` throws has the reason in its cause, which may have no more than a code. */
export function lost(thrown) {
  if (thrown instanceof SeqtideError) return told(thrown);
  const { cause } = thrown ?? {};
  return { ...told(thrown), error: 'lost', ...(cause && { reason: cause.message || cause.code }) };
}

/** What a connection is given up with on which nothing was heard. */
export const silent = (patience) => new SeqtideError({ error: 'silent', reason: `nothing was heard for ${patience} ms` });
