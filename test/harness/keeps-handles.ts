/**
 * Node 24 aborts when a native handle of better-sqlite3 is collected. The gateway keeps its own (`core/v8.ts`); this keeps those that
 * tests open themselves, with the statements that the library makes for a pragma. For Node 24 and later (`vitest.config.ts`).
 */
import { createRequire } from 'node:module';
import Database from 'better-sqlite3';
import { keepHandle } from '../../src/core/v8.js';

const { cppdb } = createRequire(import.meta.url)('better-sqlite3/lib/util') as { cppdb: symbol };
const first = keepHandle(new Database(':memory:'));
const native = Object.getPrototypeOf((first as unknown as Record<symbol, object>)[cppdb]);
for (const name of ['prepare', 'backup', 'close']) {
  const make = native[name];
  native[name] = function keeping(this: object, ...parts: unknown[]) {
    keepHandle(this);
    const made = make.apply(this, parts);
    return typeof made === 'object' && made !== null ? keepHandle(made) : made;
  };
}
first.close();
