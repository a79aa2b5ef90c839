import { existsSync, writeFileSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileUpdater } from '../../src/core/write-whole.js';
import { groupsFolder } from '../groups/support.js';

describe('fileUpdater', () => {
  it('does a change again that an editor came before, and loses nothing', async () => {
    const folder = await groupsFolder();
    const file = join(folder, 'a.md');
    await writeFile(file, 'a');
    let edits = 0;
    await fileUpdater()(file, (current) => {
      // Somebody saves the file between our reading and our writing.
      if (edits < 3) writeFileSync(file, `${current}${++edits}`);
      return Buffer.from(`${current}!`);
    });
    expect(await readFile(file, 'utf8')).toBe('a123!');
    expect(await readdir(folder)).toEqual(['a.md']);
  });

  it('gives up on a file that never stands still, and says so', async () => {
    const file = join(await groupsFolder(), 'a.md');
    let edits = 0;
    const endless = fileUpdater()(file, () => {
      writeFileSync(file, String(++edits));
      return Buffer.from('x');
    });
    await expect(endless).rejects.toThrow(/keeps changing/);
    expect(await readFile(file, 'utf8')).toBe(String(edits));
  });

  it('does one change of a file after the other, also after one that failed', async () => {
    const file = join(await groupsFolder(), 'sub', 'a.md');
    const update = fileUpdater();
    const append = (text: string) => update(file, (current) => Buffer.from(`${current ?? ''}${text}`));
    const failing = update(file, () => {
      throw new Error('no');
    });
    const all = Promise.all([append('a'), append('b'), append('c')]);
    await expect(failing).rejects.toThrow('no');
    await all;
    expect(await readFile(file, 'utf8')).toBe('abc');
  });

  it('passes over what a crash left behind, and writes nothing where nothing changes', async () => {
    const folder = await groupsFolder();
    const file = join(folder, 'a.md');
    await writeFile(join(folder, `.a.md.${process.pid}-1.tmp`), 'left over');
    const update = fileUpdater();
    await update(file, () => Buffer.from('x'));
    expect(await readFile(file, 'utf8')).toBe('x');
    const other = join(folder, 'b.md');
    await update(other, () => null);
    expect(existsSync(other)).toBe(false);
  });
});
