// The server's metrics, once a second, and what is reckoned from them: rates, and quantiles of what was observed within
// a second. Values come as Prometheus names them; of each sample only those that changed, `null` where one is not known any more.

import { address } from './api.js';
import { Stream } from './stream.js';

/** Points kept: five minutes, as many as the server keeps. */
const POINTS_MAX = 300;
/** Samples further apart have something missing between them, which a chart shows as a gap. */
const GAP_MS = 3500;

/** The figures of one server, followed for as long as the page lives. */
export class Figures {
  /** `measures`: by name, a function of a `Step` that gives a number or `null`. */
  constructor(measures) {
    this.measures = Object.entries(measures);
    this.forget();
    this.listeners = new Set();
    this.state = 'connecting';
    this.changed = () => this.listeners.forEach((listener) => listener(this));
    this.stream = new Stream({
      url: (since) => address(['_dashboard', 'figures'], { since }),
      on: { message: (sample) => this.take(sample) },
      // A sample a second.
      heartbeat: 2000,
      state: (state) => {
        this.state = state;
        this.tell();
      },
    });
  }

  /** Has a function called whenever there is something new, and returns how to end that. */
  follow(listener) {
    this.listeners.add(listener);
    listener(this);
    return () => this.listeners.delete(listener);
  }

  /** Begins as a page that was just opened. */
  forget() {
    Object.assign(this, { times: [], values: null, time: 0 });
    this.points = Object.fromEntries(this.measures.map(([name]) => [name, []]));
  }

  take({ time, whole, values }) {
    if (time <= this.time) {
      if (!whole) return;
      // Charts cannot go back: the server began anew, with a clock that is behind.
      this.forget();
    }
    const apart = time - this.time > GAP_MS || (whole && this.values !== null);
    if (apart && this.times.length > 0) this.push(this.time + 1, () => null);
    // After a restart everything counts from zero again.
    const before = whole ? null : this.values;
    const now = new Map(before ?? []);
    for (const [series, value] of Object.entries(values)) {
      if (value === null) now.delete(series);
      else now.set(series, value);
    }
    const step = new Step(before, now, (time - this.time) / 1000);
    Object.assign(this, { values: now, time });
    this.push(time, (measure) => measure(step));
    this.tell();
  }

  push(time, point) {
    this.times.push(time / 1000);
    this.measures.forEach(([name, measure]) => this.points[name].push(point(measure)));
    if (this.times.length <= POINTS_MAX) return;
    this.times.shift();
    this.measures.forEach(([name]) => this.points[name].shift());
  }

  /** The newest point of a measure. */
  last(name) {
    return this.points[name].at(-1) ?? null;
  }

  // Samples that a page catches up on come many at a time, and are shown once.
  tell() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(this.changed);
  }
}

/** What happened from one sample to the next. */
export class Step {
  constructor(before, now, seconds) {
    Object.assign(this, { before, now, seconds });
  }

  /** The sum of the values of a name, over all its labels. */
  value(name) {
    return sum(this.now, name);
  }

  /** How much a counter grew, a second. */
  rate(name) {
    if (this.before === null) return null;
    return Math.max(0, sum(this.now, name) - sum(this.before, name)) / this.seconds;
  }

  /** A quantile of what a histogram observed in this step, reckoned within its buckets as Prometheus does. */
  quantile(name, share) {
    if (this.before === null) return null;
    return quantile(this.buckets(name, (series, value) => value - (this.before.get(series) ?? 0)), share);
  }

  /** A quantile over what is counted in buckets just now. */
  spread(name, share) {
    return quantile(this.buckets(name, (_, value) => value), share);
  }

  buckets(name, counted) {
    const buckets = new Map();
    for (const [series, value] of this.now) {
      if (!series.startsWith(`${name}_bucket{`)) continue;
      const bound = /le="([^"]+)"/.exec(series)[1];
      buckets.set(bound, (buckets.get(bound) ?? 0) + counted(series, value));
    }
    return buckets;
  }
}

function quantile(buckets, share) {
  const sorted = [...buckets].map(([le, seen]) => [le === '+Inf' ? Infinity : Number(le), seen]);
  sorted.sort(([a], [b]) => a - b);
  const all = sorted.at(-1)?.[1] ?? 0;
  if (all <= 0) return null;
  let [low, below] = [0, 0];
  for (const [bound, seen] of sorted) {
    if (seen >= share * all) return bound === Infinity ? low : low + ((bound - low) * (share * all - below)) / (seen - below);
    [low, below] = [bound, seen];
  }
  return low;
}

function sum(values, name) {
  let total = 0;
  for (const [series, value] of values) {
    if (series === name || series.startsWith(`${name}{`)) total += value;
  }
  return total;
}

/** By the value of a label: the value of each series of a name. */
export function byLabel(values, name, label) {
  const found = new Map();
  const named = new RegExp(`^${name}\\{.*${label}="([^"]+)"`);
  for (const [series, value] of values ?? []) {
    const [, key] = named.exec(series) ?? [];
    if (key) found.set(key, value);
  }
  return found;
}
