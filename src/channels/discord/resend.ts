/**
 * Whether an earlier try of a message arrived, before it is sent again. Discord itself knows a message by its nonce, but
 * only for some minutes, and neither the answers to native commands nor what goes through a webhook. Those are looked for
 * by their words: among what the gateway told us of our own messages, and among the newest of the channel.
 */
import type { SendResult } from '../../core/channel.js';
import { bounded } from '../kit/bounded.js';
import { type Base, MOST_NOTED } from './api.js';
import { NEUTRAL_NAME, readsAs } from './author.js';
import { failureOf, isRefusal, sendResult } from './failure.js';
import type { Identity, Me } from './identity.js';
import type { Outgoing, Words } from './outbound.js';
import { read, type Sent } from './payload.js';
import { isOurs } from './said.js';
import { byAge, timeOf } from './snowflake.js';
import type { Webhooks } from './webhooks.js';

/** A message with this flag only says that an answer will follow. */
export const LOADING = 1 << 7;
/** Discord remembers a nonce for some minutes. */
const NONCE_MS = 120_000;
/** By how much Discord's clock and ours may differ. */
const SKEW_MS = 5_000;
/** The beginning of a message that was still being written: a shorter one may be that of another message. */
const LEAST_BEGINNING = 20;
/** The end of a beginning may look different from how the text goes on: a mark was still open there. */
const SAME_OF_BEGINNING = 0.8;

type Said = Words & Pick<Outgoing, 'authored'>;

export interface Found {
  result: SendResult;
  /** It is there with other words, or perhaps is: those of an earlier try, or the beginning of these. */
  isOutdated: boolean;
}

export type Resends = ReturnType<typeof createResends>;

export function createResends({ api, clock }: Base, identity: Identity, webhooks: Webhooks) {
  const isOurWebhook = webhooks.isOurs;
  /** By room and nonce: the ids of messages that arrived, and what was tried last, since when. */
  const arrived = bounded<string, string>(MOST_NOTED);
  const tried = bounded<string, { since: number; words: Said }>(MOST_NOTED);
  /** By id: which message it is. */
  const known = bounded<string, string>(MOST_NOTED);

  function note(key: string, id: string): void {
    arrived.set(key, id);
    known.set(id, key);
  }

  /** What an earlier try said, if it was something else. */
  function otherWords(message: Outgoing): Said[] {
    const words = tried.get(keyOf(message))?.words;
    return words === undefined || isSame(words, message) ? [] : [words];
  }

  async function search(message: Outgoing, signal: AbortSignal): Promise<Found | null> {
    try {
      const me = await identity.ask(signal);
      const path = `/channels/${message.room}/messages`;
      const page = await api.get(path, signal, { limit: '100' });
      const ours = (Array.isArray(page) ? page : [])
        .flatMap((each) => read.sent(each) ?? [])
        .filter((each) => isOurs(each, { me, isOurWebhook }) && mayBe(each, message))
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
      const told = read.echo(payload);
      if (told?.nonce !== undefined) note(`${told.channel_id}/${told.nonce}`, told.id);
    },
    noteTry(message: Outgoing): void {
      const since = tried.get(keyOf(message))?.since ?? clock.now();
      // Not the files: they are large.
      const { files: _files, ...words } = message;
      tried.set(keyOf(message), { since, words });
    },
    noteSent: (message: Outgoing, id: string) => note(keyOf(message), id),
    /** null when there was none, or none can be found. */
    async find(message: Outgoing, signal: AbortSignal): Promise<Found | null> {
      if (message.earlierTries === 0) return null;
      const id = arrived.get(keyOf(message));
      if (id !== undefined) {
        const isOutdated = otherWords(message).length > 0;
        return { result: { kind: 'sent', platformMessageId: id }, isOutdated };
      }
      const firstTry = tried.get(keyOf(message))?.since;
      const isFresh = (since: number | undefined) => since !== undefined && clock.now() - since <= NONCE_MS;
      const isKnownByNonce =
        message.authored === undefined && isFresh(message.createdAt) && isFresh(firstTry);
      return isKnownByNonce ? null : search(message, signal);
    },
    /** With these very words, asking the channel in any case. */
    async findInChannel(message: Outgoing, signal: AbortSignal): Promise<SendResult | null> {
      const found = await search(message, signal);
      return found === null || found.isOutdated ? null : found.result;
    },
  };
}

function isSame(one: Said, other: Said): boolean {
  const wordsOf = ({ content, authored }: Said) => JSON.stringify([content, authored]);
  return wordsOf(one) === wordsOf(other);
}

function keyOf({ room, nonce }: Outgoing): string {
  return `${room}/${nonce}`;
}

/** Names of files are not compared: Discord may change them. */
function mayBe(sent: Sent, { files, createdAt }: Outgoing): boolean {
  const sizes = (sent.attachments ?? []).map(({ size }) => size ?? -1);
  return (
    timeOf(sent.id) >= createdAt - SKEW_MS &&
    ((sent.flags ?? 0) & LOADING) === 0 &&
    sizes.sort().join() ===
      files
        .map(({ data }) => data.length)
        .sort()
        .join()
  );
}

function says(sent: Sent, words: Said, me: Me): boolean {
  const wanted = expected(sent, words, me);
  return wanted !== null && shownOf(sent, me) === wanted.content.trim();
}

/** Whether it is how these words looked while they were still being written. */
function begins(sent: Sent, words: Said, me: Me): boolean {
  const shown = shownOf(sent, me);
  const wanted = expected(sent, words, me);
  if (wanted === null) return false;
  let same = 0;
  while (same < shown.length && shown[same] === wanted.content[same]) same += 1;
  return same - wanted.heading >= LEAST_BEGINNING && same >= shown.length * SAME_OF_BEGINNING;
}

/** Discord takes white space at the ends away. */
function shownOf({ author, content = '' }: Sent, me: Me): string {
  return (author.id === me.id ? content : unquoted({ content, heading: 0 }).content).trim();
}

/** What would be there, given whose name it is under; null where it would not be under that. */
function expected({ author }: Sent, { content, heading, authored }: Said, me: Me): Words | null {
  if (author.id === me.id) return { content, heading };
  if (authored === undefined) return null;
  const name = author.username ?? '';
  if (readsAs(name, authored.username)) return unquoted(authored.plain);
  return readsAs(name, NEUTRAL_NAME) ? unquoted(authored.named) : null;
}

/**
 * Without the line above it that quotes what it answers: before a restart it may have been another one, since what the
 * gateway tells of a message is more than what one is told who asks (a name in a server), and the message may be gone.
 */
function unquoted({ content, heading }: Words): Words {
  const [line = ''] = /^> .*(?:\n|$)/.exec(content) ?? [];
  return { content: content.slice(line.length), heading: Math.max(0, heading - line.length) };
}
