// What a program gives: with anything else the server would be asked for ever for what cannot be had.

const shown = (value) => (typeof value === 'string' ? JSON.stringify(value) : String(value));

function parsed(url) {
  try {
    return new URL(url);
  } catch {
    return null;
  }
}

/** The address of a server, in the one form that all who mean it have. */
export function serverUrl(url) {
  const { protocol, username, password, href } = parsed(url) ?? {};
  if (!['http:', 'https:'].includes(protocol)) {
    throw new TypeError(`a server has a URL such as http://127.0.0.1:5984, not ${shown(url)}`);
  }
  if (username !== '' || password !== '') {
    throw new TypeError('a URL has no user and no password, which `fetch` refuses there: give them in `headers`, as `Authorization`');
  }
  if (/[?#]/.test(href)) throw new TypeError("a server's URL has no query and no fragment: what is asked for comes behind it");
  return href.replace(/\/+$/, '');
}

const SETTINGS = ['heartbeat', 'headers', 'fetch', 'shared'];

/** In milliseconds. The `fetch` of Node.js gives up an answer of which nothing comes for 300 s. */
const HEARTBEAT_MAX = 240_000;

/** How a server is asked: headers in any form that `fetch` takes, which become one that goes to a worker too. */
export function settings({ heartbeat, headers, ...given }) {
  const unknown = Object.keys(given).find((name) => !SETTINGS.includes(name));
  if (unknown !== undefined) throw new TypeError(`there is no setting ${unknown}: there are ${SETTINGS.join(', ')}`);
  if (heartbeat !== undefined && !(Number.isInteger(heartbeat) && heartbeat >= 1 && heartbeat <= HEARTBEAT_MAX)) {
    throw new TypeError(`a heartbeat is a whole number of milliseconds from 1 to ${HEARTBEAT_MAX}, not ${shown(heartbeat)}`);
  }
  return { ...given, heartbeat, headers: headers && Object.fromEntries(new Headers(headers)) };
}

/** What a database is followed with: functions, a storage, and what the server is asked for, which is sent as JSON. */
export function options(given) {
  const { onRow, onState, onEvent, storage, ...asked } = given;
  for (const [name, called] of Object.entries({ onRow, onState, onEvent })) {
    if (called !== undefined && typeof called !== 'function') throw new TypeError(`${name} is a function, not ${shown(called)}`);
  }
  if ('heartbeat' in asked) throw new TypeError('the heartbeat is the connection\'s: it is a setting of `new Seqtide`');
  const unknown = Object.keys(asked).find((name) => typeof asked[name] === 'function');
  if (unknown !== undefined) throw new TypeError(`no function of the name ${unknown} is called: there are onRow, onState and onEvent`);
  try {
    JSON.stringify(asked);
  } catch (error) {
    throw new TypeError(`what is asked for must be what JSON has: ${error.message}`);
  }
  return given;
}

/** The name of a database. Whether there is one the server says. */
export function databaseName(db) {
  if (typeof db !== 'string') throw new TypeError(`a database is followed by its name, a text such as "orders", not ${shown(db)}`);
  return db;
}
