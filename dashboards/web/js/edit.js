// A document's text while it is changed.

import { fill, h, say } from './dom.js';
import { json, notAnObject } from './json.js';

export class Edit {
  /** Of a text that goes on from the revision `base`, of which there is none for a new document. */
  constructor({ text, base, save, leave }) {
    Object.assign(this, { text, base, save });
    this.area = h('textarea', { rows: 16, spellcheck: 'false', 'aria-label': 'Body as JSON', 'aria-describedby': 'edit-error' });
    this.area.value = text;
    this.error = h('p', { class: 'error', id: 'edit-error', role: 'alert' });
    this.meanwhile = h('div', {});
    const keys = (event) => {
      if (event.key === 'Escape') leave();
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) save();
    };
    const buttons = h('div', { class: 'buttons' }, h('button', { class: 'main' }, 'Save'), button('Cancel', leave), h('span', { class: 'hint' }, 'Ctrl Enter saves, Escape leaves'));
    this.parts = [
      h('h2', {}, base ? ['Edit ', h('span', { class: 'mono' }, base)] : 'New document'),
      h('form', { class: 'edit', onkeydown: keys, onsubmit: (event) => (event.preventDefault(), save()) }, this.meanwhile, this.area, this.error, buttons),
    ];
  }

  /** What it says by now. */
  get value() {
    return this.area.value;
  }

  /** Whether something was written that is not saved. */
  get isUnsaved() {
    return this.value !== this.text;
  }

  get isBeingSaved() {
    return this.area.readOnly;
  }

  /** Whether it knows that this is the winner: it goes on from there, or has said so. */
  knows(winner) {
    return [this.base, this.told].includes(winner);
  }

  /** Whether its text can be saved; it says what is wrong with it otherwise. */
  isFit() {
    const wrong = notAnObject(this.value, 'A document');
    this.complain(wrong ?? '');
    if (wrong) {
      this.area.setAttribute('aria-invalid', 'true');
      this.area.focus();
    } else {
      this.area.removeAttribute('aria-invalid');
    }
    return !wrong;
  }

  complain(text) {
    say(this.error, text);
  }

  /** What is being saved is not changed until the answer is there: it would be another text that is there in the end. */
  async hold(answer) {
    this.area.readOnly = true;
    try {
      return await answer;
    } finally {
      this.area.readOnly = false;
    }
  }

  /** Somebody else was quicker, or a write before this edit: both texts are there, and one of three ways to go on is chosen. */
  overtaken({ winner, theirs, deleted, isOwn }) {
    this.told = winner;
    const done = deleted ? 'deleted' : 'changed';
    const mine = () => {
      this.goOnFrom(winner);
      this.save();
    };
    const take = () => {
      this.goOnFrom(winner);
      this.area.value = this.text = theirs;
      this.area.focus();
    };
    fill(
      this.meanwhile,
      h(
        'div',
        { class: 'meanwhile', role: 'alert' },
        h('p', {}, h('b', {}, isOwn ? `You ${done} it yourself.` : `It was ${done} meanwhile.`), ' The newest revision is ', h('span', { class: 'mono' }, winner ?? 'none'), '. What you wrote is still here.'),
        theirs && h('details', { open: true }, h('summary', {}, 'What it says now'), json(theirs)),
        h('div', { class: 'buttons' }, button('Save mine over it', mine), theirs && button(isOwn ? 'Go on from that' : 'Go on from theirs', take)),
      ),
    );
  }

  goOnFrom(winner) {
    this.base = winner;
    fill(this.meanwhile);
  }
}

const button = (label, act) => h('button', { type: 'button', onclick: act }, label);
