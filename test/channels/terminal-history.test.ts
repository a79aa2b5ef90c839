import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadHistory, saveHistory } from '../../src/channels/terminal/prompt.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-history-'));
});
afterEach(() => rm(folder, { recursive: true }));

describe('the history of typed lines', () => {
  it('comes back newest first', async () => {
    const file = join(folder, 'data/history');
    await saveHistory(file, ['third', 'second', 'first']);
    expect(await readFile(file, 'utf8')).toBe('first\nsecond\nthird\n');
    expect(await loadHistory(file)).toEqual(['third', 'second', 'first']);
  });

  it('keeps no line with words that were to be forgotten, nor the command that names them', async () => {
    const file = join(folder, 'history');
    await saveHistory(file, ['yes', '/memory forget "Blue  Door"', 'the BLUE door is mine', 'a blue wall']);
    expect(await loadHistory(file)).toEqual(['yes', 'a blue wall']);
  });
});
