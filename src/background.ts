/** The background work of a gateway: HTTP listener, tasks, jobs, nightly upkeep, digests, journal, recall index. */
import { isOwner } from './conversation/access.js';
import type { Conversation } from './conversation/conversation.js';
import { announceCommands } from './conversation/receive/commands.js';
import type { Channel } from './core/channel.js';
import { OVER } from './core/clock.js';
import { once } from './core/concurrency.js';
import { type ChatId, channelOf } from './core/ids.js';
import { channelLease } from './core/node.js';
import type { Delegation, Task, Tasks } from './core/task.js';
import type { ToolsFor } from './core/tool.js';
import { collectSooner } from './core/v8.js';
import type { TaskGiver } from './delegation/place.js';
import type { Runner } from './delegation/runner.js';
import type { Duty } from './gateway.js';
import { startJobs } from './jobs/clock.js';
import { trimMedia } from './media/files.js';
import { answerOnEdits } from './operating/edits-seen.js';
import { backlogGauge, nodeGauges, sizeGauges, storeGauge } from './operating/metrics.js';
import { startUpkeep } from './operating/upkeep.js';
import type { Parts } from './parts.js';
import { foldersOf, PAGE_FILES } from './paths.js';
import { stateOf } from './platforms.js';

const DAY_MS = 24 * 60 * 60_000;

/** In start order. */
export function backgroundOf(parts: Parts, conversation: Conversation, tasks: TaskWiring): Duty[] {
  const { config, options, mcp, chatFiles, speech, journal, recall, embedder, records, channels, leased } =
    parts;
  const names = [...channels.keys()];
  const { digests } = config;
  const { node } = options;
  const ofPlatforms: Duty[] = [
    { begin: () => startListener(parts, conversation, tasks) },
    { lease: 'upkeep', begin: async () => upkeep(parts, conversation) },
    {
      lease: 'upkeep',
      begin: async () => startDigests(digests.every, digests.chats, conversation),
    },
  ];
  return [
    {
      async begin() {
        mcp?.start();
        return async () => mcp?.stop();
      },
    },
    {
      async begin() {
        void chatFiles.prepare();
        void speech?.tidy();
        return async () => {};
      },
    },
    {
      lease: 'journal',
      async begin() {
        await journal.start();
        return journal.stop;
      },
    },
    ...(options.platforms ? ofPlatforms : []),
    { lease: 'jobs', begin: async () => runJobs(parts, conversation, names) },
    ...[...channels.values()].map((channel) => ({
      ...(leased.has(channel.name) && { lease: channelLease(channel.name) }),
      async begin() {
        conversation.takeUpWindows([channel.name]);
        return announceCommands(parts, channel);
      },
    })),
    {
      async begin() {
        recall.start();
        return async () => {
          await recall.stop();
          await embedder?.close();
        };
      },
    },
    { begin: async () => () => records.idle() },
    ...(node === null ? [] : [{ begin: async () => answersDoctor(parts, node.name) }]),
    {
      async begin() {
        const letGo = collectSooner();
        return async () => letGo();
      },
    },
  ];
}

/** `coterie doctor` asks how late a gateway among several sees an edit. */
function answersDoctor({ config, options, store: notices, clock }: Parts, node: string) {
  const { elapsed } = options.told;
  const stop = answerOnEdits({ node, folder: config.groupsDir, notices, clock, elapsed });
  return async () => stop();
}

/** Another gateway may set a job that is due sooner than the next look. */
const LOOK_AFTER_OTHERS_MS = 1_000;

function runJobs(parts: Parts, rooms: Conversation, channels: string[]): () => Promise<void> {
  const { store, alarm, clock, jobRules: rules } = parts;
  const stop = startJobs({ ...parts, rooms, channels, rules }, parts.startedAt);
  let cancel: (() => void) | null = null;
  const unwatch = store.watch(() => {
    cancel ??= clock.after(LOOK_AFTER_OTHERS_MS, () => {
      cancel = null;
      alarm.look();
    });
  });
  return async () => {
    unwatch();
    cancel?.();
    await stop();
  };
}

async function startListener(
  parts: Parts,
  conversation: Conversation,
  tasks: TaskWiring,
): Promise<() => Promise<void>> {
  const { config, options, store, serving, metrics, sizes, pulse, workspace, artifacts, clock, log } = parts;
  const { desk, backlog, leases, wish, mine, heldBy, startedAt } = parts;
  const servesPage = config.node.roles.includes('board');
  const stateHere = (channel: Channel) => {
    const { name } = channel;
    const elsewhere = { connected: false, since: startedAt, lastError: null };
    return mine.has(name) ? channel.status() : { ...elsewhere, heldBy: heldBy(name) };
  };
  return options.serve({
    ...config.board,
    // Only platforms count: closing the terminal does not make the gateway unready.
    ready: async () => {
      if (!(await pulse())) return null;
      return Object.fromEntries(serving.map((channel) => [channel.name, stateHere(channel)]));
    },
    node: options.node?.name,
    metrics: async () => {
      const isUp = await pulse();
      // Of the whole store: one gateway tells them, so that a sum does not count them twice.
      const tellsStore = isUp && leases.holds('upkeep');
      const ofStore = tellsStore ? [backlogGauge(await backlog()), ...sizeGauges(await sizes())] : [];
      const node = { name: config.node.name, version: options.version };
      return metrics.render([storeGauge(isUp), ...ofStore, ...nodeGauges(node, wish.leases, leases.holds)]);
    },
    webhook: serving.find(({ webhook }) => webhook !== undefined)?.webhook,
    ...(servesPage && { tasks: await tasks.forPrograms(), workspace, artifacts }),
    // A gateway at which nobody looks does not load them.
    page:
      desk === null || !servesPage
        ? undefined
        : once(async () => (await import('./page-parts.js')).pagePartsOf(parts, desk, conversation)),
    ...(servesPage && { pageFiles: PAGE_FILES }),
    uploadBytes: config.media.maxBytes,
    sessions: { ...stateOf(store, 'board'), watch: store.watch },
    clock,
    log,
  });
}

