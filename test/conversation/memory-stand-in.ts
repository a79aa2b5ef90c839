/** What the memory commands touch, in memory: files of one chat, a transcript, versions. For tests of the commands. */

import type { CommandCall } from '../../src/conversation/commands/command.js';
import { COMMANDS } from '../../src/conversation/commands/list.js';
import { createScanner } from '../../src/conversation/lore/scan.js';
import type { Services } from '../../src/conversation/services.js';
import type { ArchiveFile, Archives } from '../../src/core/chat-record.js';
import { createZone } from '../../src/core/dates.js';
import { Fault } from '../../src/core/errors.js';
import type { Log } from '../../src/core/log.js';
import type {
  FoundLine,
  Memory,
  MemoryFile,
  PromptMemory,
  SeenTier,
  Tier,
  Trace,
  Version,
} from '../../src/core/memory.js';
import { NO_PARTS, type Persona, type Personas } from '../../src/core/persona.js';
import type { StoredCommand } from '../../src/core/receipt.js';
import type { Store } from '../../src/core/store.js';
import { BEGINNING, type Step, type StoredMessage } from '../../src/core/transcript.js';
import { NO_NOTES } from '../../src/groups/chat-notes.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { SETTINGS } from '../harness/conversation.js';
import { NO_EXPORTS, NO_RECORDS } from '../harness/no-copies.js';
import { NO_JOBS } from '../harness/no-jobs.js';
import { NO_MEDIA } from '../harness/no-media.js';
import { NO_RECALL } from '../harness/no-recall.js';
import { NO_PORTRAITS } from '../harness/portraits.js';
import { quietMetrics } from '../harness/quiet.js';

export const CHAT = 'test_1';
const BUDGET = 12_000;

export interface StandIn {
  services: Services & Pick<CommandCall, 'commands'>;
  clock: ManualClock;
  /** MEMORY.md by persona, tier by tier. */
  tiers: Map<string, Record<Tier, string>>;
  /** Daily logs and archives by file below the chat's folder. */
  files: Map<string, string>;
  messages: StoredMessage[];
  versions: Version[];
  /** The messages that turns answered. */
  turns: Map<string, StoredMessage[]>;
  traces: Trace[];
  /** The steps of turns that used tools. */
  steps: Map<string, Step[]>;
  archives: ArchiveFile[];
  /** What may be changed at will. */
  now: {
    given: PromptMemory | null;
    resetAt: number;
    others: string[];
    unreadable: boolean;
    markFails: boolean;
    closeFails: boolean;
    copied: { file: string; messages: number; isOld?: true } | 'too many' | null;
    /** Called when the turns of the chat are cut off. */
    onInterrupt: () => void;
  };
  /** What was done, in order. */
  done: string[];
  logged: { fields: object; message: string }[];
  run(text: string, more?: Partial<StoredCommand>): ReturnType<(typeof COMMANDS)[number]['run']>;
}

/** What of the store commands use. */
type CommandStore = Pick<
  Store,
  | 'chat'
  | 'roomNow'
  | 'approvalOf'
  | 'usage'
  | 'keepVersion'
  | 'dropVersion'
  | 'versions'
  | 'messages'
  | 'promptMemory'
  | 'trace'
  | 'whereabouts'
  | 'findWords'
  | 'eraseWords'
  | 'endErasing'
  | 'tasksElsewhere'
  | 'view'
  | 'window'
  | 'counts'
>;

