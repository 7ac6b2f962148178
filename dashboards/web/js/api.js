// The server that this page comes from, over its own HTTP interface.

/** The server's address; the page is one folder below it. */
export const server = new URL('../', document.baseURI);

/** An answer that is an error, in the server's words. */
export class ApiError extends Error {
  constructor(status, { error = 'error', reason = `the server answered ${status}` } = {}) {
    super(reason);
    this.status = status;
    this.error = error;
  }
}

/** An address of the server: path segments, which are escaped, and options; those without a value are left out. */
export function address(segments, options = {}) {
  const url = new URL(segments.map(segment).join('/'), server);
  for (const [name, value] of Object.entries(options)) {
    if (value !== null && value !== undefined && value !== '' && value !== false) url.searchParams.set(name, value);
  }
  return url;
}

/** A document's segments: the slash behind `_design` and `_local` is one, all others belong to the id. */
export function documentSegments(database, id) {
  const [, kind, name] = /^(_design|_local)\/(.*)$/s.exec(id) ?? [];
  return kind ? [database, kind, name] : [database, id];
}

/**
 * Asks the server and returns what it answers, parsed.
 *
 * Throws an `ApiError` for an error in its words, and a `TypeError` where it cannot be reached.
 */
export async function ask(method, url, { body, headers = {}, signal } = {}) {
  if (body !== undefined) headers = { ...headers, 'Content-Type': 'application/json' };
  headers = { Accept: 'application/json', ...headers };
  const sent = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
  const response = await fetch(url, { method, headers, body: sent, signal, cache: 'no-store' });
  const text = await response.text();
  if (!response.ok) throw new ApiError(response.status, parsed(text));
  return parsed(text);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

// A dot alone would be taken for a folder.
function segment(text) {
  return /^\.\.?$/.test(text) ? text.replaceAll('.', '%2E') : encodeURIComponent(text);
}
