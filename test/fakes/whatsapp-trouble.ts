/** What is to go wrong on the fake WhatsApp, and how often. */
import type { BinaryNode } from '@whiskeysockets/baileys';
import { refusal } from './whatsapp-nodes.js';

export interface Trouble {
  refuseLogin(reason: number, times?: number): void;
  dropAfterTake(times?: number): void;
  dropBeforeTake(times?: number): void;
  errorAck(code: number, times?: number): void;
  stallAcks(on: boolean): void;
  stallQuery(xmlns: string, times?: number): void;
  failQuery(xmlns: string, code: number, times?: number): void;
  sameIdTwice(): void;
  sameCiphertextTwice(): void;
  /** What meets a login, a message of ours, a query, a message to us; each asks for its own once. */
  meetsLogin(): number | null;
  meetsMessage(): 'drop before' | 'drop after' | { error: number } | null;
  /** `stall`, or the answer that refuses it. */
  meetsQuery(query: BinaryNode): 'stall' | BinaryNode | null;
  meetsDelivery(): 'id' | 'ciphertext' | null;
  /** Does it now, or when acks flow again. */
  whenAcksFlow(job: () => void): void;
}

export function makeTrouble(): Trouble {
  const logins: number[] = [];
  const messages: ('drop before' | 'drop after' | { error: number })[] = [];
  const doublings: ('id' | 'ciphertext')[] = [];
  let queries: { xmlns: string; code: number | null }[] = [];
  let stalled = false;
  let held: (() => void)[] = [];

  const add = <T>(list: T[], what: T, times: number) => {
    for (let i = 0; i < times; i++) list.push(what);
  };

  return {
    refuseLogin: (reason, times = 1) => add(logins, reason, times),
    dropAfterTake: (times = 1) => add(messages, 'drop after', times),
    dropBeforeTake: (times = 1) => add(messages, 'drop before', times),
    errorAck: (error, times = 1) => add(messages, { error }, times),
    stallQuery: (xmlns, times = 1) => add(queries, { xmlns, code: null }, times),
    failQuery: (xmlns, code, times = 1) => add(queries, { xmlns, code }, times),
    sameIdTwice: () => add(doublings, 'id', 1),
    sameCiphertextTwice: () => add(doublings, 'ciphertext', 1),
    stallAcks(on) {
      stalled = on;
      if (on) return;
      const jobs = held;
      held = [];
      for (const job of jobs) job();
    },

    meetsLogin: () => logins.shift() ?? null,
    meetsMessage: () => messages.shift() ?? null,
    meetsDelivery: () => doublings.shift() ?? null,
    meetsQuery(query) {
      const found = queries.find(({ xmlns }) => xmlns === query.attrs.xmlns);
      if (found === undefined) return null;
      queries = queries.filter((each) => each !== found);
      return found.code === null ? 'stall' : refusal(query, found.code);
    },
    whenAcksFlow(job) {
      if (stalled) held.push(job);
      else job();
    },
  };
}
