// `npm run screenshots [STATE...]` takes a picture of every state into ui/shots; `npm run test:window` tries the window.

import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

import { launch, open } from './browser.mjs';
import { states } from './fixtures.mjs';
import { spilled } from './judge.mjs';
import { serve } from './serve.mjs';
import { trials } from './trials.mjs';

const VARIANTS = {
  light: {},
  dark: { dark: true },
  narrow: { width: 720, height: 520 },
  'narrow-dark': { width: 720, height: 520, dark: true },
  small: { width: 900, height: 600 },
  large: { width: 1600, height: 1000 },
  'large-dark': { width: 1600, height: 1000, dark: true },
  'text-200': { text: 2 },
  'narrow-text-200': { width: 720, height: 520, text: 2, dark: true },
};

const [mode, ...names] = process.argv.slice(2);
const browser = await launch();
const server = await serve();
let failed = 0;
try {
  if (mode === 'shoot') await shoot();
  else failed = await trials(browser, server.url, names, chart);
} finally {
  await browser.close();
  server.close();
}
process.exitCode = failed > 0 ? 1 : 0;

async function shoot() {
  const folder = fileURLToPath(new URL('../shots/', import.meta.url));
  const wanted = names.filter((name) => !(name in VARIANTS));
  const variants = names.filter((name) => name in VARIANTS);
  for (const [state, fixture] of Object.entries(states(await chart()))) {
    if (wanted.length > 0 && !wanted.includes(state)) continue;
    for (const [variant, size] of Object.entries(VARIANTS)) {
      if (variants.length > 0 && !variants.includes(variant)) continue;
      await mkdir(`${folder}${variant}`, { recursive: true });
      const page = await open(browser, server.url, fixture, size);
      await page.screenshot({ path: `${folder}${variant}/${state}.png` });
      page.faults.push(...(await page.evaluate(spilled)));
      for (const fault of page.faults) console.error(`${variant}/${state}: ${fault}`);
      failed += page.faults.length;
      await page.context().close();
    }
    console.log(state);
  }
}

/** A chart as a program might have drawn it. */
async function chart() {
  const page = await browser.newPage({ viewport: { width: 640, height: 360 } });
  const points = Array.from({ length: 24 }, (_, hour) => `${60 + hour * 24},${200 - 110 * Math.sin((hour - 8) / 3.8)}`).join(' ');
  const lines = [80, 140, 200, 260].map((y) => `<path d="M60 ${y}h552" stroke="#ddd"/>`).join('');
  await page.setContent(
    `<style>body{margin:0}</style><svg width="640" height="360" font-family="sans-serif" font-size="12">
    <rect width="640" height="360" fill="white"/>${lines}<text x="60" y="30" font-size="15">Mean temperature by hour</text>
    <polyline points="${points}" fill="none" stroke="#1f77b4" stroke-width="2.5"/><path d="M60 50v270h552" fill="none" stroke="#444"/>
    <text x="300" y="345">hour of the day</text></svg>`,
  );
  const png = await page.screenshot();
  await page.close();
  return png.toString('base64');
}
