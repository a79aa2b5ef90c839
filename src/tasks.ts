/**
 * Wires what runs tasks, and what gives them: programs by the board, personas by `sessions_spawn`. All of it is loaded
 * after the first messages, or when it is first used.
 */
import type { Config } from './config.js';
import { type AccessRules, isOwner } from './conversation/access.js';
import type { Conversation } from './conversation/conversation.js';
import { channelOf } from './core/ids.js';
import type { Store } from './core/store.js';
import type { Delegation, Task, Tasks } from './core/task.js';
import type { TaskGiver } from './delegation/place.js';
import type { RunnerParts } from './delegation/runner.js';
import type { DelegationParts } from './delegation/spawn.js';
import { artifactsFolderOf, workFolderOf } from './places.js';

interface Parts
  extends Pick<
    RunnerParts,
    | 'owner'
    | 'agents'
    | 'workspace'
    | 'artifacts'
    | 'skills'
    | 'clipboard'
    | 'toolsFor'
    | 'personas'
    | 'channels'
    | 'takesPrograms'
    | 'zone'
    | 'clock'
    | 'log'
  > {
  config: Config;
  store: Store;
  conversation: Pick<Conversation, 'work' | 'fired'>;
  rulesFor(channel: string): AccessRules;
  newId(): string;
}

/** How personas give tasks: they are stored, and whoever runs tasks finds them there. */
export function createDelegating(parts: DelegationParts): Delegation {
  return {
    async spawn(wish) {
      const { createDelegation } = await import('./delegation/spawn.js');
      return createDelegation(parts).spawn(wish);
    },
  };
}

export interface TaskWiring {
  forPrograms(): Promise<Tasks>;
  start(): Promise<void>;
  stop(withinMs: number): Promise<void>;
}

export function createTaskParts(parts: Parts): TaskWiring {
  const { config } = parts;
  let loading: ReturnType<typeof load> | null = null;

  async function load() {
    const [{ createRunner }, { createTasks }, { createFollowers }] = await Promise.all([
      import('./delegation/runner.js'),
      import('./delegation/tasks.js'),
      import('./delegation/followers.js'),
    ]);
    const followers = createFollowers();
    return {
      runner: createRunner({
        ...parts,
        ...{ work: parts.conversation.work, rooms: parts.conversation, followers },
        memoryChars: config.memory.longTermMaxChars,
        folders: {
          ...{ artifacts: artifactsFolderOf(config), work: workFolderOf(config) },
          further: config.agents.roots,
        },
        whoGave: (task) => whoGave(parts, task),
      }),
      programs: createTasks({ ...parts, followers, mostWaiting: config.limits.tasksWaiting }),
    };
  }

  const loaded = () => (loading ??= load());

  return {
    async forPrograms() {
      return (await loaded()).programs;
    },
    async start() {
      (await loaded()).runner.start();
    },
    async stop(withinMs) {
      await (await loading)?.runner.stop(withinMs);
    },
  };
}

/** Who has the token of the board is an owner. */
async function whoGave({ store, rulesFor }: Parts, { parent }: Task): Promise<TaskGiver> {
  if (parent === null) return { isOwner: true, isAmongOwners: true };
  const { chatId, senderId, tainted } = parent;
  const rules = rulesFor(channelOf(chatId));
  // What words from outside may have led to is nobody's.
  if (senderId === '' || tainted) return { isOwner: false, isAmongOwners: false };
  const owns = isOwner(rules, senderId, await store.standing({ chatId, senderId }));
  return { isOwner: owns, isAmongOwners: owns && rules.controlChats.includes(chatId) };
}
