// Sequences of a database, in either form: a number, or a text of 26 hexadecimal digits. Each has the incarnation of the
// database and a version, which counts its changes.

const NUMBER = /^\d{1,18}$/;
const TEXT = /^[\da-f]{26}$/i;
/** Versions of one incarnation, in the form of a number. */
const VERSIONS = 2 ** 45;

/** How many changes a database has seen by a sequence; `null` for what is none, such as a time. */
export function version(seq) {
  const text = String(seq);
  if (NUMBER.test(text)) return Number(text) % VERSIONS;
  if (TEXT.test(text)) return Number(BigInt(`0x${text.slice(2, 18)}`));
  return null;
}

/** The sequence of a version, as the database whose update sequence is given writes it. */
export function sequenceAt(updateSeq, at) {
  if (at <= 0) return '0';
  if (typeof updateSeq === 'number') return String(updateSeq - (updateSeq % VERSIONS) + at);
  return updateSeq.slice(0, 2) + BigInt(at).toString(16).padStart(16, '0') + '00000000';
}
