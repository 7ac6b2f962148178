// A question that has to be answered before anything happens.

import { h } from './dom.js';

/** Asks; resolves to whether it was confirmed. Escape is no, and so are leaving the page and another question. */
export function confirmed({ title, text, yes }) {
  dismiss();
  return new Promise((resolve) => {
    const heading = h('h2', { id: 'dialog-title' }, title);
    const buttons = h('div', { class: 'buttons' }, h('button', { value: '' }, 'Cancel'), h('button', { value: 'yes', class: 'main' }, yes));
    const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, h('form', { method: 'dialog' }, heading, h('p', {}, text), buttons));
    dialog.addEventListener('close', () => {
      dialog.remove();
      resolve(dialog.returnValue === 'yes');
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

/** Answers a question that is open with no. */
export function dismiss() {
  document.querySelector('dialog[open]')?.close();
}
