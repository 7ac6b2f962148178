// What holds of every page of the dashboard: it asks no other host for anything, runs
// without errors, and keeps to its Content-Security-Policy.

import assert from 'node:assert/strict';
import { after } from 'node:test';
import { launch } from './chromium.mjs';
import { serverUrl } from './server.mjs';

let browser = null;
after(() => browser?.close());

/**
 * Opens a page of the dashboard by what stands behind the `#` of its address, or another file that comes with it; the end
 * of the test looks it over.
 */
export async function openPage(t, place = '/', { origin = serverUrl, file = '', width = 1280, height = 900, theme = 'light' } = {}) {
  browser ??= await launch();
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const faults = [];
  page.on('pageerror', (error) => faults.push(error.stack ?? String(error)));
  page.on('console', (message) => {
    // That the server is away, or refuses something, is what tests do to a page.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource')) faults.push(message.text());
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(`${origin}/`)) faults.push(`a request to another host: ${request.url()}`);
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(faults, []);
  });
  await page.goto(`${origin}/_dashboard/${file}#${place}`);
  return page;
}

/**
 * Holds back what a page asks for, where `which(url)` is true, for as long as a test likes, and gives the list of what is held: `send()`
 * lets it be answered, and resolves when the page has the answer. The page waits for it: by itself it would ask again after 5 s.
 */
export async function hold(page, which) {
  await page.evaluate(() => (AbortSignal.timeout = () => new AbortController().signal));
  const held = [];
  await page.route(which, (route) => {
    const send = async () => {
      await route.continue();
      await (await route.request().response()).finished();
      // It had its answer before the answer to this.
      await page.evaluate(() => fetch('../_up'));
    };
    held.push({ route, send });
  });
  return held;
}

/** Waits until a part of the page has a text, or one that matches. */
export async function sees(page, selector, text) {
  await page.locator(selector).filter({ hasText: text }).first().waitFor();
}
