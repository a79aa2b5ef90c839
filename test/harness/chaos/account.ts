/**
 * The account of a chaos run, pure: what became of each message that people sent, by what the platforms saw and what the
 * store says of those that were not answered. Accepted = answered once + doubled + told in words + waiting; whatever that
 * does not explain is a problem, and a run with problems has failed.
 */

export interface SaidToken {
  chat: string;
  token: string;
  at: number;
}

export interface GivenAnswer {
  chat: string;
  tokens: string[];
  /** When the platform took it, ms. */
  at: number;
  /** The connection broke before the platform's answer, so that its sender cannot know that it was taken. */
  cut: boolean;
  /** The gateways that sent it, as far as the wire showed. */
  by: string[];
}

export interface FaultSpan {
  kind: string;
  /** The gateway that it struck; null: all of them. */
  node: string | null;
  from: number;
  to: number;
}

/** In the store's words, of a message that no answer names. */
export type Fate = 'waiting' | 'failed' | 'stopped' | 'forgotten' | 'untold' | 'missing';

export interface Evidence {
  said: SaidToken[];
  answers: GivenAnswer[];
  faults: FaultSpan[];
  fates: ReadonlyMap<string, Fate>;
  /** How often each token's tool was run. */
  effects: ReadonlyMap<string, number>;
  /** Commands that were given, and the answers to them that were seen. */
  commands: { given: number; answered: number };
  /** Requests that the model answered to their end, those of them that are no repetition, and the sum of the rows. */
  model: { answered: number; distinct: number; counted: number };
  /** At the end, in the store. */
  left: {
    running: number;
    open: number;
    leasesHeld: string[];
    leases: string[];
    living: string[];
    expected: string[];
  };
}

export interface Account {
  accepted: number;
  once: number;
  doubled: number;
  told: { failed: number; stopped: number; forgotten: number };
  waiting: number;
  lost: number;
  outOfOrder: number;
  effects: { tokens: number; most: number };
  commands: { given: number; answered: number };
  model: { answered: number; distinct: number; counted: number };
  longestWaitMs: number;
  problems: string[];
}

/** A send that a fault cut off from its record is this close to the fault. */
export const NEAR_MS = 80;

export function closeAccount(evidence: Evidence): Account {
  const { said, answers, fates, commands, model } = evidence;
  const byToken = answersByToken(answers);
  const problems: string[] = [];
  const told = { failed: 0, stopped: 0, forgotten: 0 };
  const account: Account = {
    ...{ accepted: said.length, once: 0, doubled: 0, told, waiting: 0, lost: 0, outOfOrder: 0 },
    ...{ effects: { tokens: evidence.effects.size, most: 0 }, commands, model, longestWaitMs: 0, problems },
  };
  for (const { chat, token, at } of said) {
    const copies = byToken.get(token) ?? [];
    const [first] = copies;
    if (first === undefined) {
      const fate = fates.get(token) ?? 'missing';
      if (fate === 'waiting') account.waiting += 1;
      else if (fate === 'untold' || fate === 'missing') {
        account.lost += 1;
        problems.push(`lost: ${token} in ${chat} (${fate})`);
      } else told[fate] += 1;
      continue;
    }
    account.longestWaitMs = Math.max(account.longestWaitMs, first.at - at);
    if (copies.length === 1) account.once += 1;
    else {
      account.doubled += 1;
      if (!copies.slice(0, -1).every((copy) => isExplained(copy, evidence.faults)))
        problems.push(
          `doubled without a fault: ${token} in ${chat} at ${copies.map((copy) => copy.at).join(', ')}`,
        );
    }
  }
  account.outOfOrder = checkOrder(evidence, problems);
  checkEffects(evidence, account);
  checkModel(evidence, problems);
  checkLeft(evidence, problems);
  const { given, answered } = commands;
  if (answered < given) problems.push(`commands: ${given} were given and ${answered} answered`);
  const sum = account.once + account.doubled + told.failed + told.stopped + told.forgotten + account.waiting;
  if (sum + account.lost !== account.accepted)
    problems.push(`the account does not close: ${sum} + ${account.lost} of ${account.accepted}`);
  return account;
}

export function answersByToken(answers: readonly GivenAnswer[]): Map<string, GivenAnswer[]> {
  const found = new Map<string, GivenAnswer[]>();
  for (const answer of [...answers].sort((a, b) => a.at - b.at))
    for (const token of answer.tokens) found.set(token, [...(found.get(token) ?? []), answer]);
  return found;
}

/** Whether the sender of this copy may not have come to record it. */
export function isExplained({ at, cut, by }: GivenAnswer, faults: readonly FaultSpan[]): boolean {
  const strikes = ({ node }: FaultSpan) => node === null || by.length === 0 || by.includes(node);
  return (
    cut || faults.some((fault) => strikes(fault) && at >= fault.from - NEAR_MS && at <= fault.to + NEAR_MS)
  );
}

/** What is first answered later in its chat was said later in it. */
function checkOrder({ said, answers }: Evidence, problems: string[]): number {
  const places = new Map(said.map(({ token }, place) => [token, place]));
  const newest = new Map<string, number>();
  const seen = new Set<string>();
  let outOfOrder = 0;
  for (const { chat, tokens } of [...answers].sort((a, b) => a.at - b.at)) {
    for (const token of tokens) {
      const place = places.get(token);
      if (place === undefined) problems.push(`made up: ${token} in ${chat}`);
      if (place === undefined || seen.has(token)) continue;
      seen.add(token);
      if (place < (newest.get(chat) ?? -1)) {
        outOfOrder += 1;
        problems.push(`out of order: ${token} in ${chat}`);
      }
      newest.set(chat, Math.max(place, newest.get(chat) ?? -1));
    }
  }
  return outOfOrder;
}

function checkEffects({ effects }: Evidence, account: Account): void {
  for (const [token, times] of effects) {
    account.effects.most = Math.max(account.effects.most, times);
    if (times > 1) account.problems.push(`effect: the tool for ${token} was run ${times} times`);
  }
}

/**
 * Each answer of the model is counted in the row of its day once, when the turn's end or its step is stored. What a crash
 * leaves between the answer and that is asked again: so the rows hold no fewer than the requests that are no repetition,
 * and no more than all that were answered. Asked again together with a message that came meanwhile, it looks like another
 * request: one for each end of a process or of its term may be missing.
 */
function checkModel({ model: { answered, distinct, counted }, faults }: Evidence, problems: string[]): void {
  const ends = faults.filter(({ kind }) => /^(kill|restart|freeze|postgres)/.test(kind)).length;
  if (counted + ends < distinct)
    problems.push(`usage: ${counted} requests are counted, ${distinct} were answered for sure`);
  if (counted > answered)
    problems.push(`usage: ${counted} requests are counted, only ${answered} were answered`);
}

function checkLeft({ left }: Evidence, problems: string[]): void {
  if (left.running > 0) problems.push(`${left.running} turns still run`);
  if (left.open > 0) problems.push(`${left.open} entries of the outbox are not settled`);
  const lists: [string, string[], string[]][] = [
    ['leases held', left.leasesHeld, left.leases],
    ['gateways living', left.living, left.expected],
  ];
  for (const [subject, there, wanted] of lists)
    if (there.join() !== wanted.join())
      problems.push(`${subject}: ${there.join(', ')}, not ${wanted.join(', ')}`);
}
