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

/** Whether what was refused with this may be had later: the server is busy, or a proxy's server is away. */
export const isPassing = ({ status }) => [429, 502, 503, 504].includes(status);

/** An address of the server: path segments, which are escaped, and options; those without a value are left out. */
export function address(segments, options = {}) {
  const url = new URL(segments.map(encodeURIComponent).join('/'), server);
  for (const [name, value] of Object.entries(options)) {
    if (value !== null && value !== undefined && value !== '' && value !== false) url.searchParams.set(name, value);
  }
  return url;
}

/** How long an answer may take: a connection may have died without a word. Who only reads asks again, over another one. */
const READING_MS = 5000;
const READING_ATTEMPTS = 3;
const WRITING_MS = 30_000;

/**
 * Asks the server and returns what it answers, parsed. `reads`: whether it changes nothing there.
 *
 * Throws an `ApiError` for an error in its words, and another error where it cannot be reached or does not answer.
 */
export async function ask(method, url, { body, reads } = {}) {
  const sent = typeof body === 'string' || body === undefined ? body : JSON.stringify(body);
  return parsed(await askText(method, url, { body: sent, reads }));
}

/** The same, as text. */
export async function askText(method, url, { body, reads = method === 'GET' } = {}) {
  const headers = { Accept: 'application/json', ...(body !== undefined && { 'Content-Type': 'application/json' }) };
  for (let attempt = 1; ; attempt += 1) {
    const signal = AbortSignal.timeout(reads ? READING_MS : WRITING_MS);
    try {
      const response = await fetch(url, { method, headers, body, signal, cache: 'no-store' });
      const text = await response.text();
      if (!response.ok) throw new ApiError(response.status, parsed(text));
      return text;
    } catch (error) {
      if (error.name !== 'TimeoutError') throw error;
      if (!reads) throw new Error('the server has not answered: look whether it was written');
      if (attempt === READING_ATTEMPTS) throw new Error('the server does not answer');
    }
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}
