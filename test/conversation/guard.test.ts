/** Answers of characters end where somebody else would speak. */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { guarded } from '../../src/conversation/turn/guard.js';
import { type Workbench, workbench } from '../harness/conversation.js';

const GUARD = { names: ['Ann', 'Zoë van Dam', '{{user}}', '龙', ''], before: null };
const cut = (text: string) => guarded(text, GUARD);

describe('an answer', () => {
  it.each([
    ['Hello.\nAnn: Hi!\nMore', 'Hello.'],
    ['Hello.\n\n  **Ann:** Hi!', 'Hello.'],
    ['Hello.\n*ann*: Hi!', 'Hello.'],
    ['Hello.\n[Ann] : Hi!', 'Hello.'],
    ['Hello.\nANN： Hi!', 'Hello.'],
    ['Hello.\n{{user}}: Hi!', 'Hello.'],
    ['Hello.\n{{User}}: Hi!', 'Hello.'],
    ['Hello.\nZoe\u0308 van Dam: Hi!', 'Hello.'],
    ['Hello.\n龙：Hi!', 'Hello.'],
    ['Hello.\r\nAnn: Hi!', 'Hello.'],
    ['Ann: Hi!', ''],
  ])('%j ends before the line of somebody else', (text, expected) => {
    expect(cut(text)).toBe(expected);
  });

  it.each([
    'Hello Ann: you are here.',
    'Anna: that was her name.',
    'Ann, listen: go.',
    'I met Ann.\nAnn said: hi.',
    '> Ann: quoted',
    '```\nAnn: in code\n```\ndone',
    '~~~yaml\nAnn: in code',
    '````\n```\nAnn: in code\n````',
    '- Ann: in a list',
    '',
  ])('%j is left as it is', (text) => {
    expect(cut(text)).toBe(text);
  });

  it('goes on behind code', () => {
    expect(cut('```\nAnn: a\n```\nb\nAnn: c')).toBe('```\nAnn: a\n```\nb');
  });

  it('that grows never shows what is cut in the end', () => {
    const words = fc.array(fc.constantFrom('Ann', ':', '\n', ' ', '*', 'x', '```', 'An', '龙', '：', '['), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(words, (all) => {
        const text = all.join('');
        const end = cut(text);
        for (let n = 0; n <= text.length; n++) {
          const shown = guarded(text.slice(0, n), GUARD, true);
          expect(text.startsWith(shown)).toBe(true);
          expect(shown.trimEnd().length).toBeLessThanOrEqual(Math.max(end.length, end.trimEnd().length));
        }
      }),
    );
  });

  it.each(['\n', 'Ann', '*', '`', 'Ann\n', ' '])('of 200,000 characters of %j takes no time', (unit) => {
    const text = unit.repeat(200_000 / unit.length);
    const began = performance.now();
    guarded(text, GUARD, true);
    // In square time it would take minutes; a busy machine needs most of a second.
    expect(performance.now() - began).toBeLessThan(2_000);
  });
});

let on: Workbench;

async function answers(matter: string, ...replies: string[]) {
  on = await workbench();
  const path = join(on.folder, 'groups/test_1/default/PERSONA.md');
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `---\n${matter}\n---\nx\n`);
  const left = [...replies];
  on.answer(() => left.shift() ?? 'out of words');
}

async function say(text: string): Promise<string | undefined> {
  await on.say(text);
  await on.settled();
  return on.texts().at(-1);
}

describe('a persona with a card', () => {
  afterEach(() => on.close());

  it('does not speak for the person', async () => {
    await answers('card: luna.png', 'I wave.\nMira: I wave back.');
    expect(await say('hello')).toBe('I wave.');
    expect(on.asked).toHaveLength(1);
  });

  it('is asked once more if nothing is left, or it says the same again', async () => {
    await answers('card: luna.png', 'Mira: Hi.', 'Hello.', 'Hello.', 'Hello again.', 'Hello again.');
    expect(await say('hello')).toBe('Hello.');
    expect(await say('and?')).toBe('Hello again.');
    expect(on.asked).toHaveLength(4);
  });

  it('is not asked a third time', async () => {
    await answers('card: luna.png', 'Mira: a', 'Mira: b', 'Fine.', 'Same.', 'Same.', 'Same.');
    expect(await say('hello')).not.toContain('Mira:');
    expect(on.asked).toHaveLength(2);
  });

  it('speaks freely where its file says so, as those without a card do', async () => {
    await answers('card: luna.png\nguard: false', 'Mira: a');
    expect(await say('hello')).toBe('Mira: a');
    await on.close();
    await answers('name: default', 'Mira: a');
    expect(await say('hello')).toBe('Mira: a');
    await on.close();
    await answers('guard: true', 'Mira: a', 'b');
    expect(await say('hello')).toBe('b');
  });

  it('does not speak for another persona of the chat', async () => {
    await answers('card: luna.png', 'I nod.\nNova: I nod, too.', 'I nod.\nStar: I nod, too.');
    const path = join(on.folder, 'groups/test_1/nova/PERSONA.md');
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, '---\nname: Nova\n---\nx\n');
    await say('/persona invite nova');
    expect(await say('@default hello')).toBe('I nod.');
  });
});
