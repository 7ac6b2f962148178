// Figures as people read them.

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const small = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

/** A count, all digits. */
export const count = (value) => whole.format(value);

/** A figure of any size in a few characters; a dash where there is none. */
export function figure(value) {
  if (value === null || value === undefined) return '–';
  return Math.abs(value) >= 10_000 ? short.format(value) : small.format(value);
}

/** Bytes. */
export function bytes(value) {
  if (value === null || value === undefined) return '–';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${small.format(unit === 0 ? Math.round(value) : value)} ${units[unit]}`;
}

/** A length of time given in seconds. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds === 0) return '0 s';
  if (seconds < 0.001) return `${small.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${small.format(seconds * 1e3)} ms`;
  if (seconds < 120) return `${small.format(seconds)} s`;
  if (seconds < 7200) return `${small.format(seconds / 60)} min`;
  return `${small.format(seconds / 3600)} h`;
}

/** A time of day. */
export const clock = (date) => date.toLocaleTimeString('en-GB');

/** A number and the word for what is counted. */
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;
