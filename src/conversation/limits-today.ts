/** The daily limits (`limits`), and how much of them is used today. */
import { Fault, type FaultCode } from '../core/errors.js';
import { roomParts } from '../core/ids.js';
import type { Usage } from '../core/model.js';
import type { Amount } from '../core/store.js';
import type { BaseServices, DailyLimitSettings, LimitStatus, Payer } from './services.js';

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
export interface Account {
  payer: Payer;
  due: Usage | null;
}

type Limit = Omit<LimitStatus, 'used'>;

/** The configured limits, widest first. */
export function limitsIn(limits: DailyLimitSettings): Limit[] {
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

/** The limits that concern a payer, with what is stored or due of them. */
export async function statusesOf(
  { store, clock }: BaseServices,
  limits: Limit[],
  unpaid: ReadonlySet<Account>,
  { room, personaId, personId, undecided }: Payer,
): Promise<LimitStatus[]> {
  const { chatId } = roomParts(room);
  const stored = await store.spentOn({ chatId, personId, now: clock.now() });
  const sum = (paid: Iterable<Amount | undefined>, isCounted: (payer: Payer) => boolean): Amount => {
    const due = [...unpaid].flatMap(({ payer, due: usage }) =>
      usage !== null && isCounted(payer)
        ? [{ tokens: usage.inputTokens + usage.outputTokens, cost: usage.cost ?? 0 }]
        : [],
    );
    return [...paid, ...due].reduce<Amount>(
      (all, each) => ({ tokens: all.tokens + (each?.tokens ?? 0), cost: all.cost + (each?.cost ?? 0) }),
      { tokens: 0, cost: 0 },
    );
  };
  const isHere = (payer: Payer) => roomParts(payer.room).chatId === chatId;
  const isOfPersona = (payer: Payer) => isHere(payer) && payer.personaId === personaId;
  const used: Record<LimitStatus['scope'], Amount> = {
    day: sum([stored.all], () => true),
    chat: sum(stored.personas.values(), isHere),
    persona: sum([stored.personas.get(personaId)], isOfPersona),
    person: sum([stored.person], (payer) => payer.personId === personId),
  };
  return limits.flatMap((limit) => {
    const { scope, unit } = limit;
    if ((scope === 'persona' && undecided) || (scope === 'person' && personId === null)) return [];
    return [{ ...limit, used: unit === 'tokens' ? used[scope].tokens : used[scope].cost }];
  });
}
