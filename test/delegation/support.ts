/** A runner on a real store, with stand-ins for what other folders implement, and work that a test does by hand. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ArtifactRef, Artifacts } from '../../src/core/artifacts.js';
import { createZone } from '../../src/core/dates.js';
import type { RoomId } from '../../src/core/ids.js';
import type { Personas } from '../../src/core/persona.js';
import type { Skills } from '../../src/core/skills.js';
import type { Store } from '../../src/core/store.js';
import type {
  AgentDefinition,
  Agents,
  NewTask,
  SessionLine,
  TaskParent,
  TaskProgress,
  Tasks,
  Work,
  WorkAsk,
  WorkEnd,
} from '../../src/core/task.js';
import type { Tracing } from '../../src/core/tracing.js';
import type { Clipboard, Workspace } from '../../src/core/workspace.js';
import type { TaskServices } from '../../src/delegation/end.js';
import { createRunner, type Runner } from '../../src/delegation/runner.js';
import { createFollowers, createTasks } from '../../src/delegation/tasks.js';
import { createMetrics } from '../../src/operating/metrics.js';
import { message } from '../contract/store/words.js';
import { manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';
import { openMade } from '../store/place.js';

export const OWNER = 'gateway';
export const AGENT: AgentDefinition = {
  ...{ id: 'utility', model: null, prompt: 'You are useful.', tools: ['files', 'shell'] },
  ...{ timeoutMinutes: null, maxRounds: null },
};
export const PARENT: TaskParent = {
  ...{ chatId: 'test_1', room: 'test_1', personaId: 'default', turnId: 'turn', callId: 'call' },
  ...{ senderId: 'test_ann', tainted: false },
};

/** A request that waits for the test to end it. */
export interface Asked {
  ask: WorkAsk;
  signal: AbortSignal;
  answers(text: string): void;
  fails(end: Extract<WorkEnd, { kind: 'failed' }>['fault']): void;
}

export interface Stage {
  store: Store;
  clock: ReturnType<typeof manualClock>;
  tasks: Tasks;
  runner: Runner;
  parts: TaskServices;
  /** Of requests that are under way, in the order in which they came. */
  asked: Asked[];
  /** The rooms that were woken. */
  fired: RoomId[];
  session(id: string): SessionLine[];
  /** Resolves when so many requests were made in all. */
  requests(count: number): Promise<Asked[]>;
  submit(
    goal: string,
    more?: { idempotencyKey?: string; agent?: string; artifacts?: ArtifactRef[] },
  ): Promise<string>;
  /** Resolves when it is over. */
  end(id: string): Promise<NonNullable<Awaited<ReturnType<Store['task']>>>>;
  remove(): Promise<void>;
}

export async function stage(
  more: { agents?: AgentDefinition[]; work?: Work; file?: string; tracing?: Tracing } = {},
): Promise<Stage> {
  const place = await openMade();
  const store = await place.open();
  await store.receive({
    ...{ channel: 'test', account: 'one', now: 0 },
    receipts: [message('1', 'hello')],
  });
  return on(store, { ...more, folder: place.folder, remove: place.remove });
}

export async function on(
  store: Store,
  given: {
    folder: string;
    remove(): Promise<void>;
    agents?: AgentDefinition[];
    work?: Work;
    stubborn?: boolean;
    tracing?: Tracing;
  },
): Promise<Stage> {
  const clock = manualClock();
  const asked: Asked[] = [];
  const fired: RoomId[] = [];
  const sessions = new Map<string, SessionLine[]>();
  const followers = createFollowers();
  const agents = agentsOf(given.agents ?? [AGENT], given.folder, sessions);
  const artifacts = fakeArtifacts();
  let made = 0;
  const parts: TaskServices = {
    ...{ store, owner: OWNER, agents, artifacts, followers, clock, metrics: createMetrics(), log: quietLog },
    ...{
      workspace: workspaceIn(given.folder),
      skills: noSkills,
      clipboard: { shown: async () => '' } as unknown as Clipboard,
      zone: createZone('UTC'),
      memoryChars: 12_000,
    },
    tracing: given.tracing,
    work: given.work ?? workByHand(asked),
    toolsFor: () => ({ tools: [], descriptions: [], tokens: 0 }),
    folders: { artifacts: join(given.folder, 'artifacts'), work: join(given.folder, 'work'), further: [] },
    whoGave: async ({ parent }) => ({ isOwner: true, isAmongOwners: parent === null }),
    personas: { get: async () => ({ id: 'default' }) as never } as unknown as Personas,
    rooms: { fired: async (rooms) => void fired.push(...rooms) },
    ...{ channels: ['test'], takesPrograms: true },
  };
  const runner = createRunner(parts);
  const tasks = createTasks({
    ...{ store, agents, followers, clock, mostWaiting: 5_000, newId: () => `task-${++made}` },
  });
  return {
    ...{ store, clock, tasks, runner, parts, asked, fired },
    session: (id) => sessions.get(id) ?? [],
    async requests(count) {
      await until(() => asked.length >= count);
      return asked;
    },
    async submit(goal, more = {}) {
      const { idempotencyKey = null, agent = null, artifacts = [] } = more;
      const request = { messages: [], plan: null, artifacts, memory: [] };
      const answer = await tasks.submit({ goal, agent, request, idempotencyKey });
      if (answer.kind !== 'accepted') throw new Error(answer.kind);
      return answer.task.id;
    },
    async end(id) {
      for (;;) {
        const task = await store.task(id);
        if (task?.completedAt != null) return task;
        await turn();
      }
    },
    async remove() {
      const stopping = runner.stop(0);
      await clock.advance(10_000);
      await stopping;
      await given.remove();
    },
  };
}