export function standIn(): StandIn {
  const clock = manualClock(Date.UTC(2026, 10, 22, 10, 0));
  const tiers: StandIn['tiers'] = new Map();
  const files: StandIn['files'] = new Map();
  const messages: StoredMessage[] = [];
  const versions: Version[] = [];
  const turns: StandIn['turns'] = new Map();
  const traces: Trace[] = [];
  const steps: StandIn['steps'] = new Map();
  const archives: ArchiveFile[] = [];
  const done: string[] = [];
  const logged: StandIn['logged'] = [];
  const now: StandIn['now'] = {
    ...{ given: null, resetAt: 0, others: [], copied: null, onInterrupt: () => {} },
    ...{ unreadable: false, markFails: false, closeFails: false },
  };
  const note =
    (what: string) =>
    (fields: object, message: string): void => {
      logged.push({ fields, message: `${what}: ${message}` });
    };
  const log: Log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };

  const memoryText = (personaId: string) => {
    const own = tiers.get(personaId) ?? { 1: '', 2: '', 3: '' };
    if (Object.values(own).every((text) => text === '')) return '';
    const titles = ['Long term', 'Mid term', 'Short term'];
    const sections = ([1, 2, 3] as const).map(
      (tier) => `## Tier ${tier} — ${titles[tier - 1]}\n\n${own[tier]}`,
    );
    return `# Memory\n\n${sections.join('\n\n')}`.trim();
  };
  const unreadable = () => {
    if (now.unreadable) throw new Fault('memory_unavailable', 'MEMORY.md is a folder');
  };
  const seen: Record<Tier, SeenTier> = { 1: { text: '' }, 2: { text: '' }, 3: { text: '' } };
  const allLines = (): FoundLine[] => [
    ...[...tiers].flatMap(([id, own]) =>
      Object.values(own).flatMap((text) =>
        text.split('\n').map((line) => ({ file: `${id}/MEMORY.md`, text: line })),
      ),
    ),
    ...[...files].flatMap(([file, text]) => text.split('\n').map((line) => ({ file, text: line }))),
  ];

  const memory: Memory = {
    holdsMore: async () => false,
    originOf: async () => 'inside',
    originOfDay: async () => 'inside',
    principlesPath: 'groups/AGENTS.md',
    budgets: {
      longTermMaxChars: 12_000,
      dailyPerDayMaxChars: 4_000,
      dailyFiles: 2,
      dailyMaxChars: 8_000,
      tierBytes: 64_000,
    },
    principles: async () => '',
    async snapshot({ personaId }) {
      const text = memoryText(personaId);
      if (text.length <= BUDGET) return { text, seen };
      return { text: `${text.slice(0, BUDGET)}\n\n<<truncated due to memory-max-chars=${BUDGET}>>`, seen };
    },
    async readAll({ personaId }) {
      unreadable();
      return memoryText(personaId);
    },
    readTier: async ({ personaId }, tier) => tiers.get(personaId)?.[tier] ?? '',
    writeTier: async () => ({ kind: 'refused', reason: 'commands write no tiers' }),
    async recentDaily() {
      const days = [...files]
        .filter(([file]) => file.startsWith('memory/'))
        .sort()
        .reverse();
      return days.map(([file, text]) => `--- ${file.slice(7, 17)} ---\n${text.trim()}`).join('\n\n');
    },
    readDaily: async (_chatId, date) => (files.get(`memory/${date}.md`) ?? '').trim(),
    appendDaily: async () => 'added',
    writeTiers: async () => 'refused',
    async takeBack(change) {
      const [version, ...more] = change;
      if (!version) return 'already';
      const { file, tier, before, after } = version;
      const id = file.split('/')[0] ?? '';
      const own = tiers.get(id);
      if (tier === null || !own) return 'changed';
      if (own[tier] === before) return more.length === 0 ? 'already' : memory.takeBack(more);
      if (own[tier] !== after) return 'changed';
      own[tier] = before;
      done.push(`takeBack ${file} ${tier}`);
      if (more.length > 0) await memory.takeBack(more);
      return 'done';
    },
    restore: async () => 'changed',
    find: async (_chatId, phrase, most) =>
      allLines()
        .filter(({ text }) => phrase.isIn(text))
        .slice(0, most),
    async erase(_chatId, phrase) {
      done.push('erase');
      const without = (text: string) =>
        text
          .split('\n')
          .filter((line) => !phrase.isIn(line))
          .join('\n');
      for (const own of tiers.values()) for (const tier of [1, 2, 3] as const) own[tier] = without(own[tier]);
      for (const [file, text] of files) {
        files.set(file, file.startsWith('archive/') ? phrase.replacedIn(text, '') : without(text));
      }
      return [];
    },
    async files({ personaId }): Promise<MemoryFile[]> {
      const names = [...(tiers.has(personaId) ? [`${personaId}/MEMORY.md`] : []), ...files.keys()];
      return names.map((file) => ({ file, path: `/groups/${CHAT}/${file}` }));
    },
  };

  const persona = (id: string): Persona => ({
    ...{
      id,
      name: id,
      model: null,
      temperature: null,
      avatar: null,
      aliases: [],
      tools: null,
      from: null,
      character: '',
      greeting: null,
      voice: null,
      ...{
        parts: NO_PARTS,
        card: null,
        trusted: false,
        guard: null,
        greetings: [],
        groupGreetings: [],
        talkativeness: null,
        portrait: null,
      },
    },
  });
  const living = ['default', 'luna'];
  const personas: Personas = {
    list: async () => living.map(persona),
    get: async (_chatId, id) => (living.includes(id) ? persona(id) : null),
    find: async (_chatId, name) => (living.includes(name) ? persona(name) : null),
    ensure: async () => {},
    meet: async () => false,
    create: async (_chatId, name) => ({ ok: true, persona: persona(name) }),
    async remove(_chatId, name) {
      if (!living.includes(name) || name === 'default') return { ok: false, reason: `no ${name}` };
      done.push(`remove ${name}`);
      return { ok: true, persona: persona(name) };
    },
    setModel: async (_chatId, name) => ({ ok: true, persona: persona(name) }),
  };

  const shelf: Archives = {
    newName: async () => 'new.md',
    write: async () => {},
    async mark(_chatId, file, mark) {
      if (now.markFails) throw new Fault('memory_unavailable', 'no space');
      done.push(`mark ${file} ${mark}`);
    },
    remove: async () => {},
    list: async (_chatId, personaId) => archives.filter((each) => each.personaId === personaId),
    find: async (_chatId, file) => archives.find((each) => each.file === file) ?? null,
    shownPath: (chatId, file) => `groups/${chatId}/archive/${file}`,
  };

  const store: CommandStore = {
    chat: async () => null,
    tasksElsewhere: async () => [],
    roomNow: async () => ({ running: null, suspended: null, waits: null, lastReply: null }),
    approvalOf: async () => ({ chat: true, sender: true, owner: false }),
    usage: async () => ({ personas: [], person: { tokens: 0, cost: 0 }, all: { tokens: 0, cost: 0 } }),
    keepVersion: async () => {},
    dropVersion: async () => {},
    versions: async ({ personaId, most, turnId, ofPersonas }) =>
      versions
        .filter(({ cause }) => !ofPersonas || cause.kind !== 'owner')
        .filter((version) => personaId === null || version.personaId === personaId)
        .filter(({ cause }) => turnId === undefined || cause.turnId === turnId)
        .slice(0, most),
    messages: async (which) => (Array.isArray(which) ? [] : (turns.get(which.turnId) ?? [])),
    promptMemory: async () => now.given,
    trace: async ({ most }) => traces.slice(0, most),
    whereabouts: async () => ({ window: 12, flushed: 40, archived: 1 }),
    findWords: async (_chatId, phrase) => ({
      messages: messages.filter(({ text }) => phrase.isIn(text)).length,
      others: now.others.filter((text) => phrase.isIn(text)).length,
      files: [],
    }),
    async eraseWords(_chatId, phrase, by) {
      done.push('eraseWords');
      for (const message of messages) message.text = phrase.replacedIn(message.text, by);
      now.others = now.others.map((text) => phrase.replacedIn(text, by));
    },
    endErasing: async (_chatId, phrase) =>
      void done.push(phrase === null ? 'endErasing, as after a crash' : 'endErasing'),
    view: async (room, personaId) => ({
      ...{ room, personaId, resetAt: now.resetAt, windowAfter: BEGINNING, flushedTo: BEGINNING },
      ...{ summary: null, measured: null, tainted: false, revision: 0 },
    }),
    window: async ({ room, personaId }) => ({
      messages: messages.map((message) => ({ ...message, position: BEGINNING, addressed: true })),
      steps,
      more: false,
      view: await store.view(room, personaId),
    }),
    counts: async () => ({ waiting: 0, running: 0, undelivered: 0, parked: 0 }),
  };

  const services: StandIn['services'] = {
    ...{ memory, archives: shelf, personas, clock, log, commands: COMMANDS },
    // A verb that no command is known to use is not there, and whoever calls it fails.
    store: store as Store,
    mine: new Set(),
    journal: { caughtUp: async () => {} },
    owner: 'test',
    newCallCode: () => 'ABC234',
    redact: (text) => text,
    metrics: quietMetrics,
    speech: null,
    jobs: NO_JOBS,
    settings: SETTINGS,
    portraits: NO_PORTRAITS,
    lorebooks: { booksFor: async () => ({ own: null, others: [] }) },
    cards: { isCard: async () => false, import: async () => ({ kind: 'other' }) },
    scanner: createScanner({ run: async () => [] }, () => 0),
    chatFiles: {
      setTitle: async () => {},
      addAlias: async () => {},
      resolve: async () => null,
      prepare: async () => {},
      notes: async () => NO_NOTES,
      setLoreOff: async () => {},
      setNote: async () => {},
      setPerson: async () => {},
    },
    model: {
      async *stream() {
        yield* [];
        throw new Error('commands ask no model');
      },
      contextTokens: () => 100_000,
      check: async () => ({ identity: 'none', warnings: [] }),
    },
    dailyLimits: {
      statuses: async () => [],
      reached: async () => null,
      meter: () => {
        throw new Error('commands ask no model');
      },
    },
    toolsFor: () => ({ tools: [], descriptions: [], tokens: 0 }),
    labelOf: (name) => name,
    streams: () => false,
    newId: () => 'id',
    newPairingCode: () => 'ABCDEFGH',
    recall: NO_RECALL,
    records: NO_RECORDS,
    exports: NO_EXPORTS,
    media: NO_MEDIA,
    clipboard: {
      items: async () => [],
      shown: async () => '',
      add: async (_, item) => ({ kind: 'added', items: [item] }),
      remove: async () => ({ removed: [], items: [] }),
      clear: async () => 0,
    },
    audit: { record: async () => {}, note: async () => {} },
    windows: {
      halt: async (room: string, personaId: string) => void done.push(`halt ${room} ${personaId}`),
      haltChat: async (chatId: string) => void done.push(`halt all of ${chatId}`),
      async close(_chatId: string, personaId: string) {
        if (now.closeFails) throw new Fault('memory_unavailable', 'no space');
        done.push(`close ${personaId}`);
      },
      copy: async () =>
        typeof now.copied === 'string' ? now.copied : now.copied && { isOld: false, ...now.copied },
    } as unknown as CommandCall['windows'],
    deliver: {} as CommandCall['deliver'],
    channels: new Map(),
    zone: createZone('UTC'),
    rulesFor: () => ({
      ...{ direct: 'open', groups: 'open', chats: [], owners: [], controlChats: [], requireMention: true },
    }),
    facts: { version: '0', model: 'm', startedAt: 0 },
    sizes: async () => ({ store: { bytes: 0, free: 0, rows: {}, jobs: {} }, media: 0 }),
  };

  return {
    ...{
      services,
      clock,
      tiers,
      files,
      messages,
      versions,
      turns,
      traces,
      steps,
      archives,
      now,
      done,
      logged,
    },
    run(text, more = {}) {
      const [, name = '', argument = ''] = /^\/(\w+)\s*([\s\S]*)$/.exec(text) ?? [];
      const call: CommandCall = {
        ...services,
        command: commandOf({ name, argument, ...more }),
        isOwner: true,
        mayChange: async () => 'yes',
        async interruptTurns() {
          done.push('interrupt');
          now.onInterrupt();
        },
      };
      const command = COMMANDS.find((each) => each.name === name);
      if (!command) throw new Error(`no command ${name}`);
      return command.run(call);
    },
  };
}

