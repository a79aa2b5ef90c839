/**
 * The real process, killed at each point of a task's way from its call to what its persona tells. The agent's command
 * appends a line to a file: never twice. The person hears of the outcome once, or the model knows that its call was cut
 * off; nothing goes on running, and the journal is whole. Whoever ends it, a program's task is not run again by itself.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { EventSource } from 'eventsource';
import { afterEach, expect, it } from 'vitest';
import type { JournalEntry, MattTurn } from '../../src/core/journal.js';
import { listen } from '../fakes/http-server.js';
import type { ChatBody } from '../fakes/model.js';
import type { ModelScript } from '../fakes/model-script.js';
import { ANNA } from '../fakes/telegram-chats.js';
import { eventually, type Running } from '../harness/gateway.js';
import { journalOf } from '../harness/journal-shapes.js';
import { type Stage, stage } from '../harness/telegram.js';

const CHAT = `telegram_${ANNA.id}`;
const KILL_AT = fileURLToPath(new URL('../harness/kill-at.mjs', import.meta.url));
const TASK = {
  ...{ viap_version: '3', type: 'VIAP_V3_TASK', task_id: 'notes-1', title: 'Count the notes' },
  ...{ goal: 'The number of notes is known', instructions: ['Count them'] },
};
const REPORT = {
  ...{ viap_version: '3', type: 'VIAP_V3_REPORT', task_id: 'notes-1', success: true },
  ...{ summary: 'There are 3 notes', steps: [{ what: 'counted' }], artifacts: [], next_actions: [] },
};
const DONE = 'It is done: there are 3 notes.';
const NOTHING = 'That came to nothing.';
/** Says that the first process is to end here, and nothing more. */
type Here = 'in the command' | 'in the turn';

interface Point {
  name: string;
  kill: { at: 'statement' | 'commit'; sql: string; values?: string; when?: 'before' | 'after' } | Here;
  /** How often the command has run. */
  lines: 0 | 1;
  /** How the record of the command ends, and of the call that gave the task. */
  command: MattTurn['status'] | null;
  call: MattTurn['status'];
  /** What the person hears of the outcome; null: there was no task. */
  told: string | null;
}

const ADDED = 'insert into task (';
const RUNNING = JSON.stringify('"status":"running"').slice(1, -1);
const ENDED = 'update task set status = @status';
const CUT_OFF = { call: 'interrupted', told: NOTHING } as const;
const WHOLE = { lines: 1, command: 'completed', call: 'completed', told: DONE } as const;

const POINTS: Point[] = [
  {
    name: 'before the task is stored',
    kill: { at: 'statement', sql: ADDED, when: 'before' },
    ...{ lines: 0, command: null, call: 'interrupted', told: null },
  },
  {
    name: 'after it is stored, before what the call says of it is',
    kill: { at: 'commit', sql: ADDED },
    ...WHOLE,
  },
  {
    name: 'when it has been claimed',
    kill: { at: 'commit', sql: 'insert into task_event', values: RUNNING },
    ...{ lines: 0, command: null, ...CUT_OFF },
  },
  {
    name: 'in a command of the agent',
    kill: 'in the command',
    ...{ lines: 1, command: 'interrupted', ...CUT_OFF },
  },
  {
    name: 'between the answer of the agent and the end',
    kill: { at: 'statement', sql: ENDED, when: 'before' },
    ...{ lines: 1, command: 'completed', ...CUT_OFF },
  },
  {
    name: 'in the transaction that ends it',
    kill: { at: 'statement', sql: ENDED, when: 'after' },
    ...{ lines: 1, command: 'completed', ...CUT_OFF },
  },
  { name: 'after it, before the turn of the persona', kill: { at: 'commit', sql: ENDED }, ...WHOLE },
  { name: 'in the turn of the persona', kill: 'in the turn', ...WHOLE },
];

let on: Stage;
afterEach(() => on.close());

