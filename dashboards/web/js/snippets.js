// What the page shows, as lines to try elsewhere.

import { address } from './api.js';
import { h, fill } from './dom.js';

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

const FORMS = {
  curl: (url) => `curl -N -H 'Accept: text/event-stream' \\\n  ${quoted(url.href)}`,
  EventSource: (url) => `const feed = new EventSource(
  ${JSON.stringify(url.href)});

feed.onmessage = ({ data, lastEventId }) => {
  const row = JSON.parse(data);
  console.log(lastEventId, row.id, row);
};`,
  WebSocket: (url) => {
    const socket = new URL(url);
    socket.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
    return `const feed = new WebSocket(
  ${JSON.stringify(socket.href)});

feed.onmessage = ({ data }) => {
  for (const row of JSON.parse(data)) {
    console.log(row.seq, row.id ?? row.event, row);
  }
};`;
  },
};

/** A card with the snippets of a feed; `show(database, options)` says of which. */
export class Snippets {
  constructor() {
    this.parts = Object.keys(FORMS).map((name) => {
      const code = h('pre', { tabindex: 0, role: 'region', 'aria-label': `${name} snippet` });
      const copied = h('span', { class: 'hint', role: 'status' });
      const copy = async () => {
        await navigator.clipboard.writeText(code.textContent);
        fill(copied, 'copied');
        setTimeout(() => fill(copied), 2000);
      };
      const button = h('button', { type: 'button', onclick: copy, 'aria-label': `Copy the ${name} snippet` }, 'Copy');
      return { name, code, element: h('div', { class: 'snippet' }, h('div', { class: 'head' }, h('h3', {}, name), h('div', { class: 'buttons' }, copied, button)), code) };
    });
    this.element = h('details', { class: 'card' }, h('summary', {}, 'The same in curl, EventSource and WebSocket'), h('div', { class: 'snippets' }, this.parts.map(({ element }) => element)));
  }

  show(database, options) {
    const url = address([database, '_feed'], options);
    this.parts.forEach(({ name, code }) => fill(code, FORMS[name](url)));
  }
}
