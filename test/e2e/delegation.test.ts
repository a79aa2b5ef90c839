/**
 * A persona hands work to a sub-agent, with the real process on Telegram: the protocol as an owner wrote it into MEMORY.md
 * (seed 000) leads to a run, a report, and prose in the chat; whatever ends the process, the outcome is told once.
 */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import type { GuppiEvent, MattTurn } from '../../src/core/journal.js';
import type { ChatBody } from '../fakes/model.js';
import type { ModelScript } from '../fakes/model-script.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually } from '../harness/gateway.js';
import { journalOf } from '../harness/journal-shapes.js';
import { type Stage, stage } from '../harness/telegram.js';

const MEMORY = fileURLToPath(new URL('../fixtures/viap-memory.md', import.meta.url));
const CHAT = `telegram_${ANNA.id}`;
const TASK_ID = '2026-02-10T19:34:00-0800_evolver_workspace_001';
const TASK = {
  viap_version: '3',
  type: 'VIAP_V3_TASK',
  task_id: TASK_ID,
  title: 'Count the notes',
  goal: 'The number of notes is known and written to count.txt',
  instructions: ['Count them', 'Write the number to count.txt'],
};
const REPORT = {
  viap_version: '3',
  type: 'VIAP_V3_REPORT',
  task_id: TASK_ID,
  success: true,
  summary: 'There are 3 notes',
  steps: [{ what: 'counted' }],
  artifacts: [{ path: 'count.txt', description: 'the number', sha256: null }],
  next_actions: ['Tidy them up'],
};

let on: Stage;
afterEach(() => on.close());

async function delegating(agent: (body: ChatBody) => ModelScript | string | Promise<ModelScript | string>) {
  on = await stage({
    config: {
      access: { direct: 'open', owners: [CHAT] },
      tools: { allow: ['memory', 'agents', 'files', 'shell'], shell: { sandbox: 'none' } },
    },
  });
  await on.home.write(`groups/${CHAT}/default/MEMORY.md`, await readFile(MEMORY, 'utf8'));
  const told: string[] = [];
  on.model.reply((body) => {
    const isMain = body.tools?.some((tool) => tool.function.name === 'sessions_spawn');
    if (!isMain) return agent(body);
    const last = body.messages.at(-1);
    if (last?.role === 'tool') return 'I have asked for it.';
    const said = body.messages.findLast(({ role }) => role === 'user')?.content ?? '';
    if (said.includes('<task_completed')) {
      told.push(said);
      return said.includes('There are 3 notes') ? 'It is done: there are 3 notes.' : 'That came to nothing.';
    }
    if (!said.includes('count my notes')) return 'hello';
    expect(body.messages[0]?.content).toContain('VIAP v3');
    return {
      calls: [
        {
          name: 'sessions_spawn',
          arguments: { agentId: 'utility', task: `Here it is:\n\n${JSON.stringify(TASK)}` },
        },
      ],
    };
  });
  return told;
}

const journal = () => journalOf(on.home);

it('seed 000, as it stands in MEMORY.md, leads to a run, a report, and prose in the chat', async () => {
  const told = await delegating((body) => {
    const results = body.messages.filter(({ role }) => role === 'tool');
    if (results.length === 0) {
      return { calls: [{ name: 'shell', arguments: { command: 'echo 3 > count.txt && cat count.txt' } }] };
    }
    return `Done.\n\n\`\`\`json\n${JSON.stringify(REPORT, null, 2)}\n\`\`\``;
  });
  await on.start();
  on.telegram.say({ text: 'please count my notes' });
  await eventually(() => on.sentTo(ANNA.id).some((text) => text.includes('/approve ')), 'the owner is asked');
  const question = on.sentTo(ANNA.id).find((text) => text.includes('/approve ')) ?? '';
  expect(question).toContain('utility');
  expect(question).toContain('Count the notes');
  on.telegram.say({ text: `/approve ${/\/approve ([A-Z0-9]+)/.exec(question)?.[1]}` });
  await eventually(
    () => on.sentTo(ANNA.id).includes('It is done: there are 3 notes.'),
    'the outcome is told in prose',
  );
  expect(on.sentTo(ANNA.id).join('\n')).not.toContain('VIAP_V3_REPORT');
  expect(told).toHaveLength(1);
  expect(told[0]).toContain('count.txt');
  expect(told[0]).toContain('Tidy them up');

  const isWritten = async () =>
    journal().some((entry) => 'event_type' in entry && entry.event_type === 'TaskCompleted');
  await eventually(isWritten, 'the journal has it');
  const entries = journal();
  const spawn = entries.find(
    (entry): entry is MattTurn => entry.type === 'MattTurn' && entry.action.tool === 'sessions_spawn',
  );
  expect(spawn).toMatchObject({ status: 'completed', agent: 'default' });
  const command = entries.find(
    (entry): entry is MattTurn => entry.type === 'MattTurn' && entry.action.tool === 'shell',
  );
  expect(command).toMatchObject({
    agent: 'utility',
    status: 'completed',
    parent_event_id: expect.stringMatching(/^evt-\d+$/),
    results: { stdout: '3\n', code: 0 },
  });
  expect(command?.parent_event_id).toBe(spawn?.parent_event_id);
  const completed = entries.filter(
    (entry): entry is GuppiEvent => entry.type === 'GUPPIEvent' && entry.event_type === 'TaskCompleted',
  );
  expect(completed).toHaveLength(1);
  expect(completed[0]?.action_id).toBe(spawn?.id);
});

it('a run that the process did not survive is told once, and not run again', async () => {
  let asked = 0;
  const told = await delegating(() => {
    asked += 1;
    return new Promise(() => {});
  });
  const first = await on.start();
  on.telegram.say({ text: 'please count my notes' });
  await eventually(
    () => asked === 1 && on.sentTo(ANNA.id).includes('I have asked for it.'),
    'the run has begun',
  );
  await first.stop('SIGKILL');
  const second = await on.start();
  await eventually(() => on.sentTo(ANNA.id).includes('That came to nothing.'), 'it is told');
  await second.stop();
  const third = await on.start();
  on.telegram.say({ text: 'still there?' });
  await eventually(() => on.sentTo(ANNA.id).includes('hello'), 'life goes on');
  await third.stop();
  expect(told).toHaveLength(1);
  expect(asked).toBe(1);
  expect(on.sentTo(ANNA.id).filter((text) => text === 'That came to nothing.')).toHaveLength(1);
});
