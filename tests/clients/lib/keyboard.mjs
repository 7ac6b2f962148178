// A page without a mouse.

import assert from 'node:assert/strict';

/** More often than this nobody presses Tab. */
const PRESSES_MAX = 300;

/** Presses Tab until an element has the focus. */
export async function tabTo(page, locator) {
  await locator.waitFor();
  for (let presses = 0; presses < PRESSES_MAX; presses += 1) {
    if (await locator.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not come to ${locator}`);
}

/** Goes to a control by Tab and uses it by a key. */
export async function press(page, locator, key = 'Enter') {
  await tabTo(page, locator);
  await page.keyboard.press(key);
}

/** Goes through a page by Tab once. Gives the controls that it does not come to, and those that are covered, or show nothing, when it does. */
export async function outOfReach(page) {
  const all = await page.evaluate(() => {
    const nameOf = (element) => `${element.localName} ${element.getAttribute('aria-label') ?? (element.textContent.trim() || element.id)}`;
    globalThis.focusedNow = () => {
      const element = document.activeElement;
      if (element === document.body) return null;
      const box = element.getBoundingClientRect();
      const x = (Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2;
      const y = (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2;
      const there = document.elementFromPoint(x, y);
      const isSeen = there !== null && (element.contains(there) || there.contains(element));
      return { name: nameOf(element), isSeen, isMarked: getComputedStyle(element).outlineStyle !== 'none' };
    };
    const controls = 'a[href], button:enabled, input:enabled, textarea:enabled, select:enabled, summary, [tabindex="0"]';
    const within = document.querySelector('dialog[open]') ?? document.body;
    return [...within.querySelectorAll(controls)].filter((element) => element.checkVisibility({ visibilityProperty: true })).map(nameOf);
  });
  const reached = new Map();
  let first = null;
  for (let presses = 0; presses < PRESSES_MAX; presses += 1) {
    await page.keyboard.press('Tab');
    const now = await page.evaluate(() => globalThis.focusedNow());
    if (now === null) continue;
    if (now.name === first && all.every((name) => reached.has(name))) break;
    first ??= now.name;
    reached.set(now.name, now);
  }
  const missed = all.filter((name) => !reached.has(name)).map((name) => `${name}: not reached`);
  const covered = [...reached.values()].filter(({ isSeen }) => !isSeen).map(({ name }) => `${name}: covered`);
  const unmarked = [...reached.values()].filter(({ isMarked }) => !isMarked).map(({ name }) => `${name}: does not show that it has the focus`);
  return [...missed, ...covered, ...unmarked];
}
