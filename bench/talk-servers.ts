/**
 * A fake Telegram or Discord in its own process, on which people talk without a pause: `node talk-servers.js discord`.
 * Unlike `platform-servers.ts` it looks only at what is new, so that its own work stays small. With a fake model.
 */
import { echo, startFakeModel } from '../test/fakes/model.js';
import { startFakeTelegram } from '../test/fakes/telegram.js';
import { channelOf, discordPlatform } from '../test/harness/discord.js';
import { answerCalls } from './answer-calls.js';
import { type Answered, checkAnswers, textOf } from './answers.js';

export interface Talk extends Answered {
  /** Within the time. */
  answered: number;
  /** Of each message, ms. */
  waits: number[];
  /** The longest time in which nobody got an answer though somebody waited, ms. */
  silenceMs: number;
  /** Processor time of this process, ms. */
  fakesMs: number;
}

export interface TalkCalls {
  addresses(): { config: Record<string, unknown>; model: string };
  /** Resolves when the platform tells somebody what people say. Nobody is told later what is said before. */
  connected(): Promise<void>;
  /** Everybody waits for an answer before the next message; nobody begins one after this time. */
  talk(ask: { people: number[]; ms: number }): Promise<Talk>;
  close(): void;
}

interface Fake {
  config: Record<string, unknown>;
  connected(): Promise<void>;
  say(person: number, text: string): void;
  /** What was sent since, and how much that is in all. */
  sentFrom(from: number): { to: number; text: string }[];
  until(condition: () => boolean, what: string, timeoutMs: number): Promise<void>;
}

/** A message not answered by then is lost. */
const PATIENCE_MS = 60_000;
/** A surplus reply would come by then. */
const LATE_REPLY_MS = 300;
const UNBOUNDED = { messages_per_second: 100_000, per_chat_burst: 100_000 };

async function telegramFake(): Promise<Fake> {
  const telegram = await startFakeTelegram();
  return {
    config: { token: telegram.token, api_root: telegram.url, ...UNBOUNDED },
    // Telegram keeps what nobody has fetched.
    connected: async () => {},
    say: (person, text) => telegram.say({ from: { id: person, first_name: `Person ${person}` }, text }),
    sentFrom: (from) => telegram.sent.slice(from).map(({ chatId, text }) => ({ to: chatId, text })),
    until: telegram.until,
  };
}

async function discordFake(): Promise<Fake> {
  const platform = await discordPlatform();
  const { discord } = platform;
  const people = new Map<string, number>();
  return {
    config: { ...platform.config, ...UNBOUNDED },
    connected: platform.connected,
    say(number, text) {
      const place = { kind: 'direct' as const, number };
      people.set(channelOf(place), number);
      platform.say({ from: { number, name: `Person ${number}` }, in: place, text });
    },
    sentFrom: (from) =>
      discord.sent
        .slice(from)
        .map(({ channelId, content }) => ({ to: people.get(channelId) ?? 0, text: content })),
    until: discord.until,
  };
}

const FAKES: Record<string, () => Promise<Fake>> = { telegram: telegramFake, discord: discordFake };
const start = FAKES[process.argv[2] ?? ''];
if (!start) throw new Error(`the platforms are ${Object.keys(FAKES).join(', ')}`);
const fake = await start();
const model = await startFakeModel({ keep: 1, reply: echo });
const said = new Map<number, string[]>();
const sent: { chatId: number; text: string }[] = [];
let words = 0;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

function say(person: number): void {
  const text = textOf(person, words++);
  said.set(person, [...(said.get(person) ?? []), text]);
  fake.say(person, text);
}

function takeNew(): { to: number; text: string }[] {
  const found = fake.sentFrom(sent.length);
  sent.push(...found.map(({ to, text }) => ({ chatId: to, text })));
  return found;
}

const calls: TalkCalls = {
  addresses: () => ({ config: fake.config, model: model.url }),
  connected: fake.connected,

  async talk({ people, ms }) {
    takeNew();
    said.clear();
    const from = sent.length;
    const cpu = process.cpuUsage();
    const began = performance.now();
    const waiting = new Map<number, number>();
    const found: Omit<Talk, keyof Answered> = { answered: 0, waits: [], silenceMs: 0, fakesMs: 0 };
    let last = began;
    const ask = (person: number) => {
      waiting.set(person, performance.now());
      say(person);
    };
    const look = () => {
      const now = performance.now();
      for (const { to } of takeNew()) {
        found.silenceMs = Math.max(found.silenceMs, now - last);
        last = now;
        const since = waiting.get(to);
        // Nobody waits for one that is said twice.
        if (since === undefined) continue;
        waiting.delete(to);
        found.waits.push(now - since);
        if (now - began < ms) {
          found.answered++;
          ask(to);
        }
      }
      return waiting.size === 0;
    };
    for (const person of people) ask(person);
    await fake.until(look, 'the answers', ms + PATIENCE_MS).catch(() => {});
    const { user, system } = process.cpuUsage(cpu);
    found.fakesMs = (user + system) / 1_000;
    await pause(LATE_REPLY_MS);
    takeNew();
    return { ...found, ...checkAnswers(said, sent.slice(from)) };
  },

  close: () => void setImmediate(() => process.disconnect()),
};

answerCalls(calls);