export function commandOf(more: Partial<StoredCommand>): StoredCommand {
  return {
    ...{
      id: 1,
      name: 'memory',
      argument: '',
      room: CHAT,
      platformMessageId: '77',
      afterMessage: 5,
      tries: 1,
      crashes: 0,
    },
    chat: {
      ...{ id: CHAT, channel: 'test', account: 'bot', address: '1', kind: 'direct', title: 'Anna' },
      activePersona: 'default',
    },
    sender: { id: 'test_anna', name: 'Anna', administrator: false },
    ...more,
  };
}

export function messageOf(id: number, text: string, more: Partial<StoredMessage> = {}): StoredMessage {
  return {
    ...{ id, text, room: CHAT, sentAt: Date.UTC(2026, 10, 20, 9, id), receivedAt: 0, turnId: null },
    author: { kind: 'person', id: 'test_anna', name: 'Anna', administrator: false },
    ...{ platformMessageId: String(id), mentionsBot: false, replyTo: null, edited: false },
    ...more,
  };
}

export function versionOf(more: Partial<Version>): Version {
  return {
    ...{
      id: 'v1',
      chatId: CHAT,
      personaId: 'default',
      file: 'default/MEMORY.md',
      tier: 1,
      before: '',
      after: '',
    },
    ...{ at: Date.UTC(2026, 10, 21, 8, 0), cause: { kind: 'turn', personaId: 'default', turnId: 't1' } },
    ...more,
  };
}
