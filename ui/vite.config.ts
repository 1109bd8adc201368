import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  plugins: [svelte()],
  clearScreen: false,
  // Tests of state run Svelte as the window does, not as a server would.
  ...(process.env['VITEST'] ? { resolve: { conditions: ['browser'] } } : {}),
  server: { port: 1420, strictPort: true, host: '127.0.0.1' },
  build: {
    target: 'es2022',
    // Nothing is inlined as data: into styles or scripts, so that the content security policy stays short.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
});
