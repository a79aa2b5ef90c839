/**
 * Whether an earlier try of a message arrived, before it is sent again. Discord itself knows a message by its nonce, but
 * only for some minutes, and not the answers to native commands. Beyond that it is looked for: among what the gateway
 * told us of our own messages, and among the newest of the channel.
 */
import type { SendResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { bounded } from '../bounded.js';
import type { Api } from './api.js';
import { failureOf, isRefusal, sendResult } from './failure.js';
import type { Identity } from './identity.js';
import { read, type Sent } from './payload.js';
import { byAge, timeOf } from './snowflake.js';

/** How many are remembered; older ones go. */
const MOST_NOTED = 1_000;

/** Discord's memory for nonces is of a few minutes. */
const NONCE_MS = 120_000;
/** By how much its clock and ours may differ. */
const SKEW_MS = 5_000;
/** It is there, but only says that an answer will follow. */
export const LOADING = 1 << 7;

/** One message of ours, as it is to be sent. */
export interface Outgoing {
  room: string;
  nonce: string;
  content: string;
  files: { name: string; data: Buffer }[];
  earlierTries: number;
  createdAt: number;
}

export interface Earlier {
  /** Our own message, as the gateway brought it. */
  noteEcho(payload: unknown): void;
  noteTry(message: Outgoing): void;
  noteSent(message: Outgoing, id: string): void;
  /** null when there was none, or none can be found. */
  find(message: Outgoing, signal: AbortSignal): Promise<SendResult | null>;
  /** The same, asking the channel in any case. */
  findInChannel(message: Outgoing, signal: AbortSignal): Promise<SendResult | null>;
}

export function createEarlier(parts: { api: Api; identity: Identity; clock: Clock; token: string }): Earlier {
  const { api, identity, clock, token } = parts;
  /** By room and nonce: the ids of messages that arrived, and when the first try of a message was made. */
  const arrived = bounded<string, string>(MOST_NOTED);
  const tried = bounded<string, number>(MOST_NOTED);
  /** By id: which message it is. */
  const known = bounded<string, string>(MOST_NOTED);

  function note(key: string, id: string): void {
    arrived.set(key, id);
    known.set(id, key);
  }

  async function findInChannel(message: Outgoing, signal: AbortSignal): Promise<SendResult | null> {
    try {
      const me = await identity.ask(signal);
      const path = `/channels/${message.room}/messages`;
      const page = await api.call({ method: 'GET', path, query: { limit: '100' } }, { signal });
      const newest = (Array.isArray(page) ? page : []).flatMap((each) => read.sent(each) ?? []);
      const found = newest
        .filter((each) => each.author.id === me.id && isIt(each, message))
        .filter(({ id }) => (known.get(id) ?? keyOf(message)) === keyOf(message))
        .sort(byAge)
        .at(-1);
      if (found === undefined) return null;
      note(keyOf(message), found.id);
      return { kind: 'sent', platformMessageId: found.id };
    } catch (error) {
      const failure = failureOf(error, token);
      // Where we may not look, nothing can be found; what then is sent may be there twice.
      return isRefusal(failure) ? null : sendResult(failure);
    }
  }

  return {
    noteEcho(payload) {
      const told = read.echo(payload);
      if (told?.nonce !== undefined) note(`${told.channel_id}/${told.nonce}`, told.id);
    },
    noteTry(message) {
      if (tried.get(keyOf(message)) === undefined) tried.set(keyOf(message), clock.now());
    },
    noteSent: (message, id) => note(keyOf(message), id),
    async find(message, signal) {
      if (message.earlierTries === 0) return null;
      const id = arrived.get(keyOf(message));
      if (id !== undefined) return { kind: 'sent', platformMessageId: id };
      const firstTry = tried.get(keyOf(message));
      const now = clock.now();
      const isFresh =
        now - message.createdAt <= NONCE_MS && firstTry !== undefined && now - firstTry <= NONCE_MS;
      return isFresh ? null : findInChannel(message, signal);
    },
    findInChannel,
  };
}

function keyOf({ room, nonce }: Outgoing): string {
  return `${room}/${nonce}`;
}

/** Names of files are not compared: Discord may change them. */
function isIt(sent: Sent, { content, files, createdAt }: Outgoing): boolean {
  const sizes = (all: (number | undefined)[]) =>
    all
      .map((size) => size ?? -1)
      .sort()
      .join();
  return (
    timeOf(sent.id) >= createdAt - SKEW_MS &&
    ((sent.flags ?? 0) & LOADING) === 0 &&
    // Discord takes white space at the ends away.
    (sent.content ?? '').trim() === content.trim() &&
    sizes((sent.attachments ?? []).map(({ size }) => size)) === sizes(files.map(({ data }) => data.length))
  );
}
