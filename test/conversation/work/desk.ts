/** An agent's work in this process: the real route and store, a scripted model, and a task that is running. */

import { toolSet } from '../../../src/conversation/turn/call.js';
import type { MattTurn } from '../../../src/core/journal.js';
import type { Task, TaskParent, WorkAsk } from '../../../src/core/task.js';
import type { AnyTool, ToolContext, ToolResult } from '../../../src/core/tool.js';
import { journalOf } from '../../contract/store/words.js';
import { manualClock } from '../../fakes/clock.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../../harness/conversation.js';

export const MINUTE = 60_000;
export const OWNER = { sender: { address: '9', name: 'Olga', administrator: false } };
export const CONTROL = { ...OWNER, chat: { address: '9', kind: 'direct' as const, title: 'Olga' } };
/** An owner, and a control chat. */
export const RULES = { owners: ['test_9'], controlChats: ['test_9'] };

export const done = (content: string): ToolResult => ({ content, failed: false });

/** A tool that does what it is told. */
export function tool(
  name: string,
  execute: (given: Record<string, unknown>, context: ToolContext) => Promise<ToolResult>,
  more: Partial<AnyTool> = {},
): AnyTool {
  const parameters = { type: 'object' as const };
  return { name, description: name, risk: 'medium', parameters, execute, ...more } as AnyTool;
}

export interface Desk {
  on: Workbench;
  clock: ReturnType<typeof manualClock>;
  /** What it said of its waiting. */
  waits: boolean[];
  /** One request to the agent of a task. */
  ask(task: Task, words: string, more?: Partial<WorkAsk>): WorkAsk;
  /** A running task of a program, or of a persona in a chat. */
  task(id?: string, parent?: Partial<TaskParent> | null): Promise<Task>;
  calls(name: string): Promise<MattTurn[]>;
  textsTo(address: string): string[];
  close(): Promise<void>;
}

export async function desk(options: WorkbenchOptions = {}): Promise<Desk> {
  const clock = (options.clock as ReturnType<typeof manualClock>) ?? manualClock();
  let codes = 0;
  const newCallCode = () => `CODE${++codes}`;
  const { tools = [] } = options;
  const set = toolSet(tools);
  const kinds: WorkbenchOptions = options.toolsFor ? {} : { toolsFor: () => set };
  const on = await workbench({ clock, rules: RULES, newCallCode, ...kinds, ...options });
  const waits: boolean[] = [];
  return {
    ...{ on, clock, waits },
    ask(task, words, more = {}) {
      const claim = { id: task.id, owner: 'test' };
      return {
        task,
        isTainted: false,
        agent: {
          ...{ id: 'utility', model: null, prompt: '', tools: ['files', 'shell'] },
          ...{ timeoutMinutes: null, maxRounds: null },
        },
        place: {
          ...{ id: 'utility', taskId: task.id, cwd: '/w', roots: ['/w', '/a `b`'], env: {} },
          space: '/space',
          shared: { folder: '/shared', mayWrite: true },
        },
        messages: [
          { role: 'system', content: 'You work.' },
          { role: 'user', content: words },
        ],
        round: 0,
        note: (what) => on.store.noteTask(claim, what),
        waits: (isWaiting) => void waits.push(isWaiting),
        ...more,
      };
    },
    async task(id = 'task-1', parent = null) {
      const from: TaskParent | null = parent && {
        ...{ chatId: 'test_1', room: 'test_1', personaId: 'default', turnId: 'turn-of-parent' },
        ...{ callId: 'call-of-parent', senderId: 'test_1', tainted: false },
        ...parent,
      };
      const request = { messages: [], plan: null, artifacts: [], memory: [], viap: null };
      const added = await on.store.addTask(
        {
          ...{ id, agent: 'utility', goal: 'Tidy the shed', request, parent: from, idempotency: null },
          now: clock.now(),
        },
        { waiting: 100, perRoom: 100, delegated: 100 },
      );
      if (added.kind !== 'added') throw new Error(added.kind);
      const of = parent === null ? ('programs' as const) : { channels: ['test'] };
      const claimed = await on.store.claimTask({ owner: 'test', leaseMs: 1e12, now: clock.now(), of });
      if (claimed === null) throw new Error('it is not there');
      return claimed;
    },
    calls: async (name) =>
      (await journalOf(on.store))
        .map(({ entry }) => entry)
        .filter((entry): entry is MattTurn => entry.type === 'MattTurn' && entry.action.tool === name),
    textsTo: (address) => on.sent.filter(({ to }) => to.address === address).map(({ part }) => part.text),
    close: () => on.close(),
  };
}
