// JSON as people read it, with its parts in colours.

import { h } from './dom.js';

const TOKEN = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*|true|false|null)/g;

/** A value, indented. */
export function json(value) {
  const text = JSON.stringify(value, null, 2) ?? '';
  const parts = [];
  let at = 0;
  for (const { 0: token, 1: quoted, 2: colon, index } of text.matchAll(TOKEN)) {
    parts.push(text.slice(at, index));
    const kind = quoted ? (colon ? 'key' : 'text') : 'value';
    parts.push(h('span', { class: kind }, quoted ?? token), colon ?? '');
    at = index + token.length;
  }
  return h('pre', { class: 'json' }, parts, text.slice(at));
}

/** A value in one short line. */
export function brief(value, most = 300) {
  const text = JSON.stringify(value) ?? '';
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
