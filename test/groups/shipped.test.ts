/** The library that comes with the product: every file is read without a complaint, and the lorebooks join when they should. */
import { cp, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Lorebook } from '../../src/core/lorebook.js';
import { createLorebooks } from '../../src/groups/lorebooks.js';
import { readPersonaFile } from '../../src/groups/persona-file.js';
import { createPersonas } from '../../src/groups/personas.js';
import { scanned } from '../conversation/lore/books.js';
import { quietLog } from '../harness/quiet.js';

const SHIPPED = fileURLToPath(new URL('../../groups/personas', import.meta.url));
const CHAT = 'telegram_7';
const COMPANIONS = ['bram', 'pim', 'wren'];
let groupsDir: string;
beforeAll(async () => {
  groupsDir = await mkdtemp(join(tmpdir(), 'coterie-shipped-'));
  await cp(SHIPPED, join(groupsDir, 'personas'), { recursive: true });
  await mkdir(join(groupsDir, CHAT));
});
afterAll(() => rm(groupsDir, { recursive: true, force: true }));

it('every persona is read without a fault', async () => {
  const files = (await readdir(SHIPPED)).filter((name) => name.endsWith('.md'));
  expect(files.length).toBeGreaterThanOrEqual(9);
  for (const file of files) {
    const { faults, character } = readPersonaFile(await readFile(join(SHIPPED, file), 'utf8'));
    expect(faults, file).toEqual([]);
    expect(character, file).not.toBe('');
  }
});

describe.each(COMPANIONS)('%s', (id) => {
  const booksOf = () => createLorebooks(groupsDir, quietLog).booksFor(CHAT, { id, from: null });

  it('greets, has examples and a reminder, and never speaks for the person in them', async () => {
    const personas = createPersonas({ groupsDir, log: quietLog, clock: { now: () => 0 } });
    const made = await personas.create(CHAT, id, null);
    if (!made.ok) throw new Error(made.reason);
    const { greeting, groupGreetings, parts, guard, talkativeness } = made.persona;
    expect(greeting).toContain('{{user}}');
    expect(groupGreetings.join()).not.toContain('{{user}}');
    expect(guard).toBe(true);
    expect(talkativeness).toBeGreaterThan(0);
    expect(parts.examples.match(/<START>\n\{\{user\}\}: .+\n\{\{char\}\}: .+/g)).toHaveLength(3);
    expect(parts.reminder).not.toBe('');
  });

  it('has a lorebook whose every entry joins by its keys, and none by an everyday sentence', async () => {
    const { own, others } = await booksOf();
    expect(others).toEqual([]);
    const book = own as Lorebook;
    expect(book.entries.length).toBeGreaterThanOrEqual(5);
    expect(book.entries.filter(({ constant }) => constant)).toHaveLength(1);
    for (const { name, keys, secondaryKeys, constant, content } of book.entries) {
      if (constant) continue;
      for (const key of keys) {
        const text = [key, ...secondaryKeys.slice(0, 1)].join(' and ');
        const texts = (await scanned([book], [text])).matches.map((match) => match.entry);
        expect(texts, `${name} by ${key}`).toContain(book.entries.findIndex((each) => each.name === name));
      }
      expect(content.split(/\s+/).length, name).toBeLessThan(80);
    }
    const everyday =
      'Good morning! The education of warm maples takes furniture, clocks and a great deal of towels.';
    expect((await scanned([book], [everyday])).matches).toEqual([]);
  });
});
