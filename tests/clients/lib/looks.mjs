// How a page is for everybody, at three widths and in both themes: by axe, without a mouse, without scrolling sideways, and
// as a picture for who wants to look at it (`SEQTIDE_SCREENSHOTS` names the folder).

import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { openPage } from './browser.mjs';
import { outOfReach } from './keyboard.mjs';

const axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const shots = process.env.SEQTIDE_SCREENSHOTS;

/** Widths in pixels, each with the theme that a page has as it opens, and the one it is switched to. */
const WIDTHS = [
  [1280, ['light', 'dark']],
  [768, ['dark', 'light']],
  [390, ['light', 'dark']],
];

/** One test for each width of a page (as for `openPage`), which is looked at in both themes once `use(page)` has used it. */
export function looks(name, { place, file }, use) {
  for (const [width, themes] of WIDTHS) {
    test(`${name}, ${width} pixels wide`, async (t) => {
      const page = await openPage(t, place, { file, theme: themes[0], width });
      await use(page);
      await page.evaluate(axe);
      for (const theme of themes) {
        await page.emulateMedia({ colorScheme: theme });
        if (shots) {
          await mkdir(shots, { recursive: true });
          await page.evaluate(() => scrollTo(0, 0));
          await page.screenshot({ path: `${shots}/${name}-${width}-${theme}.png`, fullPage: true });
        }
        const { violations } = await page.evaluate(() => globalThis.axe.run({ resultTypes: ['violations'] }));
        const faults = violations.map(({ id, impact, nodes }) => `${theme}, ${impact} ${id}: ${nodes.map(({ html }) => html).join('\n  ')}`);
        assert.deepEqual(faults, []);
      }
      const beyond = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(beyond <= 0, `the page is ${beyond} pixels wider than the window`);
      assert.deepEqual(await outOfReach(page), []);
    });
  }
}
