/**
 * Puts one persona's memory in order: a model rewrites a draft of its tiers, with the memory tools alone; the draft is
 * checked, and replaces the tiers only if nobody has changed them meanwhile, all at once. What was replaced is kept as
 * versions that are undone together.
 */
import { cutAt } from '../../core/cut.js';
import { localMidnight, type Zone } from '../../core/dates.js';
import { describe } from '../../core/errors.js';
import type { MemoryOwner } from '../../core/memory.js';
import { estimateTokens, type ModelMessage, type Usage } from '../../core/model.js';
import { personaName } from '../../core/persona.js';
import { seenKey, type ToolSet } from '../../core/tool.js';
import { askerOf } from '../asker.js';
import { broughtBy } from '../commands/memory-lines.js';
import type { Subject } from '../compaction/subject.js';
import { unstored } from '../compaction/unstored.js';
import { requestTokens, type Services } from '../services.js';
import { roomForSteps } from '../turn/bounds.js';
import { tokensOf } from '../turn/tokens.js';
import { runTurn } from '../turn/turn.js';
import { type Draft, draftOf, TIERS, type Tiers } from './draft.js';
import { objection } from './guard.js';
import { consolidationRequest } from './request.js';

/** What is to be done for one persona, ready to be asked. */
export interface Prepared {
  before: Tiers;
  draft: Draft;
  tools: ToolSet;
  messages: ModelMessage[];
  mayChangeTier1: boolean;
  /** Our estimate of the request, in tokens. */
  tokens: number;
}

export type ConsolidationEnd =
  | { kind: 'written' | 'unchanged'; usage: Usage | null }
  /** The result loses too much, is too long, or somebody changed the memory meanwhile: nothing was written. */
  | { kind: 'refused'; reason: string; usage: Usage | null }
  /** The model gave no result. */
  | { kind: 'failed'; reason: string; usage: Usage | null }
  /** Ended from outside: a reset, a stop. */
  | { kind: 'dropped' };

const DAYS = 7;
const DAILY_CHARS = 12_000;
const DAY_CHARS = 4_000;
const MOST_ROUNDS = 8;
const MOST_VERSIONS = 1_000;
const LINE_CHARS = 120;

/** null if there is nothing to put in order. */
export async function prepare(
  services: Services,
  subject: Subject,
  memoryChars: number,
): Promise<Prepared | null> {
  const { memory, zone, clock } = services;
  const { chat, personaId, personas } = subject;
  const owner = { chatId: chat.id, personaId };
  const [first, second, third] = await Promise.all(TIERS.map((tier) => memory.readTier(owner, tier)));
  const before: Tiers = { 1: first ?? '', 2: second ?? '', 3: third ?? '' };
  const days = await lastDays(services, owner);
  if (TIERS.every((tier) => before[tier] === '') && days.length === 0) return null;
  const draft = draftOf(memory, before);
  const { tier1By } = services.settings;
  // At night nobody asks for anything: what changes on the word of some stays as it is.
  const mayChangeTier1 = tier1By === 'anyone' || (tier1By === 'administrators' && chat.kind === 'direct');
  const turn = { kind: 'flush', chatId: chat.id, personaId, senderId: '', allowed: null } as const;
  const place = { channel: chat.channel, chatKind: chat.kind };
  const tools = services.toolsFor({ ...turn, ...place, draft: draft.memory });
  const messages = consolidationRequest({
    name: personaName(personas, personaId),
    today: zone.date(clock.now()),
    principles: await memory.principles(),
    tiers: before,
    known: await knownDays(services, owner, before),
    days,
    memoryChars,
    mayChangeTier1,
  });
  return { before, draft, tools, messages, mayChangeTier1, tokens: tokensOf(messages) + tools.tokens };
}

