/**
 * How large a file may be that we send: what Discord gives every server, more by its boosts; as the newest command told it;
 * and less where it has refused one.
 */
import type { Recipient } from '../../core/channel.js';
import { bounded } from '../kit/bounded.js';
import { MOST_NOTED } from './api.js';
import type { Directory } from './directory.js';
import { roomOf } from './outbound.js';

const MIB = 1024 * 1024;
const USUAL = 10 * MIB;
/** By the tier of the server's boosts. */
const BY_TIER = [USUAL, USUAL, 50 * MIB, 100 * MIB];

export type Uploads = ReturnType<typeof createUploads>;

export function createUploads(directory: Pick<Directory, 'channel' | 'premiumTier'>) {
  /** By guild, or by room in direct chats. */
  const told = bounded<string, number>(MOST_NOTED);
  const refused = bounded<string, number>(MOST_NOTED);

  const keyOf = (room: string) => directory.channel(room)?.guildId ?? room;

  return {
    /** Discord said with a command in this room how large the files of its answer may be. */
    note(room: string, bytes: number): void {
      told.set(keyOf(room), bytes);
      refused.delete(keyOf(room));
    },
    /** So large a file was not taken. */
    noteRefused(to: Recipient, bytes: number): void {
      refused.set(keyOf(roomOf(to)), bytes > USUAL ? USUAL : bytes - 1);
    },
    most(to: Recipient): number {
      const key = keyOf(roomOf(to));
      const boosted = BY_TIER[directory.premiumTier(key)] ?? USUAL;
      return refused.get(key) ?? Math.max(told.get(key) ?? USUAL, boosted);
    },
  };
}