export function delegated(id: string, more: Partial<NewTask> = {}, constraints = {}): NewTask {
  return {
    ...{ id, agent: 'utility', goal: 'Look', idempotency: null, now: 1 },
    parent: { ...PARENT, callId: `call-${id}` },
    request: {
      ...{ messages: [], plan: null, artifacts: [], memory: [] },
      viap: {
        ...{ viap_version: '3', type: 'VIAP_V3_TASK', task_id: `viap:${id}`, title: 'Look' },
        ...{ goal: 'Look', instructions: ['Look.'], constraints, inputs: {} },
      },
    },
    ...more,
  };
}

export const BOUNDS = { waiting: 5_000, perRoom: 5, delegated: 8 };

export function reportOf(id: string, more: object = {}): string {
  const report = { viap_version: '3', type: 'VIAP_V3_REPORT', task_id: `viap:${id}`, success: true };
  return JSON.stringify({ ...report, summary: 'It is done.', ...more });
}

export async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await turn();
}

export async function all(progress: AsyncIterable<TaskProgress>): Promise<TaskProgress[]> {
  const found: TaskProgress[] = [];
  for await (const each of progress) found.push(each);
  return found;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function workByHand(asked: Asked[]): Work {
  return {
    do: (ask, signal) =>
      new Promise((resolve) => {
        const done = { steps: [], tainted: false, wasExternalRefused: false };
        const messages = [...ask.messages];
        const drop = () => resolve({ kind: 'dropped', messages, ...done });
        if (signal.aborted) return drop();
        signal.addEventListener('abort', drop, { once: true });
        asked.push({
          ...{ ask: { ...ask, messages }, signal },
          answers: (text) =>
            resolve({
              ...{ kind: 'answered', text, ...done },
              messages: [...messages, { role: 'assistant', content: text, calls: [] }],
            }),
          fails: (fault) => resolve({ kind: 'failed', fault, messages, ...done }),
        });
      }),
  };
}

function agentsOf(all: AgentDefinition[], folder: string, sessions: Map<string, SessionLine[]>): Agents {
  return {
    async find(id) {
      const agent = all.find((each) => each.id === id);
      const reason = `There is no agent ${id}; there are: ${all.map((each) => each.id).join(', ')}.`;
      return agent ? { ok: true, agent } : { ok: false, reason };
    },
    list: async () => all.map(({ id }) => id),
    space: async ({ agent }) => join(folder, 'agents', agent),
    memory: async () => ({ longTerm: '', daily: '', origin: 'inside' }),
    read: async () => ({ text: '', origin: 'inside' }),
    shownOf: async () => new Map(),
    append: async () => {},
    async log(_id, session, lines) {
      sessions.set(session, [...(sessions.get(session) ?? []), ...lines]);
    },
    session: async (_id, session) => sessions.get(session) ?? [],
  };
}

function workspaceIn(folder: string): Workspace {
  return {
    async folder() {
      await mkdir(join(folder, 'workspace'), { recursive: true });
      return join(folder, 'workspace');
    },
    read: async () => ({ content: '', etag: '' }),
    write: async () => ({ kind: 'written', etag: '' }),
    shownFiles: async () => new Map(),
    shown: async () => ({ bootstrap: [], memory: '', dailyLog: '', plan: '', origin: 'inside' as const }),
  };
}

function fakeArtifacts(): Artifacts {
  const written = new Map<string, { id: string; ref: string }[]>();
  return {
    async write({ taskId, id, content }) {
      if (content === 'refused') return { ok: false, reason: 'Refused.' };
      const ref = { id, ref: `artifacts/${taskId}/${id}.txt` };
      written.set(taskId, [...(written.get(taskId) ?? []), ref]);
      return { ok: true, ref, file: { name: id } as never };
    },
    find: async () => null,
    open: async () => null,
    list: async (taskId) => written.get(taskId) ?? [],
    newest: async () => [],
  };
}

const noSkills: Skills = {
  list: async () => ({ skills: [], problems: [], remarks: [] }),
  load: async () => ({ ok: false, reason: '' }),
};
