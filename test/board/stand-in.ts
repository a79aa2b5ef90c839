/** Ports for the board's tests: tasks that happen as a test says, a workspace in memory, and artifacts in a folder. */
import { createHash } from 'node:crypto';
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Artifacts } from '../../src/core/artifacts.js';
import {
  ENDED,
  type Task,
  type TaskEvent,
  type TaskProgress,
  type TaskResult,
  type Tasks,
  type TaskWish,
} from '../../src/core/task.js';
import type { Workspace, WorkspaceFile } from '../../src/core/workspace.js';

interface Entry {
  task: Task;
  events: TaskEvent[];
  wish: TaskWish;
  followers: Set<(progress: TaskProgress) => void>;
}

const AT = Date.UTC(2026, 0, 31, 8, 20);

export function createTasks({ most = Number.POSITIVE_INFINITY } = {}) {
  const entries = new Map<string, Entry>();
  const keys = new Map<string, { id: string; hash: string }>();
  const told: { id: string; text: string; mode: string }[] = [];
  const counts = { followers: 0, read: 0 };
  const failing: { with: Error | null } = { with: null };

  const entryOf = (id: string): Entry => {
    const entry = entries.get(id);
    if (!entry) throw new Error(`no task ${id}`);
    return entry;
  };
  const spread = (id: string, progress: TaskProgress) => {
    for (const take of entryOf(id).followers) take(progress);
  };
  const note = (id: string, event: TaskEvent) => {
    entryOf(id).events.push(event);
    spread(id, { kind: 'event', event });
  };
  const become = (id: string, change: Partial<Task> & Pick<Task, 'status'>) => {
    Object.assign(entryOf(id).task, change);
    note(id, { at: AT, kind: 'status', status: change.status });
    if (ENDED.includes(change.status)) spread(id, { kind: 'end', task: { ...entryOf(id).task } });
  };

  const tasks: Tasks = {
    async submit(wish) {
      if (failing.with) throw failing.with;
      if (wish.agent === 'nobody')
        return { kind: 'unknown agent', reason: 'There is no agent nobody; there is utility.' };
      const hash = createHash('sha256').update(JSON.stringify(wish)).digest('hex');
      const known = wish.idempotencyKey === null ? undefined : keys.get(wish.idempotencyKey);
      if (known && known.hash !== hash) return { kind: 'conflict' };
      if (known) return { kind: 'accepted', task: entryOf(known.id).task };
      if (entries.size >= most) return { kind: 'full' };
      const id = `task-${entries.size + 1}`;
      const { goal, agent, request } = wish;
      const task: Task = {
        ...{ id, goal, agent: agent ?? 'utility', status: 'pending', createdAt: AT, startedAt: null },
        ...{
          completedAt: null,
          request: { ...request, viap: null },
          result: null,
          error: null,
          parent: null,
        },
      };
      entries.set(id, { task, wish, events: [], followers: new Set() });
      if (wish.idempotencyKey !== null) keys.set(wish.idempotencyKey, { id, hash });
      return { kind: 'accepted', task: { id, status: 'pending' } };
    },
    async find(id) {
      if (failing.with) throw failing.with;
      const entry = entries.get(id);
      return entry ? { task: { ...entry.task }, events: [...entry.events] } : null;
    },
    async list(most) {
      if (failing.with) throw failing.with;
      return [...entries.values()]
        .map(({ task }) => task)
        .reverse()
        .slice(0, most);
    },
    async stop(id) {
      if (failing.with) throw failing.with;
      const entry = entries.get(id);
      if (!entry) return 'unknown';
      if (ENDED.includes(entry.task.status)) return 'ended';
      become(id, { status: 'stopped', completedAt: AT });
      return 'done';
    },
    async tell(id, text, mode) {
      if (failing.with) throw failing.with;
      const entry = entries.get(id);
      if (!entry) return 'unknown';
      if (ENDED.includes(entry.task.status)) return 'ended';
      told.push({ id, text, mode });
      return 'done';
    },
    async *follow(id, signal) {
      const entry = entries.get(id);
      if (!entry || ENDED.includes(entry.task.status)) return;
      const waiting: TaskProgress[] = [];
      let wake = () => {};
      const take = (progress: TaskProgress) => {
        // Who does not read misses deltas, never the end.
        if (progress.kind !== 'text-delta' || waiting.length < 100) waiting.push(progress);
        wake();
      };
      entry.followers.add(take);
      counts.followers += 1;
      const left = () => wake();
      signal.addEventListener('abort', left);
      try {
        while (!signal.aborted) {
          const next = waiting.shift();
          if (next === undefined) {
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
            continue;
          }
          counts.read += 1;
          yield next;
          if (next.kind === 'end') return;
        }
      } finally {
        signal.removeEventListener('abort', left);
        entry.followers.delete(take);
        counts.followers -= 1;
      }
    },
  };

  return {
    ...{ tasks, told, counts, failing, note },
    wishOf: (id: string) => entryOf(id).wish,
    run: (id: string) => become(id, { status: 'running', startedAt: AT }),
    delta: (id: string, text: string) => spread(id, { kind: 'text-delta', text }),
    complete: (id: string, result: TaskResult) =>
      become(id, { status: 'completed', completedAt: AT, result }),
    fail: (id: string, error: string) => become(id, { status: 'error', completedAt: AT, error }),
    interrupt: (id: string) =>
      become(id, { status: 'interrupted', completedAt: AT, error: 'The gateway ended.' }),
    /** Forgets its followers without a word, as a gateway that stops. */
    followers: (id: string) => entryOf(id).followers.size,
  };
}

export function createWorkspace(): Workspace {
  const files: Record<WorkspaceFile, string> = { plan: '', memory: '' };
  const tagOf = (content: string) => createHash('sha256').update(content).digest('hex').slice(0, 16);
  return {
    folder: async () => '/nowhere',
    read: async (file) => ({ content: files[file], etag: tagOf(files[file]) }),
    async write(file, content, ifMatch) {
      const etag = tagOf(files[file]);
      if (ifMatch !== null && ifMatch !== etag) return { kind: 'stale', etag };
      files[file] = content;
      return { kind: 'written', etag: tagOf(content) };
    },
    shownFiles: async () => new Map(),
    shown: async () => ({ bootstrap: [], memory: '', dailyLog: '', plan: '', origin: 'inside' as const }),
  };
}

/** Finds `<folder>/<task>/<id><extension>` by a list of what is there. */
export function createArtifacts(folder: string, types: Record<string, { file: string; type: string }>) {
  const asked: string[] = [];
  const find: Artifacts['find'] = async (task, id) => {
    asked.push(`${task}/${id}`);
    const found = types[`${task}/${id}`];
    if (!found) return null;
    const path = join(folder, found.file);
    const { size } = await stat(path);
    return { path, name: found.file, type: found.type, title: null, bytes: size };
  };
  const artifacts: Artifacts = {
    write: async () => ({ ok: false, reason: 'not here' }),
    find,
    async open(task, id) {
      const found = await find(task, id);
      return found && { ...found, handle: await open(found.path) };
    },
    list: async () => [],
    newest: async () => [],
  };
  return { artifacts, asked };
}
