/** What a turn recalls by itself: which of what was found is worth a line of the prompt. */
import { describe, expect, it } from 'vitest';
import { recollect } from '../../src/conversation/context/recollection.js';
import type { Services } from '../../src/conversation/services.js';
import { createZone } from '../../src/core/dates.js';
import type { Recalled, RecallQuery } from '../../src/core/recall.js';
import type { StoredMessage } from '../../src/core/transcript.js';
import { NO_RECALL } from '../harness/no-recall.js';
import { quietLog } from '../harness/quiet.js';

const ROOM = 'telegram_1';
const AT = Date.UTC(2026, 2, 4, 10, 15);
const SCOPE = { chatId: ROOM, personaId: 'default' };

function said(text: string, relevance = 0.9): Recalled {
  const source = { kind: 'message', room: ROOM, messageId: 1, author: 'Ann', own: false } as const;
  return { text, at: AT, source, relevance };
}

function noted(text: string): Recalled {
  return { text, at: null, source: { kind: 'file', file: 'MEMORY.md', line: 3, tier: 1 }, relevance: 0.9 };
}

async function lines(
  question: string,
  found: Recalled[],
  shown = '',
  before: string[] = [],
  searched: RecallQuery[] = [],
): Promise<string[]> {
  const message: StoredMessage = {
    ...{ id: 9, room: ROOM, author: { kind: 'person', id: ROOM, name: 'Ann', administrator: false } },
    ...{ text: question, sentAt: AT, receivedAt: AT, platformMessageId: null, mentionsBot: false },
    ...{ replyTo: null, edited: false, turnId: null },
  };
  const recall = {
    ...NO_RECALL,
    search: async (_: unknown, query: RecallQuery) => {
      searched.push(query);
      return { hits: found.slice(0, query.limit), by: 'keywords' as const };
    },
  };
  const services = { recall, zone: createZone('UTC'), log: quietLog } as unknown as Services;
  const earlier = before.map((text) => ({ ...message, text }));
  const recollection = await recollect(services, SCOPE, [message], earlier, shown, { now: AT });
  return recollection.lines;
}

describe('what is recalled', () => {
  it('has a line each, with the day and who said it', async () => {
    expect(await lines('What does Clara play?', [said('Clara plays the bassoon.')])).toEqual([
      '- 2026-03-04 10:15, Ann: Clara plays the bassoon.',
    ]);
  });

  it('is not that the same was asked before: the answer has its place', async () => {
    const asked = ['What does Clara play?', 'what does clara play', ' What does  Clara play ?!'];
    const often = Array.from({ length: 8 }, (_, n) => said(asked[n % asked.length] ?? ''));
    const found = await lines('What does Clara play?', [...often, said('Clara plays the bassoon.')]);
    expect(found).toEqual(['- 2026-03-04 10:15, Ann: Clara plays the bassoon.']);
  });

  it('is not what stands in the prompt anyway, nor what hardly fits', async () => {
    const found = [noted('- Clara plays.'), noted('- She is in Lisbon.'), said('Clara called.', 0.19)];
    expect(await lines('Clara?', found, '# Memory\n- Clara plays.\n')).toEqual([
      '- - She is in Lisbon. (MEMORY.md, tier 1)',
    ]);
  });

  it('is the best there is for a plain question, and for a remark only what is certain', async () => {
    const found = [said('Our dog Rex chewed the sofa.', 0.15), said('The dog next door barks.', 0.05)];
    expect(await lines('What is my dog called?', found)).toEqual([
      '- 2026-03-04 10:15, Ann: Our dog Rex chewed the sofa.',
    ]);
    expect(await lines('shall we cook spaghetti', [said('We had spaghetti.', 0.6)])).toEqual([]);
    expect(await lines('I saw the dog', [said('Our dog Rex', 0.95)])).toHaveLength(1);
  });

  it('is what was told once of what a remark is about, and no flood of it', async () => {
    const once = (text: string) => ({ ...said(text, 0.1), rare: true });
    const found = [once('Clara moved to Bergen.'), said('We had spaghetti.', 0.6), once('b'), once('c')];
    expect(await lines("I'm visiting Clara tomorrow", found)).toEqual([
      '- 2026-03-04 10:15, Ann: Clara moved to Bergen.',
      '- 2026-03-04 10:15, Ann: b',
    ]);
  });

  it('is nothing for small talk, which is not even searched with', async () => {
    const searched: RecallQuery[] = [];
    expect(await lines('good night :)', [said('Good night')], '', [], searched)).toEqual([]);
    expect(searched).toEqual([]);
  });

  it('stands in order of time, an answer with its question', async () => {
    const asked = { ...said('What shall we call the boat?', 0.1), at: AT - 60_000 };
    const answer = { ...said('Albatross!', 0.8), answers: asked };
    const earlier = { ...said('We bought a boat.', 0.7), at: AT - 86_400_000 };
    expect(await lines('What is the boat called?', [answer, earlier])).toEqual([
      '- 2026-03-03 10:15, Ann: We bought a boat.',
      '- 2026-03-04 10:14, Ann: What shall we call the boat?',
      '- 2026-03-04 10:15, Ann: Albatross!',
    ]);
  });

  it('is searched with what was said just before, where the question goes on from it', async () => {
    const searched: RecallQuery[] = [];
    const before = ['long ago', 'Do you remember Agnes?', 'Yes, of the orchestra.'];
    await lines('and where does she live?', [], '', before, searched);
    await lines('Which of my friends plays the bassoon in Lisbon?', [], '', before, searched);
    expect(searched.map(({ text, around }) => [text, around])).toEqual([
      ['and where does she live?', before.join('\n')],
      ['Which of my friends plays the bassoon in Lisbon?', undefined],
    ]);
  });

  it('is eight lines and 3,000 characters at most; what is too long leaves room for the next', async () => {
    const short = Array.from({ length: 12 }, (_, n) => said(`Clara, number ${n}.`));
    expect(await lines('Clara?', short)).toHaveLength(8);
    const long = Array.from({ length: 4 }, (_, n) => said(`${n}${'x'.repeat(900)}`));
    const found = await lines('Clara?', [...long, said('short')]);
    expect(found).toHaveLength(4);
    expect(found.at(-1)).toContain('short');
    expect(found.join('\n').length).toBeLessThanOrEqual(3_000);
  });
});
