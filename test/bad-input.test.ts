/** The table of bad inputs names tests that are there. */
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { expect, test } from 'vitest';

const ROW = /^\|(.*)\|([^|]*)\|\s*$/;

/** The files named in the second column: `e2e/kills`, or `channels/*-inbound` for several. */
function named(table: string): string[] {
  const cells = table.split('\n').flatMap((line) => ROW.exec(line)?.[2] ?? []);
  return cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name));
}

const fits = (name: string, file: string) => {
  const pattern = name.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '[^/]*');
  return new RegExp(`^${pattern}(\\.alone)?(\\.test)?\\.ts$`).test(file);
};

test('every test that BAD-INPUT.md names is a file', async () => {
  const files = await readdir(import.meta.dirname, { recursive: true });
  const names = named(readFileSync(new URL('BAD-INPUT.md', import.meta.url), 'utf8'));
  expect(names.length).toBeGreaterThan(100);
  expect(names.filter((name) => !files.some((file) => fits(name, file)))).toEqual([]);
});

test('a name that leads nowhere would be found', () => {
  expect(named('| a | b |\n| x `y` | `e2e/no-such`, `channels/*-in` |')).toEqual([
    'e2e/no-such',
    'channels/*-in',
  ]);
  expect(fits('channels/*-in', 'channels/a-in.test.ts')).toBe(true);
  expect(fits('channels/*-in', 'channels/a-out.test.ts')).toBe(false);
});
