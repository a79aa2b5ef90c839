/** The page's routes to work: tasks of programs and personas, one opened, artifacts, and the audit log of what it changes. */
import { mkdir, mkdtemp, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createArtifacts } from '../../src/artifacts/artifacts.js';
import { type BoardApi, createApi, reply } from '../../src/board/api.js';
import type { ArtifactPage, TaskDetails, TaskPage } from '../../src/board/protocol.js';
import { addWork, recordWork } from '../../src/board/work.js';
import type { Artifacts } from '../../src/core/artifacts.js';
import { systemClock } from '../../src/core/clock.js';
import { locks } from '../../src/core/concurrency.js';
import { Fault } from '../../src/core/errors.js';
import type { Audit, AuditEntry } from '../../src/core/journal.js';
import type { Personas } from '../../src/core/persona.js';
import type { Store } from '../../src/core/store.js';
import { added, claimedTask, ending, FREE, newTask } from '../contract/store/tasks.js';
import { CHAT, chatAt, message, NOW, receive } from '../contract/store/words.js';
import { quietLog } from '../harness/quiet.js';
import { openStoreIn, removeStoreOf } from '../harness/store-in.js';

const LUNA = { id: 'luna', name: '<script>alert(1)</script>\nLuna' };

let home: string;
let store: Store;
let artifacts: Artifacts;
let api: BoardApi;
let audited: AuditEntry[];
let isAuditFull: boolean;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coterie-work-'));
  store = await openStoreIn(home, { clock: systemClock, log: quietLog });
  artifacts = createArtifacts({
    ...{ folder: join(home, 'artifacts'), mediaFolder: join(home, 'media'), mostBytes: 10_000 },
    exclusive: locks(),
  });
  audited = [];
  isAuditFull = false;
  const audit: Audit = {
    async record(entry) {
      if (isAuditFull) throw new Fault('audit_unavailable', 'the disk is full');
      audited.push(entry);
    },
    note: async () => {},
  };
  const personas = { list: async () => [LUNA] } as unknown as Personas;
  api = createApi(quietLog);
  recordWork(api, audit);
  addWork(api, { tasks: store, artifacts, chats: store, personas, audit });
  for (const path of ['/api/tasks', '/api/tasks/:id/stop', '/api/workspace/plan']) {
    api.all(path, () => reply(200, { audited: audited.length }));
  }
});
afterEach(async () => {
  await store.close();
  removeStoreOf(home);
  await rm(home, { recursive: true, force: true });
});

async function read<Body>(path: string): Promise<Body> {
  const answer = await api.request(path);
  expect(answer.status, path).toBe(200);
  return (await answer.json()) as Body;
}

const made = (taskId: string, id: string, more: { title?: string; type?: string; content?: string } = {}) =>
  artifacts.write(
    { taskId, id, title: null, type: null, content: 'x', ...more },
    new AbortController().signal,
  );

describe('the list of tasks', () => {
  it('has those of programs and of personas, newest first, a page at a time', async () => {
    for (let n = 0; n < 65; n++) await added(store, `k${n}`);
    const first = await read<TaskPage>('/api/board/tasks');
    expect(first.tasks.map(({ id }) => id)).toEqual(Array.from({ length: 30 }, (_, n) => `k${64 - n}`));
    const second = await read<TaskPage>(`/api/board/tasks?before=${first.next}`);
    expect(second.tasks[0]?.id).toBe('k34');
    const last = await read<TaskPage>(`/api/board/tasks?before=${second.next}`);
    expect([last.tasks.map(({ id }) => id), last.next]).toEqual([['k4', 'k3', 'k2', 'k1', 'k0'], null]);
    const both = await read<TaskPage>('/api/board/tasks?most=60');
    expect([both.tasks.length, both.next]).toEqual([60, 'k5']);
    expect((await api.request('/api/board/tasks?most=301')).status).toBe(400);
  });

  it('says who delegated one, and in which chat; lines stay lines', async () => {
    await receive(store, [message('1', 'a', { chat: { ...chatAt(CHAT), title: 'The\ngarden' } })]);
    const parent = {
      ...{ chatId: CHAT, room: CHAT, personaId: 'luna', turnId: 't', callId: 'c', senderId: '' },
      tainted: false,
    };
    await store.addTask(newTask('k1', { parent, goal: `Water\n${'the roses '.repeat(100)}` }), FREE);
    const { tasks } = await read<TaskPage>('/api/board/tasks');
    expect(tasks[0]?.from).toEqual({
      persona: '<script>alert(1)</script> Luna',
      chat: 'The garden',
      room: CHAT,
    });
    expect(tasks[0]?.goal).toMatch(/^Water the roses .{200,290}…$/);
  });

  it('says how one ended', async () => {
    await added(store, 'k1');
    await claimedTask(store);
    await store.finishTask(ending('k1'), 'me');
    await added(store, 'k2');
    await claimedTask(store);
    await store.finishTask(ending('k2', { status: 'error', result: null, error: 'No\nmodel.' }), 'me');
    await added(store, 'k3');
    await store.tellTask('k3', 'stop', NOW);
    const { tasks } = await read<TaskPage>('/api/board/tasks');
    expect(tasks.map(({ status, words }) => [status, words])).toEqual([
      ['stopped', null],
      ['error', 'No model.'],
      ['completed', 'wet'],
    ]);
  });
});