function upkeep(parts: Parts, conversation: Conversation): () => Promise<void> {
  const { config, store, media, records, exports, agents, zone, clock, log } = parts;
  const { days, mediaBytes: bytes, mediaBytesPerChat: bytesPerChat } = config.retention;
  return startUpkeep({
    store,
    days,
    removeFiles: media.remove,
    trimCopies: async (signal) => {
      await records.trim(signal);
      await exports.tidy();
      if (days !== 'never') await agents.removeSessions(clock.now() - days * DAY_MS, signal);
    },
    trimMedia: (signal) => trimMedia(foldersOf(config).media, { bytes, bytesPerChat }, clock.now(), signal),
    consolidate: conversation.consolidate,
    zone,
    clock,
    log,
  });
}

async function startDigests(
  every: string | null,
  chats: ChatId[],
  conversation: Conversation,
): Promise<() => Promise<void>> {
  if (every === null || chats.length === 0) return async () => {};
  const over = new AbortController();
  const running = conversation.digests({ everyMs: durationMs(every), chats }, over.signal);
  return async () => {
    over.abort(OVER);
    await running;
  };
}

/** Parses `30m`, `6h` or `1d`. */
function durationMs(duration: string): number {
  const minutes = { m: 1, h: 60, d: 24 * 60 }[duration.slice(-1)] ?? 1;
  return Number.parseInt(duration, 10) * minutes * 60_000;
}

/** Lets personas delegate: a task is stored, then claimed by the runner. Loaded on first use. */
export function createDelegating(parts: Parts): Delegation {
  const load = once(async () => (await import('./delegation/tasks.js')).createDelegation(parts));
  return {
    spawn: async (wish) => (await load()).spawn(wish),
    given: async (call) => (await load()).given(call),
  };
}

type TaskWiring = ReturnType<typeof createTaskWiring>;

/** The task runner, loaded after the first messages. */
export function createTaskWiring(parts: Parts, conversation: Conversation, toolsFor: ToolsFor) {
  const { config, options, channels } = parts;
  const { leaseMs, roles } = config.node;
  let runner: Promise<Runner> | null = null;
  const followers = once(async () => (await import('./delegation/tasks.js')).createFollowers());

  async function loadRunner(): Promise<Runner> {
    const { createRunner } = await import('./delegation/runner.js');
    const { artifacts, work } = foldersOf(config);
    return createRunner({
      ...parts,
      // Each gateway claims tasks for itself: all of them look for some.
      ...(options.node && { owner: options.node.name, leaseMs }),
      toolsFor,
      channels: [...channels.keys()],
      takesPrograms: options.platforms,
      work: conversation.work,
      rooms: conversation,
      followers: await followers(),
      memoryChars: config.memory.longTermMaxChars,
      folders: { artifacts, work, further: config.agents.roots },
      whoGave: (task) => whoGave(parts, task),
    });
  }

  return {
    /** The interface for programs (HTTP). */
    async forPrograms(): Promise<Tasks> {
      const { createTasks } = await import('./delegation/tasks.js');
      return createTasks({
        ...parts,
        followers: await followers(),
        mostWaiting: config.limits.tasksWaiting,
      });
    },
    async start(): Promise<void> {
      if (!roles.includes('turns')) return;
      runner ??= loadRunner();
      (await runner).start();
    },
    async stop(withinMs: number): Promise<void> {
      await (await runner)?.stop(withinMs);
    },
  };
}

/** A program holds the board's token, so it counts as an owner. */
async function whoGave({ store, rulesFor }: Parts, { parent }: Task): Promise<TaskGiver> {
  if (parent === null) return { isOwner: true, isAmongOwners: true };
  const { chatId, senderId, tainted } = parent;
  const rules = rulesFor(channelOf(chatId));
  // Untrusted content may have led to the task.
  if (senderId === '' || tainted) return { isOwner: false, isAmongOwners: false };
  const owns = isOwner(rules, senderId, await store.approvalOf({ chatId, senderId }));
  return { isOwner: owns, isAmongOwners: owns && rules.controlChats.includes(chatId) };
}
