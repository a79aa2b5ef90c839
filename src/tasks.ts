/**
 * Wires what runs tasks, and what gives them: programs by the board, personas by `sessions_spawn`. All of it is loaded
 * after the first messages, or when it is first used.
 */
import type { Config } from './config.js';
import { isOwner } from './conversation/access.js';
import type { Conversation } from './conversation/conversation.js';
import type { AccessRules } from './core/access.js';
import { once } from './core/concurrency.js';
import { channelOf } from './core/ids.js';
import type { Store } from './core/store.js';
import type { Delegation, Task, Tasks } from './core/task.js';
import type { TaskServices } from './delegation/end.js';
import type { TaskGiver } from './delegation/place.js';
import type { Runner } from './delegation/runner.js';
import type { createDelegation } from './delegation/spawn.js';
import { artifactsFolderOf, workFolderOf } from './paths.js';

type Own = 'store' | 'work' | 'rooms' | 'followers' | 'memoryChars' | 'folders' | 'whoGave';

/** What tasks take from the gateway as it is. */
interface Wired extends Omit<TaskServices, Own> {
  config: Config;
  store: Store;
  conversation: Pick<Conversation, 'work' | 'fired'>;
  rulesFor(channel: string): AccessRules;
  newId(): string;
}

/** How personas give tasks: they are stored, and whoever runs tasks finds them there. */
export function createDelegating(parts: Parameters<typeof createDelegation>[0]): Delegation {
  const load = once(async () => (await import('./delegation/spawn.js')).createDelegation(parts));
  return {
    spawn: async (wish) => (await load()).spawn(wish),
    given: async (call) => (await load()).given(call),
  };
}

export interface TaskWiring {
  forPrograms(): Promise<Tasks>;
  start(): Promise<void>;
  stop(withinMs: number): Promise<void>;
}

export function createTaskParts(parts: Wired): TaskWiring {
  const { config } = parts;
  let runner: Promise<Runner> | null = null;
  const followers = once(async () => (await import('./delegation/tasks.js')).createFollowers());

  async function loadRunner(): Promise<Runner> {
    const { createRunner } = await import('./delegation/runner.js');
    return createRunner({
      ...parts,
      work: parts.conversation.work,
      rooms: parts.conversation,
      followers: await followers(),
      memoryChars: config.memory.longTermMaxChars,
      folders: {
        artifacts: artifactsFolderOf(config),
        work: workFolderOf(config),
        further: config.agents.roots,
      },
      whoGave: (task) => whoGave(parts, task),
    });
  }

  return {
    async forPrograms() {
      const { createTasks } = await import('./delegation/tasks.js');
      const { tasksWaiting: mostWaiting } = config.limits;
      return createTasks({ ...parts, followers: await followers(), mostWaiting });
    },
    async start() {
      runner ??= loadRunner();
      (await runner).start();
    },
    async stop(withinMs) {
      await (await runner)?.stop(withinMs);
    },
  };
}

/** Who has the token of the board is an owner. */
async function whoGave({ store, rulesFor }: Wired, { parent }: Task): Promise<TaskGiver> {
  if (parent === null) return { isOwner: true, isAmongOwners: true };
  const { chatId, senderId, tainted } = parent;
  const rules = rulesFor(channelOf(chatId));
  // What words from outside may have led to is nobody's.
  if (senderId === '' || tainted) return { isOwner: false, isAmongOwners: false };
  const owns = isOwner(rules, senderId, await store.approvalOf({ chatId, senderId }));
  return { isOwner: owns, isAmongOwners: owns && rules.controlChats.includes(chatId) };
}
