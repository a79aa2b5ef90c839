/**
 * The page's routes for operators: channels, pairings, schedules, embeddings, usage, audit log, log and configuration.
 * Nothing is gathered before somebody asks.
 */
import { z } from '@hono/zod-openapi';
import type { AccessStore, PairingRequest } from '../core/access.js';
import { BOARD_OWNER, type OperationsFeed, type Spending } from '../core/board.js';
import type { ChannelStatus, Part } from '../core/channel.js';
import { inOneLine } from '../core/cut.js';
import type { Job, JobStore, Jobs } from '../core/jobs.js';
import type { Audit, AuditEntry } from '../core/journal.js';
import { type Personas, personaName } from '../core/persona.js';
import { type BoardApi, reply } from './api.js';
import { channelItem } from './channel-items.js';
import { bodyIn, fieldsIn, refused } from './own.js';
import type {
  AuditPage,
  ConfigurationNow,
  EmbeddingNow,
  LogLines,
  OperationsLevel,
  OperationsNow,
  PairingsNow,
  ScheduleItem,
  UsageNow,
} from './protocol-operations.js';

export interface OperationsParts {
  channels: readonly { name: string; status(): ChannelStatus }[];
  labelOf(channel: string): string;
  /** Of several gateways, the other one that has the channel. */
  heldBy(channel: string): string | null;
  feed: OperationsFeed;
  access: AccessStore;
  /** Whether the configuration lets this one in anyway. */
  isListed(request: PairingRequest): boolean;
  /** Owners by the configuration. */
  listedOwners: readonly string[];
  welcome: { member: Part; owner: Part };
  /** Sends what waits for this chat. */
  wake(chat: string): void;
  jobs: Jobs;
  job: JobStore['jobs'];
  personas: Personas;
  embedding(): Promise<EmbeddingNow>;
  embeddingLevel(): OperationsLevel;
  usage: { zone: { date(time: number): string }; limits: Record<string, number>; hasMoney: boolean };
  /** The newest entries of lower numbers than `before`, oldest first. */
  auditEntries(before: number, most: number): Promise<{ lines: AuditLineOf[]; strange: number }>;
  log: { read(after: number): { n: number; json: string }[]; count(): number; level: string };
  configuration(): ConfigurationNow;
  /** Secrets that were learnt after something was written. */
  redact(text: string): string;
  audit: Audit;
  now(): number;
}

interface AuditLineOf extends AuditEntry {
  n: number;
  at: string;
}

const MOST_JOBS = 200;
const NAME_CHARS = 60;
const PROMPT_CHARS = 300;
const AUDIT_ENTRIES = 30;
const DAY_MS = 86_400_000;
const DAYS = 30;
const QUIET_DAYS = 7;
const REQUEST_OVER = {
  error: 'That request was decided already, or it ran out. They may ask again.',
};

export function addOperations(api: BoardApi, parts: OperationsParts): void {
  api.get('/api/board/operations', async () => reply(200, await readNow(parts)));
  api.get('/api/board/operations/level', async () => reply(200, { level: await levelOf(parts) }));
  api.get('/api/board/operations/usage', async () => reply(200, await readUsage(parts)));
  api.get('/api/board/operations/configuration', () => reply(200, parts.configuration()));
  api.get('/api/board/operations/log', (context) => {
    const { after } = fieldsIn(context, z.object({ after: z.coerce.number().int().min(0).default(0) }));
    return reply(200, readLines(parts, after));
  });
  api.get('/api/board/operations/audit', async (context) => {
    const Before = z.object({ before: z.coerce.number().int().min(1).optional() });
    const { before = Number.POSITIVE_INFINITY } = fieldsIn(context, Before);
    return reply(200, await readAudit(parts, before));
  });
  addPairings(api, parts);
  addSchedules(api, parts);
}

async function readNow(parts: OperationsParts): Promise<OperationsNow> {
  const { channels, labelOf, heldBy, feed } = parts;
  const [pairings, found, embedding] = await Promise.all([
    readPairings(parts),
    // One more shows whether there are more.
    feed.openJobs(MOST_JOBS + 1),
    parts.embedding(),
  ]);
  return {
    channels: channels.map(({ name, status }) =>
      channelItem({ name, label: labelOf(name) }, status(), heldBy(name)),
    ),
    pairings,
    schedules: {
      items: await itemsOf(found.slice(0, MOST_JOBS), parts),
      isCut: found.length > MOST_JOBS,
    },
    embedding,
  };
}

/** Cheap: asked by every page that is open. */
async function levelOf(parts: OperationsParts): Promise<OperationsLevel> {
  const { channels, heldBy, access, isListed } = parts;
  const levels = channels.map(
    ({ name, status }) => channelItem({ name, label: name }, status(), heldBy(name)).level,
  );
  levels.push(parts.embeddingLevel());
  if (levels.includes('bad')) return 'bad';
  const waiting = await access.waiting(parts.now());
  return levels.includes('warn') || waiting.some((each) => !isListed(each)) ? 'warn' : 'good';
}

