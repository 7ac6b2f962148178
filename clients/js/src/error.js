/** What a server refuses, or why a subscription cannot go on: `error` is the word for it, the message is the reason. */
export class SeqtideError extends Error {
  constructor({ error, reason, status }) {
    super(reason ?? error);
    this.name = 'SeqtideError';
    this.error = error;
    this.status = status;
  }
}
