import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { TracedStep } from '../../src/core/tracing.js';
import { summaryOf } from '../../src/delegation/end.js';
import { journalOf } from '../contract/store/words.js';
import { BOUNDS, delegated, PARENT, reportOf, type Stage, stage, until } from './support.js';

const block = (content: string) =>
  `\`\`\`json\n${JSON.stringify({
    artifact_deltas: [
      { id: 'report', content },
      { id: 'page', ref: 'https://a.example/' },
    ],
  })}\n\`\`\``;

describe('the result of a program’s task', () => {
  let here: Stage;
  beforeEach(async () => {
    here = await stage();
    here.runner.start();
  });
  afterEach(() => here.remove());

  it('holds references to what its answer made, and no block of it', async () => {
    const id = await here.submit('write');
    (await here.requests(1))[0]?.answers(`It is written.\n\n${block('# All')}`);
    expect((await here.end(id)).result).toEqual({
      ...{ text: 'It is written.', summary: 'It is written.' },
      artifactRefs: [
        { id: 'page', ref: 'https://a.example/' },
        { id: 'report', ref: `artifacts/${id}/report.txt` },
      ],
    });
  });

  it('leaves out what is malformed, and what is only named and not there', async () => {
    const given = { id: 'notes', title: 'Notes', ref: 'https://a.example/notes' };
    const id = await here.submit('write', { artifacts: [given] });
    const items = [
      { id: '../x', content: 'x' },
      { id: 'report', content: '# All' },
      { id: 'notes' },
      { id: 'none' },
    ];
    const answer = `It is written.\n\n\`\`\`json\n${JSON.stringify({ artifact_deltas: items, more: 1 })}\n\`\`\``;
    (await here.requests(1))[0]?.answers(answer);
    expect((await here.end(id)).result).toEqual({
      ...{ text: 'It is written.', summary: 'It is written.' },
      artifactRefs: [given, { id: 'report', ref: `artifacts/${id}/report.txt` }],
    });
  });

  it('keeps the words of a block that could not be written', async () => {
    const id = await here.submit('write');
    (await here.requests(1))[0]?.answers(`It is written.\n\n${block('refused')}`);
    expect((await here.end(id)).result?.text).toContain('artifact_deltas');
  });

  it('is in the journal as an event of its own', async () => {
    const id = await here.submit('say');
    (await here.requests(1))[0]?.answers('Said.');
    await here.end(id);
    const entries = (await journalOf(here.store)).map(({ entry }) => entry);
    expect(entries).toContainEqual(
      expect.objectContaining({
        ...{ event_type: 'TaskCompleted', agent: 'utility' },
        content: { status: 'success', task_id: id, summary: 'Said.' },
      }),
    );
  });
});

describe('a task as it is told for traces', () => {
  it('is told once, by who ends it, with the turn that gave it', async () => {
    const told: TracedStep[] = [];
    const here = await stage({ tracing: { tell: (step) => void told.push(step) } });
    await here.store.addTask(delegated('mine'), BOUNDS);
    here.runner.start();
    const [asked] = await here.requests(1);
    await here.clock.advance(5_000);
    asked?.answers(reportOf('mine'));
    await here.end('mine');
    await until(() => told.length > 0);
    await here.remove();
    expect(told).toEqual([
      {
        ...{ kind: 'turn', turnId: 'mine', agent: 'utility', outcome: 'completed', error: undefined },
        ...{ answers: [], givenBy: PARENT.turnId, from: expect.any(Number), until: expect.any(Number) },
      },
    ]);
    expect((told[0]?.until ?? 0) - (told[0]?.from ?? 0)).toBe(5_000);
  });
});

describe('a summary', () => {
  it('is the first sentence or line, without marks, and no longer than 200 characters', () => {
    expect(summaryOf('\n## All is well\n\nMore.')).toBe('All is well');
    expect(summaryOf('Version 1.2 is out. More.')).toBe('Version 1.2 is out.');
    expect(summaryOf('')).toBe('');
    expect(summaryOf('🙂'.repeat(300)).length).toBeLessThanOrEqual(200);
  });
});