// ── Pairings ────────────────────────────────────────────────────────────────────────────────────────────────

async function readPairings(parts: OperationsParts): Promise<PairingsNow> {
  const { access, feed, isListed, listedOwners } = parts;
  const waiting = (await access.waiting(parts.now())).filter((each) => !isListed(each));
  const letIn = await feed.letIn();
  const listed = listedOwners.map((id) => ({
    ...{ id, kind: 'sender' as const, name: null, isOwner: true, since: null, listed: true },
  }));
  return {
    waiting: waiting.map(({ code, kind, id, name, expiresAt }) => ({
      ...{ code, kind, id, name: shownName(name), until: expiresAt },
    })),
    letIn: [
      ...listed,
      ...letIn
        .filter(({ id }) => !listedOwners.includes(id))
        .map(({ id, kind, name, owner, since }) => ({
          ...{ id, kind, name: name && shownName(name), isOwner: owner, since, listed: false },
        })),
    ],
  };
}

function addPairings(api: BoardApi, parts: OperationsParts): void {
  const { access, feed, welcome, audit, wake } = parts;
  const record = (what: string) =>
    audit.record({ kind: 'approval', who: BOARD_OWNER, where: null, what, word: BOARD_OWNER });
  const Which = z.strictObject({ id: z.string().min(1).max(300) });
  const requestOf = async (id: string) =>
    (await access.waiting(parts.now())).find((each) => each.id === id) ?? null;

  api.post('/api/board/pairings/approve', async (context) => {
    const { id } = await bodyIn(context, Which);
    const waits = await requestOf(id);
    if (waits === null) throw refused(409, REQUEST_OVER);
    await record(`${id} is let in`);
    const now = parts.now();
    // A group has no code. A code that another tab used meanwhile is none any more.
    const codeOrId = waits.kind === 'group' ? id : waits.code;
    // Only the command line and the configuration make owners.
    const approved = await access.approve({ codeOrId, looksLike: null, asOwner: false, now, told: welcome });
    if (approved === null) throw refused(409, REQUEST_OVER);
    if (approved.toldIn !== null) wake(approved.toldIn);
    return reply(200, { id: approved.id });
  });
  api.post('/api/board/pairings/remove', async (context) => {
    const { id } = await bodyIn(context, Which);
    const waits = await requestOf(id);
    const known = (await feed.letIn()).find((each) => each.id === id);
    if (known?.owner) {
      const error = `${id} is an owner: coterie pair remove ${id} takes that back, on the gateway’s machine.`;
      throw refused(422, { error });
    }
    if (waits === null && known === undefined) throw refused(409, REQUEST_OVER);
    await record(known ? `the approval of ${id} is taken back` : `${id} is refused`);
    const now = parts.now();
    const quietUntil = now + QUIET_DAYS * DAY_MS;
    const isStranger = known === undefined && waits?.kind === 'sender';
    const what = isStranger ? { code: waits.code, now, quietUntil } : { id };
    if (!(await access.refuse(what))) throw refused(409, REQUEST_OVER);
    return reply(200, { id });
  });
}

/** People choose their own names. */
function shownName(name: string): string {
  return inOneLine(name, NAME_CHARS) || '?';
}

// ── Schedules ───────────────────────────────────────────────────────────────────────────────────────────────

async function itemsOf(
  jobs: (Job & { title: string | null })[],
  { personas }: OperationsParts,
): Promise<ScheduleItem[]> {
  const chats = [...new Set(jobs.map(({ chatId }) => chatId))];
  const there = new Map(
    await Promise.all(chats.map(async (chat) => [chat, await personas.list(chat)] as const)),
  );
  return jobs.flatMap(({ state, kind, value, ...job }) => {
    if (state === 'done' || state === 'cancelled') return [];
    const { id, n, chatId, title, nextAt, timezone, why, followUp, senderName } = job;
    return {
      ...{ id, n, chatId, title: title && shownName(title), state, why, nextAt, timezone },
      persona: shownName(personaName(there.get(chatId) ?? [], job.personaId)),
      setBy: followUp ? null : inOneLine(senderName, NAME_CHARS),
      prompt: inOneLine(job.prompt, PROMPT_CHARS),
      cron: kind === 'cron' ? value : null,
    };
  });
}

