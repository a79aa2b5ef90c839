/**
 * Whether an earlier try of a message arrived, before it is sent again. Discord knows a message by its nonce for some
 * minutes, but neither answers to commands nor messages of webhooks. Those are looked for by their words: among our own
 * messages that the gateway told of, and among the newest of the channel.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { SendResult } from '../../core/channel.js';
import type { ApiCall, Base } from './api.js';
import { isOurs } from './content.js';
import type { Identity, Me } from './directory.js';
import { failureOf, isRefusal, MOST_NOTED, sendResult } from './failure.js';
import { NEUTRAL_NAME, readsAs } from './outbound.js';
import { byAge, type Fields, fieldsOf, hasFlag, idOf, listOf, textOf, timeOf } from './payload.js';
import type { Webhooks } from './webhooks.js';

/** Discord remembers a nonce for some minutes. */
const NONCE_MS = 120_000;
/** By how much Discord's clock and ours may differ. */
const SKEW_MS = 5_000;
/** The beginning of a message that was still being written: a shorter one may be that of another message. */
const LEAST_BEGINNING = 20;
/** The end of a beginning may look different from how the text goes on: a mark was still open there. */
const SAME_OF_BEGINNING = 0.8;

interface HeadedText {
  content: string;
  /** So many characters at its beginning only tell who speaks, or whom it answers. */
  heading: number;
}

/** Words as the bot says them. */
interface AuthoredText extends HeadedText {
  /** Through a webhook: under this name where Discord takes it, else with the name before the words. */
  authored: { username: string; plain: HeadedText; named: HeadedText } | null;
}

/** One message of ours, as it is to be sent. */
export interface Outgoing extends AuthoredText {
  room: string;
  nonce: string;
  files: NonNullable<ApiCall['files']>;
  earlierTries: number;
  createdAt: number;
}

interface EarlierTry {
  result: SendResult;
  /** It is there, perhaps with the words of an earlier try, or the beginning of these. */
  isOutdated: boolean;
}

export type Resends = ReturnType<typeof createResends>;

export function createResends({ api, clock }: Base, identity: Identity, webhooks: Webhooks) {
  /** By room and nonce: the ids of messages that arrived, and what was tried last, since when. */
  const arrived = new LRUCache<string, string>({ max: MOST_NOTED });
  const tried = new LRUCache<string, { since: number; words: AuthoredText }>({ max: MOST_NOTED });
  /** By id: which message it is. */
  const known = new LRUCache<string, string>({ max: MOST_NOTED });

  function note(key: string, id: string): void {
    arrived.set(key, id);
    known.set(id, key);
  }

  /** What an earlier try said, if it was something else. */
  function otherWords(message: Outgoing): AuthoredText[] {
    const words = tried.get(keyOf(message))?.words;
    return words === undefined || isSame(words, message) ? [] : [words];
  }

  async function search(message: Outgoing, signal: AbortSignal): Promise<EarlierTry | null> {
    try {
      const me = await identity.ask(signal);
      const path = `/channels/${message.room}/messages`;
      const page = await api.get(path, signal, { limit: '100' });
      const ours = listOf<Discord.APIMessage>(page)
        .filter((each) => isOurs(each, { me, isOurWebhook: webhooks.isOurs }))
        .flatMap((each) => sentOf(each) ?? [])
        .filter((each) => mayBe(each, message))
        .filter(({ id }) => (known.get(id) ?? keyOf(message)) === keyOf(message))
        .sort(byAge);
      const others = otherWords(message);
      const same = ours.findLast((each) => says(each, message, me));
      const found =
        same ??
        ours.findLast((each) => others.some((words) => says(each, words, me))) ??
        ours.findLast((each) => begins(each, message, me));
      if (found === undefined) return null;
      note(keyOf(message), found.id);
      return { result: { kind: 'sent', platformMessageId: found.id }, isOutdated: same === undefined };
    } catch (error) {
      const failure = failureOf(error);
      // Where we may not look, nothing can be found; what then is sent may be there twice.
      return isRefusal(failure) ? null : { result: sendResult(failure), isOutdated: false };
    }
  }

  return {
    /** Our own message, as the gateway brought it. */
    noteEcho(payload: unknown): void {
      const told = fieldsOf<Discord.APIMessage>(payload);
      const [id, room, nonce] = [idOf(told.id), idOf(told.channel_id), textOf(told.nonce)];
      if (id !== undefined && room !== undefined && nonce !== undefined) note(`${room}/${nonce}`, id);
    },
    noteTry(message: Outgoing): void {
      const since = tried.get(keyOf(message))?.since ?? clock.now();
      // Not the files: they are large.
      const { content, heading, authored } = message;
      tried.set(keyOf(message), { since, words: { content, heading, authored } });
    },
    noteSent: (message: Outgoing, id: string) => note(keyOf(message), id),
    /** null when there was none, or none can be found. */
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
    /** With these very words, asking the channel in any case. */
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

/** One of ours in the history of a channel. */
interface Sent {
  id: string;
  authorId: string;
  authorName: string;
  content: string;
  isLoading: boolean;
  sizes: unknown[];
}

function sentOf(told: Fields<Discord.APIMessage>): Sent | null {
  const author = fieldsOf<Discord.APIUser>(told.author);
  const [id, authorId] = [idOf(told.id), idOf(author.id)];
  if (id === undefined || authorId === undefined) return null;
  return {
    id,
    authorId,
    authorName: textOf(author.username) ?? '',
    content: textOf(told.content) ?? '',
    // It only says that an answer will follow.
    isLoading: hasFlag(told.flags, Discord.MessageFlags.Loading),
    sizes: listOf<Discord.APIAttachment>(told.attachments).map(({ size }) => size),
  };
}

/** Names of files are not compared: Discord may change them. */
function mayBe({ id, isLoading, sizes }: Sent, { files, createdAt }: Outgoing): boolean {
  const wanted = files.map(({ data }) => data.length);
  return timeOf(id) >= createdAt - SKEW_MS && !isLoading && sizes.sort().join() === wanted.sort().join();
}

function says(sent: Sent, words: AuthoredText, me: Me): boolean {
  const wanted = expected(sent, words, me);
  return wanted !== null && shownOf(sent, me) === wanted.content.trim();
}

/** Whether it is how these words looked while they were still being written. */
function begins(sent: Sent, words: AuthoredText, me: Me): boolean {
  const shown = shownOf(sent, me);
  const wanted = expected(sent, words, me);
  if (wanted === null) return false;
  let same = 0;
  while (same < shown.length && shown[same] === wanted.content[same]) same += 1;
  return same - wanted.heading >= LEAST_BEGINNING && same >= shown.length * SAME_OF_BEGINNING;
}

/** Discord trims messages. */
function shownOf({ authorId, content }: Sent, me: Me): string {
  return (authorId === me.id ? content : unquoted({ content, heading: 0 }).content).trim();
}

/** The words that would be there under the author's name; null where they would be under another. */
function expected(
  { authorId, authorName }: Sent,
  { content, heading, authored }: AuthoredText,
  me: Me,
): HeadedText | null {
  if (authorId === me.id) return { content, heading };
  if (authored === null) return null;
  if (readsAs(authorName, authored.username)) return unquoted(authored.plain);
  return readsAs(authorName, NEUTRAL_NAME) ? unquoted(authored.named) : null;
}

/** Without the quote of what it answers: before a restart it may have been another one, or the message is gone. */
function unquoted({ content, heading }: HeadedText): HeadedText {
  const [line = ''] = /^> .*(?:\n|$)/.exec(content) ?? [];
  return { content: content.slice(line.length), heading: Math.max(0, heading - line.length) };
}
