/**
 * Whether an earlier try of a message arrived. Discord deduplicates by nonce for some minutes, but not answers to
 * commands or webhook messages: those are searched by their words among the channel's newest.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { SendResult } from '../../core/channel.js';
import type { ApiCall, Base } from './api.js';
import { isOurs } from './content.js';
import type { Identity, Me } from './directory.js';
import { failureOf, isRefusal, MOST_NOTED, sendResult } from './failure.js';
import { NEUTRAL_NAME, readsAs } from './outbound.js';
import { byAge, hasFlag, type Told, timeOf } from './payload.js';
import type { Webhooks } from './webhooks.js';

/** Discord remembers a nonce for some minutes. */
const NONCE_MS = 120_000;
/** Tolerance between Discord's clock and ours. */
const SKEW_MS = 5_000;
/** Minimum length of a partially written message: a shorter one may belong to another message. */
const LEAST_BEGINNING = 20;
/** The end of a partial message may differ from the final text: a mark was still open there. */
const SAME_OF_BEGINNING = 0.8;

interface HeadedText {
  content: string;
  /** Length of the part at its beginning that only names the speaker or quotes the answered message. */
  heading: number;
}

/** A text as the bot itself writes it. */
interface AuthoredText extends HeadedText {
  /** Through a webhook: under this name if Discord accepts it, else with the name before the text. */
  authored: { username: string; plain: HeadedText; named: HeadedText } | null;
}

export interface Outgoing extends AuthoredText {
  room: string;
  nonce: string;
  files: NonNullable<ApiCall['files']>;
  earlierTries: number;
  createdAt: number;
}

interface EarlierTry {
  result: SendResult;
  /** It arrived, but perhaps with the words of an earlier try, or only their beginning. */
  isOutdated: boolean;
}

export type Resends = ReturnType<typeof createResends>;

export function createResends({ api, clock }: Base, identity: Identity, webhooks: Webhooks) {
  /** By room and nonce: ids of messages that arrived; the last try, and the time of the first. */
  const arrived = new LRUCache<string, string>({ max: MOST_NOTED });
  const tried = new LRUCache<string, { since: number; words: AuthoredText }>({ max: MOST_NOTED });
  /** Identifies messages by id. */
  const known = new LRUCache<string, string>({ max: MOST_NOTED });

  function note(key: string, id: string): void {
    arrived.set(key, id);
    known.set(id, key);
  }

  /** The words of earlier tries, if different. */
  function otherWords(message: Outgoing): AuthoredText[] {
    const words = tried.get(keyOf(message))?.words;
    return words === undefined || isSame(words, message) ? [] : [words];
  }

  async function search(message: Outgoing, signal: AbortSignal): Promise<EarlierTry | null> {
    try {
      const me = await identity.ask(signal);
      const key = keyOf(message);
      const path = `/channels/${message.room}/messages`;
      const page = await api.get<Discord.APIMessage[]>(path, signal, { limit: '100' });
      const ours = page
        .filter((each) => isOurs(each, { me, isOurWebhook: webhooks.isOurs }) && mayBe(each, message))
        .filter(({ id }) => (known.get(id) ?? key) === key)
        .sort(byAge);
      const others = otherWords(message);
      const same = ours.findLast((each) => says(each, message, me));
      const found =
        same ??
        ours.findLast((each) => others.some((words) => says(each, words, me))) ??
        ours.findLast((each) => begins(each, message, me));
      if (found === undefined) return null;
      note(key, found.id);
      return { result: { kind: 'sent', platformMessageId: found.id }, isOutdated: same === undefined };
    } catch (error) {
      const failure = failureOf(error);
      // Without permission to look, nothing can be found; a resend may then be a duplicate.
      return isRefusal(failure) ? null : { result: sendResult(failure), isOutdated: false };
    }
  }

  return {
    /** The gateway brought a message of our own. */
    noteEcho({ id, channel_id, nonce }: Told<Discord.APIMessage>): void {
      if (id && channel_id && nonce) note(`${channel_id}/${nonce}`, id);
    },
    noteTry(message: Outgoing): void {
      const since = tried.get(keyOf(message))?.since ?? clock.now();
      // Without files: they are large.
      const { content, heading, authored } = message;
      tried.set(keyOf(message), { since, words: { content, heading, authored } });
    },
    noteSent: (message: Outgoing, id: string) => note(keyOf(message), id),
    /** Its id, if an earlier try is known to have arrived. */
    arrivedAs: (message: Outgoing): string | undefined => arrived.get(keyOf(message)),
    /** null if there was none, or none can be found. */
    async find(message: Outgoing, signal: AbortSignal): Promise<EarlierTry | null> {
      if (message.earlierTries === 0) return null;
      const id = arrived.get(keyOf(message));
      if (id !== undefined) {
        const isOutdated = otherWords(message).length > 0;
        return { result: { kind: 'sent', platformMessageId: id }, isOutdated };
      }
      const firstTry = tried.get(keyOf(message))?.since;
      const isFresh = (since: number | undefined) => since !== undefined && clock.now() - since <= NONCE_MS;
      const isKnownByNonce = message.authored === null && isFresh(message.createdAt) && isFresh(firstTry);
      return isKnownByNonce ? null : search(message, signal);
    },
    /** With exactly these words; always asks the channel. */
    async findInChannel(message: Outgoing, signal: AbortSignal): Promise<SendResult | null> {
      const found = await search(message, signal);
      return found === null || found.isOutdated ? null : found.result;
    },
  };
}

