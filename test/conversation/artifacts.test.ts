/** Artifacts that an answer holds: what people read, what they are sent, what the transcript keeps; and after a crash. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Artifacts } from '../../src/core/artifacts.js';
import { Fault } from '../../src/core/errors.js';
import type { Tool } from '../../src/core/tool.js';
import { writeArtifact } from '../../src/tools/sending.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

/** That the turn has it is what makes blocks artifacts; here it is never called. */
const TOOL = writeArtifact({
  artifacts: { write: async () => ({ ok: false, reason: 'not called' }) } as unknown as Artifacts,
  post: async () => 'posted',
}) as Tool<never>;

const block = (...deltas: object[]) =>
  `\`\`\`json\n${JSON.stringify({ artifact_deltas: deltas }, null, 2)}\n\`\`\``;
const REPORT = { id: 'report', title: 'The report', content: '# Report\n' };

async function begin(options: WorkbenchOptions = {}) {
  on = await workbench({ tools: [TOOL], ...options });
}
async function ask(answer: string, text = 'make it', more: object = {}) {
  on.answer(() => answer);
  await on.say(text, more);
  await on.settled();
}
const files = () => on.sent.flatMap(({ part }) => (part.file ? [part.file.name] : []));
const words = () => on.texts().filter((text) => text !== '');
/** What the model is shown of what it said. */
async function remembered() {
  on.answer(() => 'yes');
  await on.say('and?');
  await on.settled();
  return JSON.stringify(on.asked.at(-1)?.messages.filter(({ role }) => role === 'assistant'));
}

describe('an answer with a block', () => {
  beforeEach(() => begin());

  it('is its words, and then its files in order; the transcript keeps no content', async () => {
    const table = { id: 'table', type: 'text/csv', content: 'a,b' };
    await ask(`Here you are.\n\n${block(REPORT, table)}\n\nAnything else?`);
    expect(on.sent.map(({ part }) => part.file?.name ?? part.text)).toEqual([
      'Here you are.\n\nAnything else?',
      'report.md',
      'table.csv',
    ]);
    const [task = ''] = await readdir(join(on.folder, 'data/artifacts'));
    const folder = join(on.folder, 'data/artifacts', task);
    expect(await readFile(on.sent[1]?.part.file?.path ?? '', 'utf8')).toBe('# Report\n');
    expect(await readFile(join(folder, 'report.md'), 'utf8')).toBe('# Report\n');
    expect(on.audited).toContainEqual(
      expect.objectContaining({ kind: 'tool', what: 'artifact in an answer', word: 'test_1' }),
    );
    const told = await remembered();
    expect(told).toContain(
      'Here you are.\\n\\nAnything else?\\n[file: report.md, The report]\\n[file: table.csv]',
    );
    expect(told).not.toContain('# Report');
    expect(told).not.toContain('artifact_deltas');
  });

  it('and nothing else is its files; the transcript says what was made', async () => {
    await ask(block(REPORT));
    expect(on.sent).toHaveLength(1);
    expect(files()).toEqual(['report.md']);
    expect(await remembered()).toContain('[file: report.md, The report]');
  });

  it('in a group says which message it answers, once', async () => {
    const group = {
      chat: { address: '-5', kind: 'group', title: 'Us' },
      mentionsBot: true,
      platformMessageId: '77',
    };
    await ask(`Here.\n${block(REPORT)}`, 'make it', group);
    expect(on.sent.map(({ options }) => options.replyTo)).toEqual(['77', null]);
    await ask(block(REPORT), 'again', { ...group, platformMessageId: '78' });
    expect(on.sent.at(-1)?.options.replyTo).toBe('78');
  });

  it('that is malformed is words', async () => {
    const wrong = block({ id: '../../x', content: 'x' });
    await ask(wrong);
    expect(words()).toEqual([wrong]);
    expect(files()).toEqual([]);
    expect(await readdir(on.folder)).not.toContain('x');
  });

  it('that is malformed in part makes what is right, and says how much is not', async () => {
    await ask(`Here.\n${block({ id: '../x', content: 'x' }, REPORT, { id: 'notes' })}`);
    expect(files()).toEqual(['report.md']);
    expect(words()).toEqual([
      'Here.\n\nnotes\n\n_(1 more file could not be made: that part of my answer was malformed.)_',
    ]);
  });

  it('that refers to something tells where it is', async () => {
    await ask(block({ id: 'a', title: 'A page', ref: 'https://example.org/a' }, { id: 'b', ref: 'x/y' }));
    expect(words()).toEqual(['A page: https://example.org/a\n\nb: x/y']);
    expect(files()).toEqual([]);
  });

  it('with two of one id sends the last; two that differ in capitals alone are told apart by words', async () => {
    await ask(block(REPORT, { id: 'report', content: 'new' }, { id: 'Report', content: 'other' }));
    expect(files()).toEqual(['report.md']);
    expect(words()).toEqual([
      expect.stringMatching(/^_\(The file Report could not be made: there is an artifact/),
    ]);
  });

  it('sends no more than a turn may send, and says so', async () => {
    await ask(block(...[1, 2, 3, 4, 5, 6, 7].map((n) => ({ id: `f${n}`, content: 'x' }))));
    expect(files()).toEqual(['f1.md', 'f2.md', 'f3.md', 'f4.md', 'f5.md']);
    expect(words()).toEqual(['_(2 more files kept, but not sent: I may send 5 at once.)_']);
  });
});

it('where the turn may make no artifacts, a block is words', async () => {
  await begin({ tools: [] });
  const text = `Look:\n\n${block(REPORT)}`;
  await ask(text);
  expect(words()).toEqual([text]);
});

it('what the disk does not take is told, and the words are sent', async () => {
  const fault = new Fault('memory_unavailable', 'the disk is full');
  const artifacts = { write: () => Promise.reject(fault), find: async () => null } as unknown as Artifacts;
  await begin({ artifacts });
  await ask(`Here.\n${block(REPORT)}`);
  expect(words()).toEqual([`Here.\n\n_(The file report could not be made. ${fault.sentence})_`]);
  expect(files()).toEqual([]);
});

describe('a process that dies', () => {
  it('between the file and the end of the turn sends it once', async () => {
    let dying = true;
    await begin({
      around: (store) => ({
        ...store,
        finish: (finish) => (dying ? new Promise(() => {}) : store.finish(finish)),
      }),
    });
    on.answer(() => `Here.\n${block(REPORT)}`);
    await on.say('make it');
    const folder = join(on.folder, 'data/artifacts');
    await expect.poll(() => readdir(folder).catch(() => [])).toHaveLength(1);
    await expect
      .poll(async () =>
        (await readdir(folder, { recursive: true })).some((name) => name.endsWith('report.md')),
      )
      .toBe(true);
    expect(on.sent).toEqual([]);
    dying = false;
    const dead = on;
    on = await dead.die();
    on.answer(() => `Here.\n${block(REPORT)}`);
    await on.settled();
    await expect.poll(files).toEqual(['report.md']);
    expect(words()).toEqual(['Here.']);
    expect(await readdir(folder)).toHaveLength(1);
  });
});
