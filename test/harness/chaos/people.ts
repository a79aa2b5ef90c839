/** The people of a chaos run, who number what they say in each chat, and the model that answers them by those numbers. */
import type { FakeDiscord } from '../../fakes/discord-words.js';
import { type ChatBody, type FakeModel, type FakeModelRequest, lastUserText } from '../../fakes/model.js';
import type { ModelScript } from '../../fakes/model-script.js';
import type { FakeTelegram } from '../../fakes/telegram.js';
import { channelOf } from '../discord.js';
import type { Place, Platform } from '../platform.js';
import type { GivenAnswer, SaidToken } from './account.js';

interface TalkingChat {
  key: string;
  platform: Platform;
  place: Place;
  said: number;
}

export interface Platforms {
  telegram: Platform & { telegram: FakeTelegram };
  discord: Platform & { discord: FakeDiscord };
}

/** Each so many messages ask for the tool that has an effect, and each so many are followed by a command. */
const MARKS_EACH = 9;
const STOPS_EACH = 61;
const RESETS_EACH = 83;

/** Answers may still change while they are this young. */
const LATEST = 200;
const TOKEN = /\bc\d+m\d+\b/g;

export const tokensIn = (text: string): string[] => text.match(TOKEN) ?? [];

export interface People {
  said: SaidToken[];
  /** One message in a chat of chance; now and then a command after it. */
  say(): string;
  /** One message in each chat. */
  greet(): void;
  commands: { given: number };
  /** When somebody gave a command that forgets or stops what was said before. */
  silencedAt(chat: string, command: 'reset' | 'stop'): number[];
  /** What the platforms show now. */
  answers(): GivenAnswer[];
  /** Messages that no answer names. */
  unanswered(): string[];
  /** Those of them that nobody was told about in other words. */
  outstanding(): string[];
  /** The store says that these were told, or are forgotten. */
  told(tokens: Iterable<string>): void;
  commandAnswers(): number;
}

/** `sender`: which gateways the wire saw sending a token. */
export function createPeople(
  platforms: Platforms,
  random: () => number,
  sender: (token: string) => string[],
): People {
  const chats = chatsOn(platforms);
  const said: SaidToken[] = [];
  const silences: { chat: string; command: string; at: number }[] = [];
  const commands = { given: 0 };
  const look = lookAt(platforms, chats, sender);
  const told = new Set<string>();

  function sayIn(chat: TalkingChat): string {
    const { key, platform, place } = chat;
    const token = `${key}m${chat.said}`;
    chat.said += 1;
    const words = said.length % MARKS_EACH === 0 ? 'please mark' : 'please answer';
    const from = personIn(place);
    platform.say({ from, in: place, text: `${words} ${token}`, mention: place.kind === 'group' });
    said.push({ chat: key, token, at: Date.now() });
    return token;
  }

  function unanswered(): string[] {
    const answered = look.answered();
    return said.map(({ token }) => token).filter((token) => !answered.has(token));
  }

  function command(chat: TalkingChat, name: 'reset' | 'stop'): void {
    // Discord tells people that a command has failed if no gateway is there; messages wait.
    if (chat.platform.name !== 'telegram' || chat.place.kind === 'group') return;
    chat.platform.command(personIn(chat.place), chat.place, `/${name}`);
    commands.given += 1;
    silences.push({ chat: chat.key, command: name, at: Date.now() });
  }

  return {
    ...{ said, commands, ...look },
    say() {
      const chat = chats[Math.floor(random() * chats.length)] as TalkingChat;
      const token = sayIn(chat);
      if (said.length % STOPS_EACH === 0) command(chat, 'stop');
      if (said.length % RESETS_EACH === 0) command(chat, 'reset');
      return token;
    },
    greet() {
      for (const chat of chats) sayIn(chat);
    },
    silencedAt: (chat, name) =>
      silences.filter((each) => each.chat === chat && each.command === name).map(({ at }) => at),
    unanswered,
    outstanding: () => unanswered().filter((token) => !told.has(token)),
    told(tokens) {
      for (const token of tokens) told.add(token);
    },
  };
}

function personIn({ kind, number }: Place) {
  const own = kind === 'direct' ? number : 500 + number;
  return { number: own, name: `Person ${own}` };
}

function chatsOn({ telegram, discord }: Platforms): TalkingChat[] {
  const rows: [Platform, Place['kind'], number][] = [
    [telegram, 'direct', 18],
    [telegram, 'group', 4],
    [discord, 'direct', 6],
    [discord, 'group', 2],
  ];
  return rows
    .flatMap(([platform, kind, count]) =>
      Array.from({ length: count }, (_, n) => ({ platform, place: { kind, number: n } })),
    )
    .map((each, n) => ({ ...each, key: `c${n}`, said: 0 }));
}