it.each(POINTS)(
  'killed $name: the command ran $lines times, the call is $call',
  async ({ kill, lines, command, call, told }) => {
    on = await stage({
      config: {
        access: { direct: 'open', owners: [CHAT] },
        tools: { allow: ['agents', 'files', 'shell'], shell: { sandbox: 'none' } },
      },
    });
    const pidFile = join(on.home.folder, 'pid');
    const side = join(on.home.folder, 'side.txt');
    const outcomes: string[] = [];
    const answers: string[] = [];
    let gateway = on.launch(typeof kill === 'object' ? hookOf(kill) : {});
    await on.home.write('pid', String(gateway.pid));
    let isToDie = kill === 'in the turn';
    const asAgent = ({ messages }: ChatBody): ModelScript | string => {
      if (messages.some(({ role }) => role === 'tool')) return JSON.stringify(REPORT);
      const end = kill === 'in the command' ? `; kill -9 $(cat '${pidFile}')` : '';
      return { calls: [{ name: 'shell', arguments: { command: `echo line | tee -a '${side}'${end}` } }] };
    };
    on.model.reply(async (body) => {
      if (!body.tools?.some((tool) => tool.function.name === 'sessions_spawn')) return asAgent(body);
      const last = body.messages.at(-1);
      if (last?.role === 'tool') {
        answers.push(last.content ?? '');
        return 'I have asked for it.';
      }
      const said = body.messages.findLast(({ role }) => role === 'user')?.content ?? '';
      if (said.includes('<task_completed')) {
        if (isToDie) {
          isToDie = false;
          await gateway.stop('SIGKILL');
        } else outcomes.push(said);
        return said.includes('There are 3 notes') ? DONE : NOTHING;
      }
      if (!said.includes('count my notes')) return 'hello';
      const given = { agentId: 'utility', task: JSON.stringify(TASK) };
      return { calls: [{ name: 'sessions_spawn', arguments: given }] };
    });
    const approved = new Set<string>();
    /** What is asked meanwhile is approved. */
    const until = (look: () => boolean, what: string) =>
      eventually(() => {
        for (const [, id = ''] of on
          .sentTo(ANNA.id)
          .join('\n')
          .matchAll(/\/approve ([A-Z0-9]+)/g)) {
          if (!approved.has(id)) on.telegram.say({ text: `/approve ${id}` });
          approved.add(id);
        }
        return look();
      }, what);
    let isDead = false;
    void gateway.exited.then(() => {
      isDead = true;
    });
    on.telegram.say({ text: 'please count my notes' });
    await until(() => isDead, 'the process is killed');
    gateway = await on.start();
    const sent = () => on.sentTo(ANNA.id);
    await until(
      () => sent().includes('I have asked for it.') && (told === null || sent().includes(told)),
      'the end is told',
    );
    on.telegram.say({ text: 'still there?' });
    await eventually(() => sent().includes('hello'), 'life goes on');
    const tasks = await tasksOf(gateway);
    expect(await gateway.stop()).toBe(0);

    expect(tasks.map(({ status }) => status)).toEqual(
      told === null ? [] : [told === DONE ? 'completed' : 'interrupted'],
    );
    expect(existsSync(side) ? readFileSync(side, 'utf8') : '').toBe('line\n'.repeat(lines));
    expect(outcomes).toHaveLength(told === null ? 0 : 1);
    expect(sent().filter((text) => text === DONE || text === NOTHING)).toEqual(told === null ? [] : [told]);
    // What it knows of its call is true: it gives no task again that was given.
    expect(answers).toEqual([expect.stringMatching(told === null ? /^Interrupted: / : /^Accepted: /)]);
    expect(called('sessions_spawn')).toEqual([call]);
    expect(called('shell')).toEqual(command === null ? [] : [command]);
    expect(journal().filter(isTaskCompleted)).toHaveLength(told === null ? 0 : 1);
    expect(journal().filter((entry) => entry.type === 'MattTurn' && entry.status === 'pending')).toEqual([]);
  },
  30_000,
);

