// JSON as people read it. It is worked on as text: a number keeps every digit it was written with.

import { h } from './dom.js';

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

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

/** The members of a JSON object's text: of each its name, a colon, and what its value is made of. */
function membersOf(text) {
  const tokens = text.match(TOKEN) ?? [];
  const members = [];
  let [depth, member] = [0, []];
  for (const token of tokens.slice(1, -1)) {
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    if (token === ',' && depth === 0) {
      members.push(member);
      member = [];
    } else {
      member.push(token);
    }
  }
  if (member.length > 0) members.push(member);
  return members;
}

/** A JSON object's text without some of its own members. */
export function without(text, names) {
  const kept = membersOf(text).filter(([name]) => !names.includes(JSON.parse(name)));
  return `{${kept.map((tokens) => tokens.join('')).join(',')}}`;
}

/** The text of a member of a JSON object; nothing where it has none of that name. */
export function memberOf(text, name) {
  const member = membersOf(text).find(([quoted]) => JSON.parse(quoted) === name);
  return member?.slice(2).join('');
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
