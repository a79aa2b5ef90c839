/** Like `servers.ts`, for any fake platform of the tests: `node platform-servers.js discord`. */
import { echo, startFakeModel } from '../test/fakes/model.js';
import { discordPlatform } from '../test/harness/discord.js';
import type { Place, Platform } from '../test/harness/platform.js';
import { telegramPlatform } from '../test/harness/telegram-platform.js';
import { whatsappPlatform } from '../test/harness/whatsapp.js';
import { answerCalls } from './answer-calls.js';
import { type Answered, checkAnswers, textOf } from './answers.js';
import type { Overhead, Throughput } from './servers.js';

/** Functions for another process; arguments and results are plain data. */
export interface PlatformCalls {
  addresses(): {
    name: string;
    config: Record<string, unknown>;
    environment: Record<string, string>;
    model: string;
  };
  /** Passes on the bot's log, which holds the code for linking WhatsApp. */
  logged(text: string): void;
  connected(): Promise<void>;
  oneByOne(ask: { people: number[]; each: number }): Promise<Overhead & Answered>;
  /** Everybody waits for an answer before the next message. */
  conversations(ask: { people: number[]; each: number }): Promise<Throughput>;
  /** All messages are sent at once. */
  burst(ask: { people: number[]; each: number }): Promise<Throughput>;
  close(): void;
}

const PLATFORMS: Record<string, () => Promise<Platform>> = {
  telegram: telegramPlatform,
  discord: discordPlatform,
  whatsapp: whatsappPlatform,
};
/** A message not answered by then is lost. */
const PATIENCE_MS = 60_000;
/** Between two timed messages, for the bot's work after an answer. */
const BREATH_MS = 20;
/** A surplus reply would come by then. */
const LATE_REPLY_MS = 150;

const start = PLATFORMS[process.argv[2] ?? ''];
if (!start) throw new Error(`the platforms are ${Object.keys(PLATFORMS).join(', ')}`);
const platform = await start();
let answeredAt = 0;
const model = await startFakeModel({
  keep: 1,
  reply(body) {
    const answer = echo(body);
    answeredAt = now();
    return answer;
  },
});
let log = '';
platform.attend?.(() => log);
/** Messages in order, by person, since the last check. */
let said = new Map<number, string[]>();
let words = 0;
let look: () => void = () => {};
platform.onEvent((event) => event === 'sent' && look());

const now = () => performance.timeOrigin + performance.now();
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const placeOf = (number: number): Place => ({ kind: 'direct', number });
const sentTo = (person: number) => platform.shown(placeOf(person));
/** Messages to each person at the start of a measurement. */
const countsOf = (people: number[]) => new Map(people.map((person) => [person, sentTo(person).length]));

/** Checked whenever a message arrives; false after a time-out. */
function holds(condition: () => boolean): Promise<boolean> {
  return new Promise((resolve) => {
    const patience = setTimeout(() => end(false), PATIENCE_MS);
    function end(held: boolean) {
      clearTimeout(patience);
      look = () => {};
      resolve(held);
    }
    look = () => {
      if (condition()) end(true);
    };
    look();
  });
}

function say(person: number): void {
  const text = textOf(person, words++);
  said.set(person, [...(said.get(person) ?? []), text]);
  platform.say({ from: { number: person, name: `Person ${person}` }, in: placeOf(person), text });
}

/** Ends a measurement: compares the answers since its start with the messages. */
async function check(before: Map<number, number>): Promise<Answered> {
  await pause(LATE_REPLY_MS);
  const sent = [...before].flatMap(([person, count]) =>
    sentTo(person)
      .slice(count)
      .map(({ text }) => ({ chatId: person, text })),
  );
  const answers = checkAnswers(said, sent);
  said = new Map();
  return answers;
}

const calls: PlatformCalls = {
  addresses: () => {
    const { name, config, environment } = platform;
    return { name, config, environment, model: model.url };
  },
  logged(text) {
    log += text;
  },
  connected: () => platform.connected(),

  async oneByOne({ people, each }) {
    const before = countsOf(people);
    const toModel: number[] = [];
    const toPlatform: number[] = [];
    for (let round = 0; round < each; round++) {
      for (const person of people) {
        await pause(BREATH_MS);
        const count = sentTo(person).length;
        const saidAt = now();
        let sentAt = 0;
        say(person);
        const done = await holds(() => {
          if (sentAt === 0 && sentTo(person).length > count) sentAt = now();
          return sentAt > 0;
        });
        if (!done) return { toModel, toPlatform, ...(await check(before)) };
        toModel.push((model.requests.at(-1)?.at ?? Number.NaN) - saidAt);
        toPlatform.push(sentAt - answeredAt);
      }
    }
    return { toModel, toPlatform, ...(await check(before)) };
  },

  async conversations({ people, each }) {
    const before = countsOf(people);
    const answered = new Map(people.map((person) => [person, 0]));
    const startedAt = now();
    let endedAt = startedAt;
    for (const person of people) say(person);
    await holds(() => {
      let open = 0;
      for (const person of people) {
        const count = sentTo(person).length - (before.get(person) ?? 0);
        const known = answered.get(person) ?? 0;
        if (count > known) {
          answered.set(person, count);
          endedAt = now();
          if (count < each) say(person);
        }
        if (count < each) open++;
      }
      return open === 0;
    });
    return { seconds: (endedAt - startedAt) / 1000, ...(await check(before)) };
  },

  async burst({ people, each }) {
    const before = countsOf(people);
    const startedAt = now();
    let endedAt = startedAt;
    for (let round = 0; round < each; round++) for (const person of people) say(person);
    await holds(() => {
      endedAt = now();
      // A bot may answer several messages of a chat in one.
      return people.every((person) => {
        const texts = sentTo(person).slice(before.get(person) ?? 0);
        return texts.reduce((lines, { text }) => lines + text.split('\n').length, 0) >= each;
      });
    });
    return { seconds: (endedAt - startedAt) / 1000, ...(await check(before)) };
  },

  close: () => void setImmediate(() => process.disconnect()),
};

answerCalls(calls);
