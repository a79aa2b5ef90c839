/** Whether a message in a channel's history is one that was to be sent. Pure. */
import { NEUTRAL_NAME, readsAs } from './face.js';
import type { Me } from './identity.js';
import type { Outgoing } from './outbound.js';
import type { Sent } from './payload.js';
import { timeOf } from './snowflake.js';

/** It is there, but only says that an answer will follow. */
export const LOADING = 1 << 7;

/** By how much Discord's clock and ours may differ. */
const SKEW_MS = 5_000;
/** A beginning that is shorter may be that of another message. */
const LEAST_BEGINNING = 20;
/** Of a beginning, the end may look different from how the text goes on: a mark was still open there. */
const SAME_OF_BEGINNING = 0.8;

export type Words = Pick<Outgoing, 'content' | 'heading' | 'authored'>;

/** Names of files are not compared: Discord may change them. */
export function mayBe(sent: Sent, { files, createdAt }: Pick<Outgoing, 'files' | 'createdAt'>): boolean {
  const sizes = (all: (number | undefined)[]) =>
    all
      .map((size) => size ?? -1)
      .sort()
      .join();
  return (
    timeOf(sent.id) >= createdAt - SKEW_MS &&
    ((sent.flags ?? 0) & LOADING) === 0 &&
    sizes((sent.attachments ?? []).map(({ size }) => size)) === sizes(files.map(({ data }) => data.length))
  );
}

export function says(sent: Sent, words: Words, me: Me): boolean {
  return shownOf(sent) === wordsFor(sent, words, me)?.content.trim();
}

/** Whether it is how these words looked while they were still being written. */
export function begins(sent: Sent, words: Words, me: Me): boolean {
  const shown = shownOf(sent);
  const wanted = wordsFor(sent, words, me);
  if (wanted === null) return false;
  let same = 0;
  while (same < shown.length && shown[same] === wanted.content[same]) same += 1;
  return same - wanted.heading >= LEAST_BEGINNING && same >= shown.length * SAME_OF_BEGINNING;
}

/** Discord takes white space at the ends away. */
function shownOf({ content = '' }: Sent): string {
  return content.trim();
}

/** What would stand there, given whose name it is under; null where it would not be under that. */
function wordsFor(
  { author }: Sent,
  { content, heading, authored }: Words,
  me: Me,
): { content: string; heading: number } | null {
  if (author.id === me.id) return { content, heading };
  if (authored === undefined) return null;
  const name = author.username ?? '';
  if (readsAs(name, authored.username)) return { content: authored.content, heading: 0 };
  return readsAs(name, NEUTRAL_NAME) ? { content, heading } : null;
}
