/**
 * Daily limits (`limits`), and the meters through which models are asked. A meter checks the limits before each request
 * and counts its usage afterwards. Usage counts at once, but is stored with the request's result or at the end of the
 * work: a crash loses what one turn has used so far, and concurrent requests may exceed a limit together. Warnings of
 * model clients are passed on to the owners.
 */

import { estimateTokens } from '../core/cut.js';
import { describe, Fault, type FaultCode } from '../core/errors.js';
import { type ChatId, type PersonaId, roomParts } from '../core/ids.js';
import type { ModelEvent, ModelRequest, Prices, Usage } from '../core/model.js';
import type { Amount, Spent } from '../core/store.js';
import type {
  BaseServices,
  DailyLimitSettings,
  DailyLimits,
  Deliver,
  LimitStatus,
  MeteredModel,
  Payer,
} from './services.js';
import { addedUsage, spentOn, tokensOf } from './turn/tokens.js';

export const MILLION = 1_000_000;

const CODES: Record<LimitStatus['scope'], FaultCode> = {
  day: 'limit_day',
  chat: 'limit_chat',
  persona: 'limit_persona',
  person: 'limit_person',
};

/** The key of a limit in the configuration's section `limits`. */
export function limitName({ unit, scope }: LimitStatus): string {
  return `${unit}_per_${scope}`;
}

export function limitFault(limit: LimitStatus): Fault {
  return new Fault(CODES[limit.scope], `limits.${limitName(limit)} is reached for today`);
}

export function isLimit({ code }: Fault): boolean {
  return Object.values(CODES).includes(code);
}

/** Usage counted by a meter but not stored yet. */
interface Account {
  payer: Payer;
  due: Usage | null;
}

export function createDailyLimits(services: BaseServices & { deliver: Deliver }): DailyLimits {
  const { store, clock } = services;
  const set = limitsSet(services.settings.limits);
  const countsPeople = set.some(({ scope }) => scope === 'person');
  /** Counts towards limits before it is stored. */
  const unpaid = new Set<Account>();

  async function statuses(payer: Payer): Promise<LimitStatus[]> {
    if (set.length === 0) return [];
    const { room, personId } = payer;
    const { chatId } = roomParts(room);
    const stored = await store.spentOn({ chatId, personId, now: clock.now() });
    const ofPersona = stored.personas.get(payer.personaId) ?? NOTHING;
    const used: Record<LimitStatus['scope'], Amount> = {
      day: sumOf([stored.all, ...dueFrom(() => true)]),
      chat: sumOf([...stored.personas.values(), ...dueFrom((other) => isIn(chatId, other))]),
      persona: sumOf([
        ofPersona,
        ...dueFrom((other) => isIn(chatId, other) && other.personaId === payer.personaId),
      ]),
      person: sumOf([stored.person, ...dueFrom((other) => other.personId === personId)]),
    };
    return set
      .filter(({ scope }) =>
        scope === 'persona' ? !payer.undecided : scope !== 'person' || personId !== null,
      )
      .map(({ scope, unit, most }) => ({
        scope,
        unit,
        most,
        used: unit === 'tokens' ? used[scope].tokens : used[scope].cost,
      }));
  }

  function dueFrom(whose: (payer: Payer) => boolean): Amount[] {
    return [...unpaid].filter(({ payer }) => whose(payer)).map(({ due }) => amountOf(due));
  }

  async function reached(payer: Payer): Promise<LimitStatus | null> {
    return (await statuses(payer)).find(({ used, most }) => used >= most) ?? null;
  }

  const meter = (payer: Payer) => createMeter(services, payer, reached, unpaid, countsPeople);
  return { statuses, reached, meter };
}

