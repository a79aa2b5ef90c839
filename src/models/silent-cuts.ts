/**
 * Notices that a server reads only a part of long requests, by the one thing that tells: its count of their tokens. It is
 * below the least that they can be, or it stays where it is, or falls, while a conversation grows. Pure but for what it
 * remembers of the conversations' last requests.
 */
import type { RequestSize } from './request-size.js';

interface Counted {
  size: RequestSize;
  /** In each way in which the server's figures can be read: most count what was in their cache, some leave it out. */
  counts: number[];
}

/** Smaller requests and counts tell nothing: some servers count next to nothing, whatever they are sent. */
const LEAST_REQUEST = 1_200;
const LEAST_COUNT = 500;
/** A conversation that grew by so many tokens at least is looked at. */
const GROWN = 500;
/** Of what was added, a server that reads all counts more than this share. */
const LEAST_OF_GROWTH = 0.2;
const MOST_CHATS = 200;

export interface CutWatch {
  isCut(chat: string, request: Counted & { isOneChat: boolean }): boolean;
}

export function createCutWatch(): CutWatch {
  /** In order of use. By conversation: the request that later ones are compared with. */
  const before = new Map<string, Counted>();

  function keep(chat: string, request: Counted): void {
    before.delete(chat);
    before.set(chat, request);
    for (const oldest of before.keys()) {
      if (before.size <= MOST_CHATS) break;
      before.delete(oldest);
    }
  }

  return {
    isCut(chat, { size, counts, isOneChat }) {
      const highest = Math.max(...counts);
      if (size.estimated < LEAST_REQUEST || highest < LEAST_COUNT) return false;
      const isBelowLeast = highest < size.least;
      if (!isOneChat) return isBelowLeast;
      const last = before.get(chat);
      const grown = last === undefined ? 0 : size.least - last.size.least;
      // A picture that is gone may have taken more than the text has grown by.
      const isLessCertain = last !== undefined && size.uncertain < last.size.uncertain;
      if (last === undefined || grown < 0 || isLessCertain) {
        keep(chat, { size, counts });
        return isBelowLeast;
      }
      if (grown < GROWN) return isBelowLeast;
      keep(chat, { size, counts });
      const stalls = counts.every((count, n) => count - (last.counts[n] ?? 0) < LEAST_OF_GROWTH * grown);
      return isBelowLeast || stalls;
    },
  };
}

/**
 * The window behind the count of a request that was cut. Ollama keeps half of its window and two or three tokens more;
 * a count that is just above half of a round window means that one.
 */
export function windowBehind(counted: number): number {
  const round = Math.round((2 * counted) / 1_024) * 1_024;
  const over = counted - round / 2;
  return over >= 1 && over <= 16 && isPowerOfTwo(round / 1_024) ? round : counted;
}

function isPowerOfTwo(n: number): boolean {
  return n >= 1 && Number.isInteger(Math.log2(n));
}
