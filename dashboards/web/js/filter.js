// The filter of a feed as a form: each field is one option, is tried at the server by itself, and has its error under it.
// One that belongs to another (`of`) is tried with it.

import { ApiError, address, ask } from './api.js';
import { fill, h } from './dom.js';
import { notAnObject } from './json.js';

const FIELDS = [
  {
    name: 'selector',
    label: 'Selector',
    hint: 'conditions on the document, as in {"status": "new"}',
    input: () => h('textarea', { rows: 3, spellcheck: 'false', placeholder: '{"status": {"$in": ["new", "paid"]}}' }),
    options: (text) => ({ selector: text }),
    wrong: (text) => notAnObject(text, 'A selector'),
  },
  {
    name: 'doc_ids',
    label: 'Ids',
    hint: 'separated by commas or lines, or a JSON list',
    input: () => h('textarea', { rows: 3, spellcheck: 'false', placeholder: 'order-0001, order-0002' }),
    options: (text) => ({ doc_ids: text.startsWith('[') ? text : JSON.stringify(text.split(/[,\n]+/).map((id) => id.trim()).filter(Boolean)) }),
  },
  {
    name: 'prefix',
    label: 'Prefix',
    hint: 'how the ids begin',
    input: () => h('input', { type: 'text', spellcheck: 'false', placeholder: 'order-' }),
    options: (text) => ({ prefix: text }),
    // Blanks are part of ids.
    shorn: (text) => text,
  },
  {
    name: 'filter',
    label: 'Filter function',
    hint: 'of a design document, as design/name',
    input: () => h('input', { type: 'text', spellcheck: 'false', placeholder: 'design/name' }),
    options: (text) => ({ filter: text }),
  },
  {
    name: 'query',
    label: 'Query',
    hint: 'what the filter function gets as req.query',
    input: () => h('input', { type: 'text', spellcheck: 'false', placeholder: '{"owner": "ann"}' }),
    options: (text) => ({ query: text }),
    wrong: (text) => notAnObject(text, 'A query'),
    of: 'filter',
  },
  {
    name: 'view',
    label: 'Map function',
    hint: 'as design/view: passes what it emits for',
    input: () => h('input', { type: 'text', spellcheck: 'false', placeholder: 'design/view' }),
    options: (text) => ({ view: text }),
  },
];

export class Filter {
  /** `given`: options by name, as the address of the page has them; `applied(options)` is called with good ones. */
  constructor(database, given, applied) {
    Object.assign(this, { database, applied });
    this.fields = FIELDS.map((field) => new Field(field, given.get(field.name) ?? ''));
    const check = (name, label) => {
      const input = h('input', { type: 'checkbox', id: `option-${name}`, checked: given.get(name) === 'true' });
      return { name, input, element: h('label', { class: 'check' }, input, ' ', label) };
    };
    this.checks = [check('include_docs', 'with documents'), check('conflicts_only', 'only documents with conflicts')];
    this.general = h('p', { class: 'error', role: 'alert' });
    const form = h(
      'form',
      { class: 'filter', onsubmit: (event) => this.submitted(event) },
      h('div', { class: 'fields' }, this.fields.map((field) => field.element)),
      this.general,
      h(
        'div',
        { class: 'buttons' },
        h('div', { class: 'buttons' }, this.checks.map(({ element }) => element)),
        h('div', { class: 'buttons' }, h('button', { class: 'main' }, 'Apply'), h('button', { type: 'button', onclick: () => this.clear() }, 'Clear')),
      ),
    );
    const open = this.fields.some((field) => field.input.value) || given.get('conflicts_only') === 'true';
    this.element = h('details', { class: 'card', open }, h('summary', {}, 'Filter'), form);
  }

  /** What the fields say, as options of `_feed`. */
  options() {
    const options = Object.assign({}, ...this.fields.map((field) => field.options()));
    for (const { name, input } of this.checks) if (input.checked) options[name] = 'true';
    return options;
  }

  /** Applies what was tried, if it is good, whatever is typed meanwhile. What was tried last counts, whatever is answered last. */
  async submitted(event) {
    event?.preventDefault();
    const options = this.options();
    this.trying = options;
    if (await this.isGood(options)) this.applied(options);
  }

  clear() {
    this.fields.forEach((field) => field.set(''));
    this.submitted();
  }

  /** Tries each field by itself, then all together; says what is wrong where it is wrong, unless something else is tried by then. */
  async isGood(options) {
    const isLast = () => this.trying === options;
    const tries = new Map();
    for (const field of this.fields) tries.set(field, this.errorOf(field, options, tries));
    const complaints = this.fields.map(async (field) => {
      const error = await tries.get(field);
      return isLast() && field.complain(error);
    });
    const wrong = (await Promise.all(complaints)).some(Boolean);
    const all = wrong || !isLast() ? null : await this.tried(options);
    if (!isLast()) return false;
    this.general.textContent = all?.message ?? '';
    return !wrong && !all;
  }

  /** What is wrong with a field; with one whose owner is wrong, what can be seen without it. */
  async errorOf({ name, of, wrong }, options, tries) {
    if (!(name in options)) return null;
    const seen = wrong(options[name]);
    if (seen) return new Error(seen);
    if (await tries.get(this.fields.find((field) => field.name === of))) return null;
    const asked = [of, name].filter((each) => each in options);
    return this.tried(Object.fromEntries(asked.map((each) => [each, options[each]])));
  }

  /** Says what a function did wrong once it was asked; where there is none, it was not the filter. */
  failed(message) {
    const field = this.fields.find(({ name, input }) => ['filter', 'view'].includes(name) && input.value);
    field?.complain(new Error(message));
    this.element.open ||= Boolean(field);
    return Boolean(field);
  }

  async tried(options) {
    if (Object.keys(options).length === 0) return null;
    try {
      await ask('GET', address([this.database, '_feed'], { since: 'now', ...options, live: 'false' }));
      return null;
    } catch (error) {
      if (error instanceof ApiError) return error;
      return new Error('the server cannot be reached');
    }
  }
}

class Field {
  constructor({ name, label, hint, input, options, of, wrong = () => null, shorn = (text) => text.trim() }, text) {
    Object.assign(this, { name, of, make: options, wrong, shorn });
    this.input = input();
    const id = `field-${name}`;
    this.input.id = id;
    this.input.setAttribute('aria-describedby', `${id}-error ${id}-hint`);
    this.error = h('p', { class: 'error', id: `${id}-error`, role: 'alert' });
    this.element = h(
      'div',
      { class: 'field' },
      h('label', { for: id }, label),
      this.input,
      this.error,
      h('p', { class: 'hint', id: `${id}-hint` }, hint),
    );
    this.set(text);
  }

  set(text) {
    this.input.value = text;
  }

  options() {
    const text = this.shorn(this.input.value);
    return text ? this.make(text) : {};
  }

  complain(error) {
    fill(this.error, error?.message);
    if (error) this.input.setAttribute('aria-invalid', 'true');
    else this.input.removeAttribute('aria-invalid');
    return Boolean(error);
  }
}
