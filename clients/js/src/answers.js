// What a server's answers say: whether, why and for how long it refuses.

import { millis } from './waits.js';

/** Whether a server has something against what it is asked for: against one subscription, which may be among many. */
export const isAboutWhatIsAsked = ({ status }) => [400, 413].includes(status);

/** Whether a server that answers so may answer otherwise soon. What it has not (501) it will not have then. */
export const isPassing = ({ status }) => [408, 425, 429].includes(status) || (status >= 500 && status !== 501);

/** In how many milliseconds to come back by what an answer says: a number of seconds, or a date. 0 where it does not say. */
export function retryAfter({ headers }) {
  const said = headers.get('retry-after');
  return millis(said * 1000, 0) || millis(Date.parse(said) - Date.now(), 0);
}

/** Whether a redirect has made a GET of the POST of a change, which is all that is refused so. */
export const isGetOfRedirect = ({ redirected, status }) => redirected && status === 405;

/** What is to be said of an answer that a redirect led to: `fetch` follows one without a word. */
export function behindRedirect({ redirected, url }) {
  if (!redirected) return '';
  const server = url.replace(/\/_feed\/[^/]*$/, '');
  return ` (a redirect led to ${server}: give that address, as only 307 and 308 leave a POST what it is)`;
}

/** What the whole of an answer says that refuses something. It may be that of a proxy, which has no words of a Seqtide server. */
export async function refusal(answer) {
  const { status, statusText } = answer;
  const { error = 'refused', reason = statusText || `the answer is ${status}` } = (await answer.json().catch(() => null)) ?? {};
  return { error, reason: reason + behindRedirect(answer), status };
}
