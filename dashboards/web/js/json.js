// JSON as people read it. It is worked on as text: a number keeps every digit it was written with.

import { h } from './dom.js';

/** Where a token begins: a text, in which there is no structure, is found by its quotation mark. */
const TOKEN = /"|[{}[\],:]|[^\s{}[\],:"]+/g;
/** The same, of structure and texts alone. */
const MARK = /["{}[\],]/g;
/** More elements than this make a page slow: what comes behind so many parts has no colours. */
const COLOURED_MAX = 20_000;

/** Where a text ends that begins here. A pattern for the whole of it fails at millions of escapes. */
function endOfText(json, from) {
  for (let end = from; ; ) {
    end = json.indexOf('"', end + 1);
    if (end < 0) return json.length;
    let before = end - 1;
    while (json[before] === '\\') before -= 1;
    // Backslashes make pairs; one that is left makes this mark a part of the text.
    if ((end - before) % 2 === 1) return end + 1;
  }
}

/** The tokens of a JSON text, each with where it begins. */
function* tokens(json, pattern) {
  const place = new RegExp(pattern);
  for (let found; (found = place.exec(json)) !== null; ) {
    if (found[0] === '"') place.lastIndex = endOfText(json, found.index);
    yield [json.slice(found.index, place.lastIndex), found.index];
  }
}

/** A JSON text, indented, as `[kind, text]` pairs. */
function* indented(text) {
  const all = Array.from(tokens(text, TOKEN), ([token]) => token);
  let depth = 0;
  for (const [at, token] of all.entries()) {
    const next = all[at + 1];
    if (token === '{' || token === '[') {
      const empty = next === '}' || next === ']';
      depth += empty ? 0 : 1;
      yield ['mark', empty ? token : `${token}${line(depth)}`];
    } else if (token === '}' || token === ']') {
      const empty = ['{', '['].includes(all[at - 1]);
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

/** A JSON text as an element, indented, its parts in colours; what comes behind many of them is plain. */
export function json(text) {
  const [coloured, plain] = [[], []];
  for (const [kind, part] of indented(text)) {
    if (coloured.length === COLOURED_MAX) plain.push(part);
    else coloured.push(kind === 'mark' ? part : h('span', { class: kind }, part));
  }
  return h('pre', { class: 'json' }, coloured, plain.join(''));
}

/** What a JSON list has, or an object: the text of each element, of each member. */
export function elementsOf(text) {
  const elements = [];
  let depth = 0;
  let from = 0;
  for (const [mark, index] of tokens(text, MARK)) {
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

/** The name of a member of a JSON object, and the text of its value. */
function named(member) {
  const end = endOfText(member, 0);
  return [JSON.parse(member.slice(0, end)), member.slice(end).replace(/^\s*:\s*/, '')];
}

/** A JSON object's text without some of its own members. */
export function without(text, names) {
  return `{${elementsOf(text).filter((member) => !names.includes(named(member)[0])).join(',')}}`;
}

/** The text of a member of a JSON object; nothing where it has none of that name. */
export function memberOf(text, name) {
  return elementsOf(text).map(named).find(([itsName]) => itsName === name)?.[1];
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
