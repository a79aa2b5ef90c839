/**
 * What may be used in a day (`limits`), in words. Whoever asks a model does so through a purse (`purses.ts`): it looks at
 * the limits before each request, and counts afterwards what the request took.
 */
import { Fault, type FaultCode } from '../core/errors.js';
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { ModelClient, Usage } from '../core/model.js';
import type { Spent } from '../core/route-store.js';

/** null: there is no such limit. Money is in the unit of the prices. */
export interface Limits {
  messagesPerMinute: number | null;
  tokensPerChat: number | null;
  tokensPerPersona: number | null;
  tokensPerPerson: number | null;
  tokensPerDay: number | null;
  moneyPerChat: number | null;
  moneyPerPersona: number | null;
  moneyPerPerson: number | null;
  moneyPerDay: number | null;
}

/** For whom a model is asked. */
export interface Payer {
  room: RoomId;
  personaId: PersonaId;
  /** Whose words led to it; null: nobody's. */
  personId: ChatId | null;
  /** Which persona it is for is still to be decided: no persona's own limit counts. */
  undecided?: true;
}

export type Scope = 'day' | 'chat' | 'persona' | 'person';

/** A limit that concerns a payer, and what has been used of it today; money in millionths. */
export interface Standing {
  scope: Scope;
  unit: 'tokens' | 'money';
  used: number;
  most: number;
}

export interface Purse {
  /** The model, for this payer: at a limit its requests fail, with the code of the limit. */
  model: ModelClient;
  /** What was used and is not stored yet. */
  due(): Usage | null;
  /** The same as it is charged to a persona and whoever pays. */
  spent(personaId: PersonaId): Spent | undefined;
  /** What was due is stored. */
  paid(): void;
  /** Stores what is due. Never rejects. */
  settle(): Promise<void>;
}

export interface Budgets {
  /** The limits that are set and concern a payer, the widest first. */
  standings(payer: Payer): Promise<Standing[]>;
  /** The widest limit of which nothing is left today; null: it may go on. */
  reached(payer: Payer): Promise<Standing | null>;
  open(payer: Payer): Purse;
}

export const MILLION = 1_000_000;

const CODES: Record<Scope, FaultCode> = {
  day: 'limit_day',
  chat: 'limit_chat',
  persona: 'limit_persona',
  person: 'limit_person',
};

/** The key of a limit in the configuration, in the section `limits`. */
export function limitName({ unit, scope }: Standing): string {
  return `${unit}_per_${scope}`;
}

export function limitFault(limit: Standing): Fault {
  return new Fault(CODES[limit.scope], `limits.${limitName(limit)} is reached for today`);
}

export function isLimit({ code }: Fault): boolean {
  return Object.values(CODES).includes(code);
}
