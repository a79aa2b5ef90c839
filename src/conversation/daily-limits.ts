/** Meters of models: they check the daily limits before each request and count its usage; a crash loses what one turn has used so far. */
import { estimateTokens } from '../core/cut.js';
import { describe, Fault, type FaultCode } from '../core/errors.js';
import { type PersonaId, roomParts } from '../core/ids.js';
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
import { addedUsage, spentOn, tokensOf, writtenCalls } from './turn/tokens.js';

export function createDailyLimits(services: BaseServices & { deliver: Deliver }): DailyLimits {
  const limits = limitsIn(services.settings.limits);
  const countsPeople = limits.some(({ scope }) => scope === 'person');
  /** Usage that counts towards limits before it is stored. */
  const unpaid = new Set<Account>();
  const statuses = async (payer: Payer) =>
    limits.length === 0 ? [] : statusesOf(services, limits, unpaid, payer);
  const reached = async (payer: Payer) =>
    (await statuses(payer)).find(({ used, most }) => used >= most) ?? null;
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
      if (event.kind === 'done') {
        const { text, calls, prices } = event;
        const usage = spentOn(event);
        const isCounted = usage !== null && usage.inputTokens + usage.outputTokens > 0;
        add(isCounted ? usage : estimated(request, text + writtenCalls(calls)), prices);
      }
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
    model: {
      stream,
      contextTokens: (name) => model.contextTokens(name),
      check: (signal) => model.check(signal),
    },
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

/** Cached tokens are charged in full, because servers' discounts differ. */
function costOf({ inputTokens, outputTokens }: Usage, { input, output }: Prices): number {
  return Math.ceil(inputTokens * input + outputTokens * output);
}

/** A server that does not count must not evade the limits. */
function estimated({ messages, tools }: ModelRequest, written: string): Usage {
  const described = tools.length === 0 ? 0 : estimateTokens(JSON.stringify(tools));
  return { inputTokens: tokensOf(messages) + described, outputTokens: estimateTokens(written) };
}

/** A failed request is charged if the server has worked on it. */
function hasWorked({ code }: Fault, written: string): boolean {
  return written !== '' || code === 'model_empty' || code === 'model_endless' || code === 'model_silent';
}

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

type Limit = Omit<LimitStatus, 'used'>;

/** The configured limits, widest first. */
function limitsIn(limits: DailyLimitSettings): Limit[] {
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

function amountOf({ inputTokens, outputTokens, cost = 0 }: Usage): Amount {
  return { tokens: inputTokens + outputTokens, cost };
}

/** A payer's limits, with the use of each that is stored or due. */
async function statusesOf(
  { store, clock }: BaseServices,
  limits: Limit[],
  unpaid: ReadonlySet<Account>,
  { room, personaId, personId, undecided }: Payer,
): Promise<LimitStatus[]> {
  const { chatId } = roomParts(room);
  const now = clock.now();
  const stored = await store.usage({ chatId, personId, since: now, now });
  const sum = (paid: readonly Amount[], isCounted: (payer: Payer) => boolean): Amount => {
    const due = [...unpaid].flatMap(({ payer, due: usage }) =>
      usage !== null && isCounted(payer) ? [amountOf(usage)] : [],
    );
    return [...paid, ...due].reduce(
      (all, { tokens, cost }) => ({ tokens: all.tokens + tokens, cost: all.cost + cost }),
      { tokens: 0, cost: 0 },
    );
  };
  const here = stored.personas.map(({ personaId: of, usage }) => ({ of, ...amountOf(usage) }));
  const isHere = (payer: Payer) => roomParts(payer.room).chatId === chatId;
  const isOfPersona = (payer: Payer) => isHere(payer) && payer.personaId === personaId;
  const used: Record<LimitStatus['scope'], Amount> = {
    day: sum([stored.all], () => true),
    chat: sum(here, isHere),
    persona: sum(
      here.filter(({ of }) => of === personaId),
      isOfPersona,
    ),
    person: sum([stored.person], (payer) => payer.personId === personId),
  };
  return limits.flatMap((limit) => {
    const { scope, unit } = limit;
    if ((scope === 'persona' && undecided) || (scope === 'person' && personId === null)) return [];
    return [{ ...limit, used: unit === 'tokens' ? used[scope].tokens : used[scope].cost }];
  });
}
