/** The measurements, each for several subjects in turn, so that whatever else the machine does falls on all. */

import type { Answered } from './answers.js';
import type { Subject } from './bots.js';
import { median, medianOf, quantile } from './figures.js';
import type { Bot, Servers } from './processes.js';

export interface Sizes {
  starts: number;
  /** How often each measurement takes its turn. */
  blocks: number;
  /** Who talks side by side, block by block; when the groups are used up, the first is back. */
  groups: number[][];
  /** How much each says in one block. */
  each: number;
  burstEach: number;
  /** Who is timed, one message after the other: the block's group where left out. */
  timed?: { people: number[]; each: number };
}

/** What is measured needs no more than this of its servers. */
export interface Measurable {
  servers: Pick<Servers, 'oneByOne' | 'conversations' | 'burst'>;
  start(): Bot;
}

/** A subject that runs, and all that was found out about it. */
export interface Running extends Measurable {
  bot: Bot;
  toModel: number[];
  toPlatform: number[];
  perSecond: number[];
  burstPerSecond: number[];
  /** Processor time of a message among many, and of one that comes alone. */
  cpuMs: (number | null)[];
  aloneCpuMs: (number | null)[];
  idleMb: number | null;
  faults: Answered;
}

/** For background work of a start or a burst to come to rest. */
const REST_MS = 1_000;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** From the process's beginning to the reply to a message that waits already, ms. */
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

/** Medians, and processor time per message. */
export interface Fresh {
  toModel: number;
  toPlatform: number;
  cpuMs: number | null;
}

/** One message after the other in a process that has just begun: most of its code is not compiled yet. */
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
    // The first messages of a chat make its files, and the first of all compile the code: not timed.
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
