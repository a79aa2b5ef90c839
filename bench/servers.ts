/**
 * A fake Telegram and a fake model for one bot, in their own process, so that their work is not counted as the bot's.
 * People's messages are sent here, too, so that all times are from one clock.
 */
import { subscribe } from 'node:diagnostics_channel';
import type { Server } from 'node:http';
import { echo, startFakeModel } from '../test/fakes/model.js';
import { startFakeTelegram } from '../test/fakes/telegram.js';
import { answerCalls } from './answer-calls.js';
import { type Answered, checkAnswers, textOf } from './answers.js';

/** The addresses for the bot's configuration. */
export interface Addresses {
  telegram: string;
  token: string;
  model: string;
}

/** Milliseconds per message, one message at a time. */
export interface Overhead {
  /** From delivering the update to receiving the complete model request. */
  toModel: number[];
  /** From the model's complete answer to `sendMessage`. */
  toPlatform: number[];
}

export interface Throughput extends Answered {
  seconds: number;
}

/** Functions for another process; arguments and results are plain data. */
export interface ServerCalls {
  addresses(): Addresses;
  /** Sends one message; the bot need not be listening yet. */
  say(person: number, text: string): void;
  /** Time of the message with this number, ms since 1970; resolves when all updates are received. Throws if more came. */
  sentBy(count: number): Promise<number>;
  /** Bytes of the last model request's body. */
  requestBytes(): number;
  oneByOne(ask: { people: number[]; each: number }): Promise<Overhead & Answered>;
  /** Everybody waits for an answer before the next message. */
  conversations(ask: { people: number[]; each: number }): Promise<Throughput>;
  /** All messages are sent at once. */
  burst(ask: { people: number[]; each: number }): Promise<Throughput>;
  /**
   * Like `conversations`, with answers streamed in pieces over a time; an answer counts when it is complete.
   * `mostChanges`: maximum number of live edits in one chat within a second.
   */
  written(ask: {
    people: number[];
    each: number;
    pieces: number;
    ms: number;
  }): Promise<Throughput & { edits: number; mostChanges: number }>;
  close(): void;
}

/** A message not answered by then is lost. */
const PATIENCE_MS = 30_000;
/** Between two timed messages, for the bot's work after an answer. */
const BREATH_MS = 3;
/** A surplus reply would come by then. */
const LATE_REPLY_MS = 150;

/** Long, like real servers: a connection that closes just as it is reused looks like a failure. */
const KEEP_ALIVE_MS = 120_000;

/** Makes a streamed answer take seconds; its end shows that the answer is complete. */
const FILLER = `\n${'and so on, '.repeat(100)}the end.`;

const telegram = await startFakeTelegram();
const model = await startFakeModel({
  keep: 1,
  reply(body) {
    const answer = { ...echo(body), ...writing };
    if (writing) answer.text = `${answer.text}${FILLER}`;
    answeredAt = now();
    return answer;
  },
});
let answeredAt = 0;
/** Streaming of the model; null: answers at once. */
let writing: { chunkSize: number; chunkDelayMs: number } | null = null;
/** Messages in order, by person, since the last check. */
let said = new Map<number, string[]>();
let words = 0;

const now = () => performance.timeOrigin + performance.now();
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
/** False after a time-out. */
const holds = (condition: () => boolean) =>
  telegram.until(condition, 'a reply', PATIENCE_MS).then(
    () => true,
    () => false,
  );

function say(person: number, text = textOf(person, words++)): void {
  const lines = said.get(person) ?? [];
  said.set(person, [...lines, text]);
  telegram.say({ from: { id: person, first_name: `Person ${person}` }, text });
}

/** Maximum number in one chat within a second; slightly less than one, because of latency. */
function mostInASecond(changes: { chatId: number; at: number }[]): number {
  const recent = new Map<number, number[]>();
  let most = 0;
  for (const { chatId, at } of changes) {
    const times = [...(recent.get(chatId) ?? []), at].filter((time) => time > at - 950);
    recent.set(chatId, times);
    most = Math.max(most, times.length);
  }
  return most;
}

/** Ends a measurement: compares the answers since `from` with the messages. */
async function check(from: number): Promise<Answered> {
  await pause(LATE_REPLY_MS);
  const answers = checkAnswers(said, telegram.sent.slice(from));
  said = new Map();
  return answers;
}

