import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readHistory } from '../../bench/recall-data.js';

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'histories-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function written(name: string, content: unknown): Promise<string> {
  const file = join(folder, name);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, JSON.stringify(content));
  return file;
}

it('the bench reads conversations of LoCoMo', async () => {
  const file = await written('conv-1.json', {
    conversation: {
      session_1_date_time: '1:56 pm on 8 May, 2023',
      session_1: [
        { speaker: 'Ann', dia_id: 'D1:1', text: 'Hello!' },
        { speaker: 'Bob', dia_id: 'D1:2', text: 'Look', blip_caption: 'a boat' },
      ],
    },
    qa: [
      { question: 'What did Bob show?', evidence: ['D1:02; D9:1'], category: 4 },
      { question: 'What was never said?', evidence: ['D'], category: 5 },
    ],
  });
  const { set, name, told, asked } = await readHistory(file);
  expect([set, name]).toEqual(['LoCoMo', 'conv-1']);
  expect(told[1]).toEqual({
    ...{ id: 'D1:2', session: '1', author: 'Bob', byPersona: false },
    ...{ text: 'Look [image: a boat]', at: Date.UTC(2023, 4, 8, 13, 57) },
  });
  expect(asked).toEqual([
    {
      ...{ question: 'What did Bob show?', about: 'single-hop' },
      ...{ evidence: new Set(['D1:2']), sessions: new Set(['1']) },
    },
  ]);
});

it('the bench reads chats of REALTALK', async () => {
  const turn = {
    speaker: 'Ann',
    dia_id: 'D1:1',
    clean_text: 'Off to Bergen',
    date_time: '29.12.2023, 22:42:04',
  };
  const file = await written('Chat_1_Ann_Bob.json', {
    ...{ name: { speaker_1: 'Ann', speaker_2: 'Bob' }, events_session_1: {} },
    ...{ session_1: [turn], session_1_date_time: '29.12.2023, 22:42:04' },
    qa: [{ question: 'Where is Ann?', answer: 'Bergen', evidence: ['D1:1.'], category: 2 }],
  });
  const { set, told, asked } = await readHistory(file);
  expect(set).toBe('REALTALK');
  expect(told).toMatchObject([{ text: 'Off to Bergen', at: Date.UTC(2023, 11, 29, 22, 42, 4) }]);
  expect(asked).toMatchObject([{ about: 'temporal', evidence: new Set(['D1:1']) }]);
});

it('the bench reads chats of BEAM, with the questions beside them', async () => {
  await written('7/probing_questions/probing_questions.json', {
    abstention: [{ question: 'What was never said?' }],
    information_extraction: [{ question: 'When does it end?', source_chat_ids: [0] }],
    knowledge_update: [
      { question: 'How fast?', source_chat_ids: { original_info: [0], updated_info: [2, 99] } },
    ],
  });
  const file = await written('7/chat.json', [
    {
      turns: [
        [
          { role: 'user', id: 0, time_anchor: 'March-15-2024', content: 'It ends in May ->-> 1,1' },
          { role: 'assistant', id: 1, content: 'Noted.' },
        ],
        [{ role: 'user', id: 2, content: 'Now in June ->-> 1,2' }],
      ],
    },
  ]);
  const { set, name, told, asked } = await readHistory(file);
  expect([set, name]).toEqual(['BEAM', '7']);
  expect(told).toMatchObject([
    { id: '0', byPersona: false, text: 'It ends in May', at: Date.UTC(2024, 2, 15) },
    { id: '1', byPersona: true, text: 'Noted.', at: Date.UTC(2024, 2, 15, 0, 1) },
    { id: '2', byPersona: false, text: 'Now in June', at: Date.UTC(2024, 2, 15, 0, 2) },
  ]);
  expect(asked).toMatchObject([
    { about: 'information extraction', evidence: new Set(['0']) },
    { about: 'knowledge update', evidence: new Set(['0', '2']) },
  ]);
});
