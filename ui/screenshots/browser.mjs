// Opens the built window in Debian's chromium with a fixture behind it.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

import { mock } from './mock.mjs';

export async function launch() {
  const candidates = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const executablePath = candidates.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error('chromium is not installed (Debian: apt-get install chromium), or name it in CHROMIUM');
  return chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--force-color-profile=srgb', '--hide-scrollbars=false'],
    env: { ...process.env, FONTCONFIG_FILE: fileURLToPath(new URL('fonts.conf', import.meta.url)) },
  });
}

export async function open(browser, url, fixture, { width = 960, height = 640, dark = false, text = 1, still = true, settle = 250, patience } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: still ? 'reduce' : 'no-preference',
  });
  const page = await context.newPage();
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(String(error)));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) page.faults.push(message.text());
  });
  const { act, open: place, run, ...told } = fixture;
  // As the app has it: see freezePrototype in its configuration.
  await page.addInitScript(() => Object.freeze(Object.prototype));
  await page.addInitScript(mock, told);
  await page.goto(url);
  await page.locator('.app').waitFor();
  // As a person's setting of twice the text size arrives: at the root.
  if (text !== 1) await page.evaluate((size) => (document.documentElement.style.fontSize = `${size}%`), 87.5 * text);
  if (place || run) await page.evaluate(([to, id]) => window.__mock.emit('navigate', { page: to, run_id: id ?? null }), [place, run]);
  await page.waitForTimeout(Math.min(150, settle));
  if (patience !== undefined) page.setDefaultTimeout(patience);
  // Where nothing waits for long, what cannot be pressed is a fault like any other.
  if (act) await act(page).catch((error) => {
    if (patience === undefined) throw error;
    page.faults.push(String(error).split('\n', 1)[0]);
  });
  await page.waitForTimeout(settle);
  return page;
}