it('a program whose task was killed is told so, and the same key starts it anew; what was waiting is run', async () => {
  on = await stage({ config: { access: { direct: 'open', owners: [CHAT] } } });
  const begun: string[] = [];
  let isHanging = true;
  on.model.reply((body) => {
    const goal = body.messages.findLast(({ role }) => role === 'user')?.content ?? '';
    begun.push(goal);
    return isHanging ? new Promise(() => {}) : `done: ${goal}`;
  });
  const first = await on.start();
  const keys = Array.from({ length: 9 }, (_, k) => `k${k}`);
  const ids: string[] = [];
  for (const key of keys) ids.push((await submit(first, key)).id);
  await eventually(() => begun.length === 8, 'eight run');
  await first.stop('SIGKILL');
  isHanging = false;
  const second = await on.start();
  const stateOf = async () => new Map((await tasksOf(second)).map(({ id, status }) => [id, status]));
  await eventually(async () => (await stateOf()).get(ids[8] ?? '') === 'completed', 'what waited has run');
  const states = await stateOf();
  expect(ids.map((id) => states.get(id))).toEqual([...Array(8).fill('interrupted'), 'completed']);
  expect(begun).toHaveLength(9);
  const again = await submit(second, 'k0');
  expect(again.id).not.toBe(ids[0]);
  await eventually(async () => (await stateOf()).get(again.id) === 'completed', 'the new run is done');
  expect((await submit(second, 'k0')).id).toBe(again.id);
  expect((await submit(second, 'k8')).id).toBe(ids[8]);
  expect(await second.stop()).toBe(0);
  expect(begun).toHaveLength(10);
  expect(called('task').sort()).toEqual([...Array(2).fill('completed'), ...Array(8).fill('interrupted')]);
}, 30_000);

it('a client that follows a task goes on after the gateway was killed, and asks no more after the end', async () => {
  const free = await listen(createServer());
  const port = Number(new URL(free.url).port);
  await free.close();
  on = await stage({ config: { access: { direct: 'open', owners: [CHAT] }, board: { port } } });
  let isHanging = true;
  let asked = 0;
  on.model.reply(() => {
    asked += 1;
    return isHanging ? new Promise(() => {}) : 'done';
  });
  const first = await on.start();
  const running = await submit(first, 'k');
  await eventually(() => asked === 1, 'it runs');
  const source = new EventSource(`${await first.url()}/api/tasks/${running.id}/stream`);
  const heard: string[] = [];
  for (const name of ['status', 'text-delta', 'completed', 'stopped', 'error']) {
    source.addEventListener(name, (event) => {
      if ('data' in event) heard.push(`${name} ${JSON.parse(String(event.data)).status ?? ''}`);
    });
  }
  let refusals = 0;
  source.onerror = ({ message }) => {
    if (message?.includes('ECONNREFUSED')) refusals += 1;
  };
  await eventually(() => heard.includes('status running'), 'it is followed');
  await first.stop('SIGKILL');
  await eventually(() => refusals > 0, 'it asks while nobody is there');
  isHanging = false;
  const second = await on.start();
  await eventually(() => source.readyState === EventSource.CLOSED, 'it asks no more');
  expect(heard).toEqual(['status pending', 'status running', 'status interrupted', 'error interrupted']);
  expect(await second.stop()).toBe(0);
}, 30_000);

function hookOf(kill: object): Record<string, string> {
  return { NODE_OPTIONS: `--import ${KILL_AT}`, KILL_AT: JSON.stringify(kill) };
}

async function tasksOf(gateway: Running): Promise<{ id: string; status: string }[]> {
  const response = await fetch(`${await gateway.url()}/api/tasks`);
  return ((await response.json()) as { tasks: { id: string; status: string }[] }).tasks;
}

async function submit(gateway: Running, key: string): Promise<{ id: string; status: string }> {
  const response = await fetch(`${await gateway.url()}/api/tasks`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ goal: `the goal of ${key}`, idempotency_key: key }),
  });
  expect(response.status).toBe(202);
  return (await response.json()) as { id: string; status: string };
}

const journal = () => journalOf(on.home);

function called(tool: string): MattTurn['status'][] {
  return journal().flatMap((entry) =>
    entry.type === 'MattTurn' && entry.action.tool === tool ? [entry.status] : [],
  );
}

function isTaskCompleted(entry: JournalEntry): boolean {
  return entry.type === 'GUPPIEvent' && entry.event_type === 'TaskCompleted';
}