/** Reads what platforms took since the last look, once. */
function lookAt(
  { telegram: { telegram }, discord: { discord } }: Platforms,
  chats: TalkingChat[],
  sender: (token: string) => string[],
) {
  const keyOf = new Map(chats.map(({ key, platform, place }) => [addressOf(platform.name, place), key]));
  const answered = new Set<string>();
  let commandAnswers = 0;
  let read = { telegram: 0, discord: 0 };

  function all(from = { telegram: 0, discord: 0 }) {
    const ofTelegram = telegram.sent.slice(from.telegram).filter(({ gone }) => !gone);
    const ofDiscord = discord.sent.slice(from.discord);
    return [
      ...ofTelegram.map((each) => ({ ...each, address: `telegram ${each.chatId}` })),
      ...ofDiscord.map((each) => ({ ...each, text: each.content, address: `discord ${each.channelId}` })),
    ];
  }

  return {
    answered() {
      for (const { text } of all(read)) for (const token of tokensIn(text)) answered.add(token);
      read = {
        telegram: Math.max(0, telegram.sent.length - LATEST),
        discord: Math.max(0, discord.sent.length - LATEST),
      };
      return answered;
    },
    answers(): GivenAnswer[] {
      return all()
        .map(({ address, text, at, cut, answered: done }) => {
          const tokens = tokensIn(text);
          const by = [...new Set(tokens.flatMap(sender))];
          return { chat: keyOf.get(address) ?? address, tokens, at, cut: cut || !done, by };
        })
        .filter(({ tokens }) => tokens.length > 0);
    },
    commandAnswers() {
      commandAnswers = all().filter(({ text }) =>
        /^(Conversation cleared|Stopped\.|There is nothing to stop)/.test(text),
      ).length;
      return commandAnswers;
    },
  };
}

function addressOf(name: string, place: Place): string {
  if (name === 'discord') return `discord ${channelOf(place)}`;
  return `telegram ${place.kind === 'direct' ? 1_000 + place.number : -1_001_000_000_000 - place.number}`;
}

// ── The model ──────────────────────────────────────────────────────────────────────────────────────────────────

/** Each answer is told to have so many: more than all estimates of answers that broke off come to. */
export const TOKENS_EACH = 1_000;

export type Mood = 'well' | 'hangs' | 'cut' | 'away';

export interface ScriptedModel {
  mood: Mood;
  /** Requests that were answered to their end, and the keys of those that answer messages. */
  counts(): { answered: number; keys: Set<string> };
}

/** Names in its answer what the newest messages number; uses the tool for those that ask for it, each once. */
export function scriptModel(model: FakeModel, random: () => number): ScriptedModel {
  const scripted: ScriptedModel = { mood: 'well', counts };
  const keys = new Set<string>();
  const marked = new Map<string, string>();
  let answered = 0;
  let open: { key: string | null; request: FakeModelRequest }[] = [];

  function counts() {
    open = open.filter(({ key, request }) => {
      if (request.answeredAt === null) return !request.abandoned;
      answered += 1;
      if (key !== null) keys.add(key);
      return false;
    });
    return { answered, keys };
  }

  model.reply(async (body) => {
    const request = model.requests.at(-1);
    const { mood } = scripted;
    if (mood === 'hangs') return { stall: 'headers' };
    if (mood === 'cut')
      return { text: 'a long answer that breaks', chunkSize: 3, cutAfter: 2, chunkDelayMs: 1 };
    if (mood === 'away') return { status: 503 };
    const { key, script } = answerTo(body, marked);
    counts();
    if (request !== undefined) open.push({ key, request });
    // A model takes its time; what it takes here is little.
    await new Promise((resolve) => setTimeout(resolve, 5 + random() * 40));
    return { ...script, usage: { prompt_tokens: 1, completion_tokens: TOKENS_EACH } };
  });
  return scripted;
}

function answerTo(body: ChatBody, marked: Map<string, string>): { key: string | null; script: ModelScript } {
  const { messages, tools = [] } = body;
  const last = messages.at(-1);
  if (messages.some(({ role, content }) => role === 'user' && content?.startsWith('Memory flush.')))
    return { key: null, script: { text: 'done' } };
  if (last?.content?.endsWith('Conversation summary: write the new one.'))
    return { key: null, script: { text: '## Facts\n- people count' } };
  const text = lastUserText(body);
  const tokens = tokensIn(text);
  const batch = tokens.join(' ');
  const tool = tools.map(({ function: { name } }) => name).find((name) => name.endsWith('mark'));
  const wanted = [...text.matchAll(/please mark (c\d+m\d+)/g)].map(([, token = '']) => token);
  // What another batch asked for was done, or its outcome is unknown; the same batch is asked anew after a crash.
  const open = wanted.filter((token) => (marked.get(token) ?? batch) === batch);
  if (tool === undefined || last?.role === 'tool' || open.length === 0)
    return { key: `${batch} ${last?.role}`, script: { text: `answered ${batch}` } };
  for (const token of open) marked.set(token, batch);
  const calls = open.map((token) => ({ name: tool, arguments: { token } }));
  return { key: `${batch} calls`, script: { calls } };
}
