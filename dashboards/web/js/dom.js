// Elements from names, attributes and children. Text is always text: nothing here takes markup.

const SVG = 'http://www.w3.org/2000/svg';
const SVG_NAMES = new Set(['svg', 'g', 'path', 'circle', 'rect', 'line', 'title']);

/**
 * Makes an element. Of its properties, `onclick` and the like are listeners, `class` and `aria-…` are attributes, and
 * one that is `false`, `null` or `undefined` is left out. Children are nodes, text, or lists of them.
 */
export function h(name, properties = {}, ...children) {
  const element = SVG_NAMES.has(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (key.startsWith('on')) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

/** Puts children in the place of all there were. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** The same, but children that are there already and stay in their order are not touched: one that is put in loses a click, and the focus. */
export function refill(element, children) {
  const wanted = new Set(children);
  for (const child of [...element.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, at) => {
    const there = element.children[at];
    if (child !== there) element.insertBefore(child, there ?? null);
  });
}

/** Says a text if it is another one than before, so that a screen reader is not told twice. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** One by one: a call has no room for the arguments that a large document's parts are. */
function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}
