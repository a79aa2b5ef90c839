/**
 * Within step 1 of the route: what the log says of those who may not talk. Anybody may write to a bot, so what they cause
 * is bounded: the first are named at once, and of a flood there is a line a minute that counts.
 */
import type { Clock } from '../../core/clock.js';
import type { ChatId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import { NAME_CHARS } from '../commands/owners.js';
import { oneLine } from '../quoting.js';

export interface Strangers {
  /** Somebody unknown got no code, because the channel has given as many as it may. Nothing of them is kept. */
  gotNoCode(channel: string, sender: ChatId): void;
  /** Somebody may not talk here, and is told nothing: the operator may want to admit them. Once per sender. */
  keptOut(channel: string, about: { chat: ChatId; sender: ChatId; name: string }): void;
  /** A group that is not listed waits to be let in. */
  groupWaits(channel: string, about: { chat: ChatId; title: string }): void;
  /** Says what was counted since the last line, and counts no more. */
  stop(): void;
}

const MINUTE_MS = 60_000;
/** How many ids are remembered of a kind, and how many of them a line names. */
const MOST_KNOWN = 1_000;
const MOST_NAMED = 10;
/** How many are named at once. Those without a code are not named at all. */
const AT_ONCE = 10;

export function createStrangers({ clock, log }: { clock: Clock; log: Log }): Strangers {
  const keptOutBefore = new Set<ChatId>();
  const tallies = new Map<string, Tally>();
  let stopped = false;
  const afterAMinute: AfterAMinute = (act) => (stopped ? () => {} : clock.after(MINUTE_MS, act));

  function tally(name: string, atOnce: number, say: (ids: ChatId[], count: string) => void): Tally {
    const known = tallies.get(name) ?? createTally(afterAMinute, atOnce, say);
    tallies.set(name, known);
    return known;
  }

  return {
    gotNoCode(channel, sender) {
      const say = (count: string) =>
        log.warn(
          { channel, strangers: count },
          `strangers turned away without a code: ${count}; a channel gives only so many, at once and an hour (coterie pair list)`,
        );
      const counted = tally(`no code ${channel}`, 1, (_ids, count) => say(count));
      if (counted.add(sender) === 'now') say('1');
    },

    keptOut(channel, { chat, sender, name }) {
      if (keptOutBefore.has(sender)) return;
      remember(keptOutBefore, sender);
      const counted = tally(`kept out ${channel}`, AT_ONCE, (senders, count) =>
        log.info({ channel, senders }, `messages of ${count} others who may not talk here were discarded`),
      );
      if (counted.add(sender) !== 'now') return;
      log.info(
        { chat, sender, name: oneLine(name, NAME_CHARS) },
        'a message from somebody who may not talk here was discarded',
      );
    },

    groupWaits(channel, { chat, title }) {
      const counted = tally(`group ${channel}`, AT_ONCE, (chats, count) =>
        log.warn(
          { channel, chats },
          `mentioned in ${count} other groups that are not listed; coterie pair list shows them`,
        ),
      );
      if (counted.add(chat) !== 'now') return;
      log.warn(
        { chat, title: oneLine(title, NAME_CHARS) },
        `mentioned in a group that is not listed; to allow it: coterie pair approve ${chat}`,
      );
    },

    stop() {
      stopped = true;
      for (const each of tallies.values()) each.stop();
    },
  };
}

/** Returns what cancels it. */
type AfterAMinute = (act: () => void) => () => void;

interface Tally {
  /** 'now' if there is a line to spare for it; else it is counted, once. */
  add(id: ChatId): 'now' | 'counted';
  stop(): void;
}

/** So many lines are to spare at once, and one more a minute: either for the next one, or for the count of many. */
function createTally(
  afterAMinute: AfterAMinute,
  atOnce: number,
  say: (ids: ChatId[], count: string) => void,
): Tally {
  const counted = new Set<ChatId>();
  let lines = atOnce;
  let cancel: (() => void) | null = null;

  function sayCount(): void {
    if (counted.size === 0) return;
    const count = counted.size < MOST_KNOWN ? String(counted.size) : `${MOST_KNOWN} or more`;
    say([...counted].slice(0, MOST_NAMED), count);
    counted.clear();
  }

  function minuteIsOver(): void {
    if (counted.size === 0) lines += 1;
    sayCount();
    cancel = lines < atOnce ? afterAMinute(minuteIsOver) : null;
  }

  return {
    add(id) {
      cancel ??= afterAMinute(minuteIsOver);
      if (lines > 0) {
        lines -= 1;
        return 'now';
      }
      if (counted.size < MOST_KNOWN) counted.add(id);
      return 'counted';
    },
    stop() {
      cancel?.();
      sayCount();
    },
  };
}

/** The oldest leaves. */
function remember(known: Set<ChatId>, id: ChatId): void {
  const [oldest] = known;
  if (known.size >= MOST_KNOWN && oldest !== undefined) known.delete(oldest);
  known.add(id);
}