function addSchedules(api: BoardApi, { jobs, job, audit }: OperationsParts): void {
  const Which = z.object({
    id: z.string().min(1).max(100),
    what: z.enum(['pause', 'resume', 'cancel']),
  });
  api.post('/api/board/schedules/:id/:what', async (context) => {
    const { id, what } = fieldsIn(context, Which);
    const [found] = await job({ id });
    if (found === undefined) throw refused(404, { error: 'There is no such task any more.' });
    const { n, chatId: where } = found;
    const command = { kind: 'command', who: BOARD_OWNER, where, word: BOARD_OWNER } as const;
    await audit.record({ ...command, what: `/schedule ${what} ${n}` });
    const answer = await jobs[what](found);
    if (!answer.ok) throw refused(409, { error: answer.reason });
    return reply(200, { state: answer.job.state, nextAt: answer.job.nextAt });
  });
}

// ── Usage ───────────────────────────────────────────────────────────────────────────────────────────────────

async function readUsage({ feed, usage, now }: OperationsParts): Promise<UsageNow> {
  const at = now();
  const { days, chats, personas, today } = await feed.spending({ since: at - (DAYS - 1) * DAY_MS, now: at });
  const byDay = new Map(days.map(({ day, ...amount }) => [new Date(day).toISOString().slice(0, 10), amount]));
  const last = Date.parse(`${usage.zone.date(at)}T00:00:00Z`);
  const dates = Array.from({ length: DAYS }, (_, n) =>
    new Date(last - (DAYS - 1 - n) * DAY_MS).toISOString().slice(0, 10),
  );
  return {
    days: dates.map((day) => ({ day, ...(byDay.get(day) ?? { turns: 0, tokens: 0, cost: 0 }) })),
    chats: chats.map(({ chatId: id, title, ...amount }) => ({
      ...{ id, title: title && shownName(title) },
      ...amount,
    })),
    personas: personas.map(({ personaId: id, ...amount }) => ({ id, ...amount })),
    budgets: budgetsOf(usage.limits, today),
    hasMoney: usage.hasMoney || days.some(({ cost }) => cost > 0),
  };
}

/** The limits by their keys in config.yaml, each with the account that is nearest to it. */
function budgetsOf(
  limits: Record<string, number>,
  { personas, people }: Spending['today'],
): UsageNow['budgets'] {
  const accounts = {
    day: personas.map((each) => ({ of: null, ...each })),
    chat: personas.map((each) => ({ of: each.chatId, ...each })),
    persona: personas.map((each) => ({ of: `${each.chatId}/${each.personaId}`, ...each })),
    person: people.map((each) => ({ of: each.personId, ...each })),
  };
  return Object.entries(limits).flatMap(([key, most]) => {
    const [, unit, scope] = /^(tokens|money)_per_(day|chat|persona|person)$/.exec(key) ?? [];
    if (unit === undefined || scope === undefined) return [];
    const used = new Map<string | null, number>();
    for (const { of, tokens, cost } of accounts[scope as keyof typeof accounts]) {
      used.set(of, (used.get(of) ?? 0) + (unit === 'tokens' ? tokens : cost));
    }
    const [of, amount] = [...used].sort((a, b) => b[1] - a[1])[0] ?? [null, 0];
    return { key, unit: unit as 'tokens' | 'money', most, used: amount, of };
  });
}

// ── Audit log and log ───────────────────────────────────────────────────────────────────────────────────────

async function readAudit({ auditEntries, redact }: OperationsParts, before: number): Promise<AuditPage> {
  const { lines, strange } = await auditEntries(before, AUDIT_ENTRIES);
  return {
    entries: lines.reverse().map(({ n, at, kind, who, where, what, word, details = {} }) => ({
      ...{ n, at, kind, who: redact(who), where, what: redact(what), word },
      details: Object.entries(details).map(([name, value]): [string, string] => [name, redact(value)]),
    })),
    isEnd: lines.length < AUDIT_ENTRIES || lines.at(-1)?.n === 1,
    strange,
  };
}

const LEVELS = ['debug', 'info', 'warn', 'error'] as const;

function readLines({ log, redact }: OperationsParts, after: number): LogLines {
  // A number from before a restart lies ahead of all that there are.
  const lines = log.read(after > log.count() ? 0 : after);
  return {
    lines: lines.map(({ n, json }) => {
      const { level, time, msg, about, ...fields } = JSON.parse(redact(json));
      const more = Object.entries(about === undefined ? fields : { about }).map(
        ([name, value]) => `${name}: ${fieldInWords(value)}`,
      );
      const known = LEVELS.find((each) => each === level) ?? 'error';
      return { n, at: Date.parse(time), level: known, text: String(msg ?? ''), more: more.join('\n') };
    }),
    newest: log.count(),
    level: log.level,
  };
}

/** An error by its stack, whose first line has its words. */
function fieldInWords(value: unknown): string {
  if (typeof value === 'string') return value;
  const stack = typeof value === 'object' && value !== null && 'stack' in value ? value.stack : null;
  return typeof stack === 'string' ? stack : JSON.stringify(value);
}