const calls: ServerCalls = {
  addresses: () => ({ telegram: telegram.url, token: telegram.token, model: model.url }),

  say(person, text) {
    telegram.say({ from: { id: person, first_name: `Person ${person}` }, text });
  },

  async sentBy(count) {
    let at = 0;
    const done = await holds(() => {
      if (at === 0 && telegram.sent.length >= count) at = now();
      return at > 0 && telegram.pending() === 0;
    });
    if (!done || telegram.sent.length !== count) {
      throw new Error(`${telegram.sent.length} messages came instead of ${count}`);
    }
    return at;
  },

  requestBytes: () => Number(model.requests.at(-1)?.headers['content-length']),

  async oneByOne({ people, each }) {
    const from = telegram.sent.length;
    const toModel: number[] = [];
    const toPlatform: number[] = [];
    for (let round = 0; round < each; round++) {
      for (const person of people) {
        // The bot is polling for updates again.
        await holds(() => telegram.pending() === 0);
        await pause(BREATH_MS);
        const before = telegram.sent.length;
        const saidAt = now();
        say(person);
        if (!(await holds(() => telegram.sent.length > before)))
          return { toModel, toPlatform, ...(await check(from)) };
        const sentAt = now();
        toModel.push((model.requests.at(-1)?.at ?? Number.NaN) - saidAt);
        toPlatform.push(sentAt - answeredAt);
      }
    }
    return { toModel, toPlatform, ...(await check(from)) };
  },

  async conversations({ people, each }) {
    const from = telegram.sent.length;
    const left = new Map(people.map((person) => [person, each - 1]));
    let read = from;
    const startedAt = now();
    let endedAt = startedAt;
    for (const person of people) say(person);
    await holds(() => {
      for (; read < telegram.sent.length; read++) {
        const person = telegram.sent[read]?.chatId ?? 0;
        const more = left.get(person) ?? 0;
        left.set(person, more - 1);
        if (more > 0) say(person);
        endedAt = now();
      }
      return read - from >= people.length * each;
    });
    return { seconds: (endedAt - startedAt) / 1000, ...(await check(from)) };
  },

  async burst({ people, each }) {
    const from = telegram.sent.length;
    const startedAt = now();
    let endedAt = startedAt;
    for (let round = 0; round < each; round++) for (const person of people) say(person);
    let read = from;
    let answered = 0;
    await holds(() => {
      for (; read < telegram.sent.length; read++) {
        // A bot may answer several messages of a chat in one.
        answered += telegram.sent[read]?.text.split('\n').length ?? 0;
        endedAt = now();
      }
      return answered >= people.length * each;
    });
    return { seconds: (endedAt - startedAt) / 1000, ...(await check(from)) };
  },

  async written({ people, each, pieces, ms }) {
    const from = telegram.sent.length;
    const editsFrom = telegram.edits.length;
    telegram.settings.drafts = false;
    writing = { chunkSize: Math.ceil(FILLER.length / pieces), chunkDelayMs: ms / pieces };
    const left = new Map(people.map((person) => [person, each - 1]));
    let open: (typeof telegram.sent)[number][] = [];
    let read = from;
    let whole = 0;
    const startedAt = now();
    let endedAt = startedAt;
    for (const person of people) say(person);
    await holds(() => {
      open.push(...telegram.sent.slice(read));
      read = telegram.sent.length;
      const done = open.filter(({ text }) => text.endsWith('the end.'));
      open = open.filter(({ text }) => !text.endsWith('the end.'));
      for (const { chatId } of done) {
        whole += 1;
        endedAt = now();
        const more = left.get(chatId) ?? 0;
        left.set(chatId, more - 1);
        if (more > 0) say(chatId);
      }
      return whole >= people.length * each;
    });
    writing = null;
    const unfinished = telegram.edits.slice(editsFrom).filter(({ text }) => !text.endsWith('the end.'));
    const seconds = (endedAt - startedAt) / 1000;
    const found = {
      seconds,
      edits: telegram.edits.length - editsFrom,
      mostChanges: mostInASecond(unfinished),
    };
    return { ...found, ...(await check(from)) };
  },

  close: () => void setImmediate(() => process.disconnect()),
};

subscribe('http.server.request.start', (message) => {
  (message as { server: Server }).server.keepAliveTimeout = KEEP_ALIVE_MS;
});
answerCalls(calls);