describe('a task opened', () => {
  it('has its goal whole, its calls with their results, and its artifacts', async () => {
    const goal = 'Water\n'.repeat(500);
    await added(store, 'k1', { goal });
    await claimedTask(store);
    const call = { at: NOW, tool: 'shell', arguments: '{"command":"ls"}' };
    const done = { ...call, kind: 'tool-result', failed: true, content: 'no such file' } as const;
    await store.noteTask(
      { id: 'k1', owner: 'me' },
      {
        events: [
          { ...call, kind: 'tool-call', callId: 'c1' },
          { ...call, kind: 'tool-call', callId: 'c2' },
          { ...done, callId: 'c1' },
        ],
      },
    );
    await made('k1', 'report', { title: '<b>Report</b>' });
    const details = await read<TaskDetails>('/api/board/tasks/k1');
    expect(details).toMatchObject({ goal, plan: null, result: null, error: null, isCut: false });
    expect(details.task.status).toBe('running');
    const rest = { tool: 'shell', at: NOW, arguments: call.arguments };
    expect(details.calls).toEqual([
      { id: 'c1', ...rest, result: 'no such file', failed: true },
      { id: 'c2', ...rest, result: null, failed: false },
    ]);
    expect(details.artifacts).toEqual([
      {
        ...{ task: 'k1', id: 'report', name: 'report.md', type: 'text/markdown', title: '<b>Report</b>' },
        ...{ bytes: 1, at: expect.any(Number), address: 'api/artifacts/k1/report' },
      },
    ]);
  });

  it('that nobody gave is not there', async () => {
    expect((await api.request('/api/board/tasks/no-such')).status).toBe(404);
  });
});

describe('the list of artifacts', () => {
  it('has those of all tasks and turns, newest first, 200 at most', async () => {
    await made('k1', 'old');
    await made('turn-1', 'new', { type: 'text/html', content: '<script>' });
    await utimes(join(home, 'artifacts/k1'), 1, 1);
    await utimes(join(home, 'artifacts/k1/old.md'), 1, 1);
    const { artifacts: found, isCut } = await read<ArtifactPage>('/api/board/artifacts');
    expect([found.map(({ task, name }) => `${task}/${name}`), isCut]).toEqual([
      ['turn-1/new.html', 'k1/old.md'],
      false,
    ]);
    const many = Array.from({ length: 150 }, (_, n) => n);
    for (const task of ['k2', 'k3']) {
      await mkdir(join(home, 'artifacts', task));
      await Promise.all(many.map((n) => writeFile(join(home, 'artifacts', task, `f${n}.txt`), 'x')));
    }
    const full = await read<ArtifactPage>('/api/board/artifacts');
    expect([full.artifacts.length, full.isCut]).toEqual([200, true]);
    expect(full.artifacts.map(({ task }) => task)).not.toContain('turn-1');
  });

  it('is empty while nothing was made, and follows no links', async () => {
    expect(await read('/api/board/artifacts')).toEqual({ artifacts: [], isCut: false });
    await made('k1', 'a');
    await writeFile(join(home, 'secret.txt'), 'secret');
    await symlink(join(home, 'secret.txt'), join(home, 'artifacts/k1/b.txt'));
    await symlink(home, join(home, 'artifacts/k2'));
    const { artifacts: found } = await read<ArtifactPage>('/api/board/artifacts');
    expect(found.map(({ id }) => id)).toEqual(['a']);
  });

  it('leads to one of them; other names are not there', async () => {
    await made('k1', 'a.csv', { type: 'text/csv' });
    expect(await read('/api/board/artifacts/k1/a.csv')).toMatchObject({ name: 'a.csv', bytes: 1 });
    for (const path of ['k1/b', 'k2/a.csv']) {
      expect((await api.request(`/api/board/artifacts/${path}`)).status, path).toBe(404);
    }
    expect((await api.request('/api/board/artifacts/k1/%2e%2e%2fa')).status).toBe(400);
  });
});

describe('the audit log', () => {
  const ask = (path: string, method: string, headers: Record<string, string> = {}) =>
    api.request(path, { method, headers, ...(method !== 'GET' && { body: '{}' }) });
  const origin = { origin: 'http://127.0.0.1:8123' };

  it('has what the page changes before it happens, and nothing of what it reads or programs do', async () => {
    for (const [path, method] of [
      ['/api/tasks', 'POST'],
      ['/api/tasks/k1/stop', 'POST'],
      ['/api/workspace/plan', 'PUT'],
    ] as const) {
      const before = audited.length;
      expect(await (await ask(path, method, origin)).json()).toEqual({ audited: before + 1 });
      const entry = { kind: 'command', who: 'board_owner', where: null, word: 'board_owner' };
      expect(audited.at(-1)).toEqual({ ...entry, what: `${method} ${path}` });
      await ask(path, method);
      await ask(path, 'GET', origin);
      expect(audited).toHaveLength(before + 1);
    }
  });

  it('being full, nothing happens', async () => {
    isAuditFull = true;
    const refused = await ask('/api/workspace/plan', 'PUT', origin);
    expect([refused.status, await refused.json()]).toEqual([
      503,
      { error: expect.stringContaining('audit log') },
    ]);
  });
});
