import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import { fileChunks } from '../../src/recall/chunks.js';
import { begin, compileWorker, NOW, ROOM, SCOPE } from './support.js';

let worker: Awaited<ReturnType<typeof compileWorker>>;
beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());

const MEMORY = `# Memory

## Tier 1 — Long term
- Keeps bees

## Tier 2 — Mid term
### Garden
- Building a greenhouse

## Tier 3 — Short term
`;
const ARCHIVE = `---
persona: luna
messages: 2
---

# Conversation with Luna

## Ann · 2026-01-02 10:15 <!-- m7 -->

We saw a capercaillie
in the forest

## Luna · 2026-01-02 10:16 <!-- m8 -->

Splendid birds
`;

describe('files as chunks', () => {
  const zone = createZone('Europe/Berlin');
  it('are lines with their tier, of logs with the noon of their day', () => {
    const lines = [...fileChunks('luna/MEMORY.md', MEMORY, zone)];
    expect(lines.map(({ text, line, tier, at }) => [text, line, tier, at])).toEqual([
      ['- Keeps bees', 4, 1, null],
      ['### Garden', 7, 2, null],
      ['- Building a greenhouse', 8, 2, null],
    ]);
    const [log] = fileChunks('memory/2026-07-02.md', 'Met Bo\r\n', zone);
    expect(log).toMatchObject({ text: 'Met Bo', line: 1, tier: null, at: Date.UTC(2026, 6, 2, 10) });
  });
  it('are paragraphs of conversations that another program wrote down, at the time in their name', () => {
    const imported =
      '---\nchat: "telegram_42"\nflushed: true\n---\n\n## user\n\nWhere are\nthe figs?\n\nAnd why?\n\n---\n\n## assistant\n\nIn the attic.\n';
    const chunks = [...fileChunks('archive/2026-07-02T18-30-00-default.md', imported, zone)];
    const at = Date.UTC(2026, 6, 2, 16, 30);
    expect(chunks.filter(({ text }) => /\p{L}/u.test(text))).toMatchObject([
      { text: 'Where are\nthe figs?', author: 'user', message: null, at },
      { text: 'And why?', author: 'user', at },
      { text: 'In the attic.', author: 'assistant', at },
    ]);
  });
  it('have their day also where they were imported beside one', () => {
    for (const name of ['2026-07-02.imported.md', '2026-07-02.imported-3.md']) {
      expect([...fileChunks(`memory/${name}`, 'Met Bo', zone)]).toMatchObject([
        { text: 'Met Bo', at: Date.UTC(2026, 6, 2, 10) },
      ]);
    }
  });
  it('are messages of archives with author and time', () => {
    expect([...fileChunks('archive/2026-01-02T10-20-00-luna.md', ARCHIVE, zone)]).toMatchObject([
      {
        text: 'We saw a capercaillie\nin the forest',
        author: 'Ann',
        message: 7,
        at: Date.UTC(2026, 0, 2, 9, 15),
      },
      { text: 'Splendid birds', author: 'Luna', message: 8 },
    ]);
  });
  it('are cut where a line is too long, and none of it is lost', () => {
    const text = 'word 𠮷'.repeat(2_000);
    const chunks = [...fileChunks('memory/2026-07-02.md', text, zone)];
    expect(
      chunks
        .map((chunk) => chunk.text)
        .join('')
        .replace(/\s/g, ''),
    ).toBe(text.replace(/\s/g, ''));
    expect(chunks.every((chunk) => !/[\uD800-\uDBFF]$|^[\uDC00-\uDFFF]/.test(chunk.text))).toBe(true);
  });
});

describe('recall of files', () => {
  it('is of the very next search after a change, and of nobody else', async () => {
    const { files, find, recall } = await begin(worker.entry);
    files.put(SCOPE, 'luna/MEMORY.md', MEMORY);
    const { hits } = await recall.search(SCOPE, { text: 'bees', limit: 1, now: NOW });
    expect(hits[0]).toMatchObject({
      text: '- Keeps bees',
      at: null,
      source: { kind: 'file', file: 'luna/MEMORY.md', line: 4, tier: 1 },
    });
    files.put(SCOPE, 'luna/MEMORY.md', MEMORY.replace('bees', 'goats'));
    expect(await find('goats')).toContain('- Keeps goats');
    expect(await find('bees')).not.toContain('- Keeps bees');
    expect(await find('goats', { scope: { ...SCOPE, personaId: 'sol' } })).toEqual([]);
    expect(await find('goats', { scope: { ...SCOPE, chatId: 'telegram_1' } })).toEqual([]);
    files.remove(SCOPE, 'luna/MEMORY.md');
    expect(await find('goats')).toEqual([]);
  });

  it('finds what stands in an archive and not in the store, and what stands in both once', async () => {
    const { feed, files, indexed, find, recall } = await begin(worker.entry);
    for (let n = 0; n < 7; n++)
      feed.say({
        room: ROOM,
        heardBy: ['luna'],
        text: n === 6 ? 'We saw a capercaillie\nin the forest' : '.',
        at: Date.UTC(2026, 0, 2, 10, 15),
      });
    await indexed();
    files.put(SCOPE, 'archive/2026-01-02T10-20-00-luna.md', ARCHIVE);
    expect((await find('capercaillie')).filter((text) => text.includes('capercaillie'))).toHaveLength(1);
    const { hits } = await recall.search(SCOPE, { text: 'splendid', limit: 1, now: NOW });
    expect(hits[0]).toMatchObject({
      source: { kind: 'archive', author: 'Luna' },
      at: Date.UTC(2026, 0, 2, 10, 16),
    });
  });
});