export async function consolidate(
  services: Services,
  subject: Subject,
  { before, draft, tools, messages, tokens, mayChangeTier1 }: Prepared,
  { changeId, memoryChars, signal }: { changeId: string; memoryChars: number; signal: AbortSignal },
): Promise<ConsolidationEnd> {
  const { chat, room, personaId, personas } = subject;
  const owner = { chatId: chat.id, personaId };
  const isTainted = await isFromOutside(services, owner);
  const cause = {
    kind: 'night',
    personaId,
    turnId: changeId,
    ...(isTainted && { tainted: true as const }),
  } as const;
  const persona = personas.find(({ id }) => id === personaId);
  const most = requestTokens(services, persona?.model ?? null);
  const outcome = await runTurn(services, {
    turnId: `night-${services.newId()}`,
    room,
    tools,
    maxToolRounds: MOST_ROUNDS,
    bounds: { ...services.settings.callLimits, tokens: roomForSteps(most, tokens) },
    persona: { model: persona?.model ?? null, temperature: persona?.temperature ?? null },
    messages,
    seen: new Map(TIERS.map((tier) => [seenKey(chat.id, personaId, tier), { text: before[tier] }])),
    authorisation: {
      ...{ ...owner, channel: chat.channel, senderId: '', controlChats: [] },
      asker: askerOf(services, chat, async () => []),
    },
    cause,
    record: { room: null, turnId: null, parentEventId: null },
    trust: { isTainted, isNamed: () => false },
    approvalMs: null,
    steps: [],
    // Steps are not stored: only the whole result is written.
    ...unstored(services, signal),
    signal,
  });
  if (outcome.kind === 'dropped' || outcome.kind === 'suspended' || signal.aborted)
    return { kind: 'dropped' };
  const { usage } = outcome;
  if (outcome.kind === 'failed') return { kind: 'failed', reason: describe(outcome.fault), usage };
  const after = draft.tiers;
  if (TIERS.every((tier) => after[tier] === before[tier])) return { kind: 'unchanged', usage };
  const reason = objection(before, after, { memoryChars, mayChangeTier1 });
  if (reason !== null) return { kind: 'refused', reason, usage };
  // All three are compared, for a line may have moved from one to another.
  const tiers = TIERS.map((tier) => ({ tier, content: after[tier], seen: { text: before[tier] } }));
  const who = `${chat.id}/${personaId}`;
  await services.audit.note({ kind: 'tool', who, where: chat.id, what: 'memory put in order', word: null });
  const written = await services.memory.writeTiers(owner, tiers, { cause, signal });
  if (written === 'written') return { kind: 'written', usage };
  const why = written === 'changed' ? 'it was changed meanwhile' : 'it holds the marker of a cut text';
  return { kind: 'refused', reason: why, usage };
}

async function lastDays(
  { memory, zone, clock }: Pick<Services, 'memory' | 'zone' | 'clock'>,
  { chatId }: MemoryOwner,
): Promise<{ date: string; text: string }[]> {
  const days: { date: string; text: string }[] = [];
  let left = DAILY_CHARS;
  for (const date of datesOfLastDays(zone, clock.now())) {
    if (left <= 0) break;
    const text = (await memory.readDaily(chatId, date)).trim();
    if (text === '') continue;
    const most = Math.min(DAY_CHARS, left);
    const shown = text.length <= most ? text : `${cutAt(text, most)} …`;
    left -= shown.length;
    days.push({ date, text: shown });
  }
  return days;
}

/** Newest first. */
function datesOfLastDays(zone: Zone, now: number): string[] {
  const [year = 0, month = 0, day = 0] = zone.date(now).split('-').map(Number);
  return Array.from({ length: DAYS }, (_, back) => zone.date(localMidnight(year, month, day - back, zone)));
}

/** Earlier nights are left out: they only moved and reworded. */
async function knownDays(
  { store, zone }: Pick<Services, 'store' | 'zone'>,
  owner: MemoryOwner,
  tiers: Tiers,
): Promise<{ date: string; line: string }[]> {
  const versions = (await store.versions({ ...owner, most: MOST_VERSIONS })).filter(
    ({ cause }) => cause.kind !== 'night',
  );
  const file = `${owner.personaId}/MEMORY.md`;
  return TIERS.flatMap((tier) =>
    tiers[tier].split('\n').flatMap((raw) => {
      const text = raw.trim();
      const version =
        text === '' ? null : broughtBy({ kind: 'remembered', file, tier, text, cut: false }, versions);
      return version ? [{ date: zone.date(version.at), line: cutAt(text, LINE_CHARS) }] : [];
    }),
  );
}

/** Whether words from outside had been read when any of what the night is given was written: it may stand elsewhere then. */
async function isFromOutside(
  { memory, zone, clock }: Pick<Services, 'memory' | 'zone' | 'clock'>,
  owner: MemoryOwner,
): Promise<boolean> {
  const origins = await Promise.all([
    memory.originOf(owner),
    ...datesOfLastDays(zone, clock.now()).map((date) => memory.originOfDay(owner.chatId, date)),
  ]);
  return origins.includes('outside');
}

/** What a request used, by our estimate where the server counted nothing. */
export function tokensUsed(prepared: Prepared, end: ConsolidationEnd): number {
  if (end.kind !== 'dropped' && end.usage) return end.usage.inputTokens + end.usage.outputTokens;
  const { draft, before } = prepared;
  const written = TIERS.filter((tier) => draft.tiers[tier] !== before[tier]);
  const text = written.map((tier) => draft.tiers[tier]).join('\n');
  return prepared.tokens * (written.length > 0 ? 2 : 1) + estimateTokens(text);
}