function isSame(one: AuthoredText, other: AuthoredText): boolean {
  const wordsOf = ({ content, authored }: AuthoredText) => JSON.stringify([content, authored]);
  return wordsOf(one) === wordsOf(other);
}

function keyOf({ room, nonce }: Outgoing): string {
  return `${room}/${nonce}`;
}

/** File names are not compared: Discord may change them. */
function mayBe({ id, flags, attachments }: Discord.APIMessage, { files, createdAt }: Outgoing): boolean {
  const sizes = attachments.map(({ size }) => size).sort();
  const wanted = files.map(({ data }) => data.length).sort();
  // A loading message only announces an answer.
  const isLoading = hasFlag(flags, Discord.MessageFlags.Loading);
  return timeOf(id) >= createdAt - SKEW_MS && !isLoading && sizes.join() === wanted.join();
}

function says(sent: Discord.APIMessage, words: AuthoredText, me: Me): boolean {
  const wanted = expected(sent, words, me);
  return wanted !== null && shownOf(sent, me) === wanted.content.trim();
}

/** Whether it is a partially written state of these words. */
function begins(sent: Discord.APIMessage, words: AuthoredText, me: Me): boolean {
  const shown = shownOf(sent, me);
  const wanted = expected(sent, words, me);
  if (wanted === null) return false;
  let same = 0;
  while (same < shown.length && shown[same] === wanted.content[same]) same += 1;
  return same - wanted.heading >= LEAST_BEGINNING && same >= shown.length * SAME_OF_BEGINNING;
}

/** Discord trims messages. */
function shownOf({ author, content }: Discord.APIMessage, me: Me): string {
  return (author.id === me.id ? content : unquoted({ content, heading: 0 }).content).trim();
}

/** The words expected under the author's name; null if they would be under another. */
function expected({ author }: Discord.APIMessage, words: AuthoredText, me: Me): HeadedText | null {
  if (author.id === me.id) return words;
  if (words.authored === null) return null;
  if (readsAs(author.username, words.authored.username)) return unquoted(words.authored.plain);
  return readsAs(author.username, NEUTRAL_NAME) ? unquoted(words.authored.named) : null;
}

/** Without the quote: before a restart it may have differed, or the quoted message is gone. */
function unquoted({ content, heading }: HeadedText): HeadedText {
  const [line = ''] = /^> .*(?:\n|$)/.exec(content) ?? [];
  return { content: content.slice(line.length), heading: Math.max(0, heading - line.length) };
}