function createMeter(
  { store, clock, log, model, deliver }: BaseServices & { deliver: Deliver },
  payer: Payer,
  reached: DailyLimits['reached'],
  unpaid: Set<Account>,
  countsPeople: boolean,
): MeteredModel {
  const { room, personaId, personId } = payer;
  const account: Account = { payer, due: null };

  async function* stream(request: ModelRequest, signal: AbortSignal): AsyncGenerator<ModelEvent> {
    const limit = await reached(payer);
    if (limit) {
      yield { kind: 'failed', fault: limitFault(limit) };
      return;
    }
    const isAsked = !signal.aborted;
    let written = '';
    for await (const event of model.stream(request, signal)) {
      if (event.kind === 'text') written += event.delta;
      if (event.kind === 'done') add(countedBy(event) ?? estimated(request, answerOf(event)), event.prices);
      if (event.kind === 'failed' && isAsked && (signal.aborted || hasWorked(event.fault, written)))
        add(estimated(request, written), event.prices);
      if (event.kind === 'done' || event.kind === 'failed')
        for (const notice of event.notices ?? []) await deliver.tellOwners(notice);
      yield event;
    }
  }

  function add(usage: Usage, prices: Prices | undefined): void {
    account.due = addedUsage(account.due, prices ? { ...usage, cost: costOf(usage, prices) } : usage);
    unpaid.add(account);
  }

  function spent(by: PersonaId): Spent | undefined {
    const { due: usage } = account;
    if (usage === null) return undefined;
    return countsPeople && personId !== null ? { personaId: by, personId, usage } : { personaId: by, usage };
  }

  function paid(): void {
    account.due = null;
    unpaid.delete(account);
  }

  return {
    model: { ...model, stream },
    due: () => account.due,
    spent,
    paid,
    async settle() {
      const left = spent(personaId);
      if (!left) return;
      await store.spend({ ...left, room, now: clock.now() }).catch((error) => {
        log.error({ err: error, room, why: describe(error) }, 'model usage could not be stored');
      });
      paid();
    },
  };
}

const NOTHING: Amount = { tokens: 0, cost: 0 };

/** The configured limits, widest first. */
function limitsSet(limits: DailyLimitSettings): Omit<LimitStatus, 'used'>[] {
  const all = [
    ['day', limits.tokensPerDay, limits.moneyPerDay],
    ['chat', limits.tokensPerChat, limits.moneyPerChat],
    ['persona', limits.tokensPerPersona, limits.moneyPerPersona],
    ['person', limits.tokensPerPerson, limits.moneyPerPerson],
  ] as const;
  return all.flatMap(([scope, tokens, money]) => [
    ...(tokens === null ? [] : [{ scope, unit: 'tokens' as const, most: tokens }]),
    ...(money === null ? [] : [{ scope, unit: 'money' as const, most: money * MILLION }]),
  ]);
}

function isIn(chatId: ChatId, { room }: Payer): boolean {
  return roomParts(room).chatId === chatId;
}

function amountOf(usage: Usage | null): Amount {
  return usage ? { tokens: usage.inputTokens + usage.outputTokens, cost: usage.cost ?? 0 } : NOTHING;
}

function sumOf(amounts: Amount[]): Amount {
  return amounts.reduce((a, b) => ({ tokens: a.tokens + b.tokens, cost: a.cost + b.cost }), NOTHING);
}

/** Cached tokens are charged in full, because servers' discounts differ. */
function costOf({ inputTokens, outputTokens }: Usage, { input, output }: Prices): number {
  return Math.ceil(inputTokens * input + outputTokens * output);
}

/** null if the server does not count, or reports zero. */
function countedBy(event: ModelEvent & { kind: 'done' }): Usage | null {
  const usage = spentOn(event);
  return usage && usage.inputTokens + usage.outputTokens > 0 ? usage : null;
}

/** A server that does not count must not evade the limits. */
function estimated({ messages, tools }: ModelRequest, written: string): Usage {
  const described = tools.length === 0 ? 0 : estimateTokens(JSON.stringify(tools));
  return { inputTokens: tokensOf(messages) + described, outputTokens: estimateTokens(written) };
}

function answerOf({ text, calls }: ModelEvent & { kind: 'done' }): string {
  return text + calls.map((call) => call.name + call.arguments).join('');
}

/** A failed request is charged if the server has worked on it. */
function hasWorked({ code }: Fault, written: string): boolean {
  return written !== '' || code === 'model_empty' || code === 'model_endless' || code === 'model_silent';
}
