// JSON as people read it. It is worked on as text: a number keeps every digit it was written with.

import { h } from './dom.js';

const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
/** What structure there is between texts, and texts, in which there is none. */
const MARK = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],]/g;
/** The name of a member, and how far it goes. */
const NAME = /^("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*/;

/** A JSON text, indented, as `[kind, text]` pairs. */
function* indented(text) {
  const tokens = text.match(TOKEN) ?? [];
  let depth = 0;
  for (const [at, token] of tokens.entries()) {
    const next = tokens[at + 1];
    if (token === '{' || token === '[') {
      const empty = next === '}' || next === ']';
      depth += empty ? 0 : 1;
      yield ['mark', empty ? token : `${token}${line(depth)}`];
    } else if (token === '}' || token === ']') {
      const empty = ['{', '['].includes(tokens[at - 1]);
      depth -= empty ? 0 : 1;
      yield ['mark', empty ? token : `${line(depth)}${token}`];
    } else if (token === ',') {
      yield ['mark', `,${line(depth)}`];
    } else if (token === ':') {
      yield ['mark', ': '];
    } else {
      yield [next === ':' ? 'key' : token.startsWith('"') ? 'text' : 'value', token];
    }
  }
}

const line = (depth) => `\n${'  '.repeat(depth)}`;

/** A JSON text, indented. */
export const pretty = (text) => [...indented(text)].map(([, part]) => part).join('');

/** A JSON text as an element, indented, its parts in colours. */
export function json(text) {
  const parts = [...indented(text)].map(([kind, part]) => (kind === 'mark' ? part : h('span', { class: kind }, part)));
  return h('pre', { class: 'json' }, parts);
}

/** What a JSON list has, or an object: the text of each element, of each member. */
export function elementsOf(text) {
  const elements = [];
  let depth = 0;
  let from = 0;
  for (const { 0: mark, index } of text.matchAll(MARK)) {
    if (mark === '}' || mark === ']') depth -= 1;
    if (depth === 0 || (depth === 1 && mark === ',')) {
      elements.push(text.slice(from, index).trim());
      from = index + 1;
    }
    if (mark === '{' || mark === '[') depth += 1;
  }
  // In front of the first is a bracket, and an empty one has nothing behind it.
  return elements.slice(1).filter((element) => element !== '');
}

const nameOf = (member) => JSON.parse(NAME.exec(member)[1]);

/** A JSON object's text without some of its own members. */
export function without(text, names) {
  return `{${elementsOf(text).filter((member) => !names.includes(nameOf(member))).join(',')}}`;
}

/** The text of a member of a JSON object; nothing where it has none of that name. */
export function memberOf(text, name) {
  return elementsOf(text).find((member) => nameOf(member) === name)?.replace(NAME, '');
}

/** Why a text is no JSON, or nothing. */
function notJson(text) {
  try {
    JSON.parse(text);
    return null;
  } catch (error) {
    return `This is no JSON: ${error.message}`;
  }
}

/** Why a text is no JSON object, or nothing; `what` is to be one. */
export function notAnObject(text, what) {
  return notJson(text) ?? (text.trim().startsWith('{') ? null : `${what} is a JSON object: { … }`);
}

/** A text in one short line. */
export function brief(text, most = 300) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
