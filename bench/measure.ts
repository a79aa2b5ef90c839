/** The measurements, each for several subjects in turn, so that other load on the machine affects all of them. */

import type { Answered } from './answers.js';
import type { Subject } from './bots.js';
import { median, medianOf, quantile } from './figures.js';
import type { Bot, Servers } from './processes.js';

export interface Sizes {
  starts: number;
  /** Number of turns of each measurement. */
  blocks: number;
  /** The people who talk concurrently in each block; the groups repeat. */
  groups: number[][];
  /** Messages per person and block. */
  each: number;
  burstEach: number;
  /** The people who are timed, one message at a time. Default: the block's group. */
  timed?: { people: number[]; each: number };
}

/** The functions of the servers that measurements need. */
export interface Measurable {
  servers: Pick<Servers, 'oneByOne' | 'conversations' | 'burst'>;
  start(): Bot;
}

/** A running subject and its results. */
export interface Running extends Measurable {
  bot: Bot;
  toModel: number[];
  toPlatform: number[];
  perSecond: number[];
  burstPerSecond: number[];
  /** CPU time per message, under load and alone. */
  cpuMs: (number | null)[];
  aloneCpuMs: (number | null)[];
  idleMb: number | null;
  faults: Answered;
}

/** For background work to finish after a start or a burst. */
const REST_MS = 1_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Time from the start of the process to the reply to a waiting message, ms. */
export async function coldStart(
  subject: Subject,
  sentBefore: number,
  person: number,
): Promise<{ bot: Bot; ms: number }> {
  await subject.servers.say(person, 'hi');
  const bot = subject.start();
  const sentAt = await subject.servers.sentBy(sentBefore + 1);
  return { bot, ms: sentAt - bot.startedAt };
}

export async function begin<Begun extends Measurable>(subject: Begun): Promise<Begun & Running> {
  const bot = subject.start();
  await subject.servers.oneByOne({ people: [1], each: 1 });
  await pause(REST_MS);
  return {
    ...subject,
    bot,
    toModel: [],
    toPlatform: [],
    perSecond: [],
    burstPerSecond: [],
    cpuMs: [],
    aloneCpuMs: [],
    idleMb: bot.memory()?.now ?? null,
    faults: { messages: 0, lost: 0, doubled: 0, outOfOrder: 0 },
  };
}

/** Medians, and CPU time per message. */
export interface Fresh {
  toModel: number;
  toPlatform: number;
  cpuMs: number | null;
}

/** One message at a time in a new process, most of whose code is not compiled yet. */
export async function measureFresh(run: Running, people: number[]): Promise<Fresh> {
  const before = run.bot.cpuMs();
  const found = await run.servers.oneByOne({ people, each: 3 });
  const cpuMs = cpuPerMessage(run.bot, before, found.messages);
  note(run, found);
  return { toModel: median(found.toModel), toPlatform: median(found.toPlatform), cpuMs };
}

export async function measure(subjects: Running[], sizes: Sizes): Promise<void> {
  const { groups, each, burstEach, blocks } = sizes;
  for (let block = 0; block < blocks; block++) {
    const people = groups[block % groups.length] ?? [];
    // Not timed: the first messages of a chat create its files, and the first of all compile the code.
    for (const subject of subjects) {
      note(subject, await subject.servers.conversations({ people, each: 2 }));
    }
    for (const subject of subjects) {
      const before = subject.bot.cpuMs();
      const found = await subject.servers.oneByOne(sizes.timed ?? { people, each: 1 });
      subject.aloneCpuMs.push(cpuPerMessage(subject.bot, before, found.messages));
      subject.toModel.push(...found.toModel);
      subject.toPlatform.push(...found.toPlatform);
      note(subject, found);
    }
    for (const subject of subjects) {
      const before = subject.bot.cpuMs();
      const found = await subject.servers.conversations({ people, each });
      subject.cpuMs.push(cpuPerMessage(subject.bot, before, found.messages));
      subject.perSecond.push(found.messages / found.seconds);
      note(subject, found);
    }
    for (const subject of subjects) {
      const found = await subject.servers.burst({ people, each: burstEach });
      subject.burstPerSecond.push(found.messages / found.seconds);
      note(subject, found);
    }
  }
  await pause(REST_MS);
}

function cpuPerMessage(bot: Bot, before: number | null, messages: number): number | null {
  const after = bot.cpuMs();
  return before === null || after === null ? null : (after - before) / messages;
}

export function figures(run: Running) {
  const { toModel, toPlatform, perSecond, burstPerSecond, cpuMs, aloneCpuMs, idleMb, bot } = run;
  return {
    toModel: median(toModel),
    toModelLate: quantile(toModel, 0.95),
    toPlatform: median(toPlatform),
    toPlatformLate: quantile(toPlatform, 0.95),
    perSecond: median(perSecond),
    burstPerSecond: median(burstPerSecond),
    cpuMs: medianOf(cpuMs),
    aloneCpuMs: medianOf(aloneCpuMs),
    idleMb,
    peakMb: bot.memory()?.peak ?? null,
  };
}

function note({ faults }: Running, { messages, lost, doubled, outOfOrder }: Answered): void {
  faults.messages += messages;
  faults.lost += lost;
  faults.doubled += doubled;
  faults.outOfOrder += outOfOrder;
}
