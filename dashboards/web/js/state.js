// How a stream stands, in words, and the line on a page that says it.

import { h, say } from './dom.js';
import { counted, duration } from './format.js';

/** What a state is called; some have more to say. */
const STATES = {
  connecting: 'connecting',
  live: 'live',
  lagging: ({ rows, seconds }) => `behind by ${counted(rows, 'row')}${seconds === null ? '' : `, ${duration(seconds)}`}`,
  draining: 'the server is about to stop',
  stopped: 'the server has stopped, trying again',
  lost: 'connection lost, trying again',
  away: 'resting while nobody looks',
  failed: (why) => `ended: ${why}`,
  paused: 'paused',
};

/** Shows how a stream stands on an element. */
export function showState(element, state, detail) {
  const words = STATES[state];
  element.dataset.state = state;
  say(element, typeof words === 'function' ? words(detail) : words);
}

/**
 * The line that says how a stream stands, which a screen reader reads out when it has time; once the stream has ended,
 * a button beside it calls `again()`.
 */
export class StateLine {
  constructor(again) {
    this.words = h('p', { class: 'state', role: 'status' });
    this.button = h('button', { type: 'button', hidden: true, onclick: again }, 'Follow again');
    this.element = h('div', { class: 'standing' }, this.words, this.button);
  }

  show(state, detail) {
    showState(this.words, state, detail);
    this.button.hidden = state !== 'failed';
  }
}
