/** The state of a channel for people: what is wrong, and what to do about it. */
import type { ChannelStatus } from '../core/channel.js';
import type { ChannelAdvice, ChannelItem } from './protocol-operations.js';

/** The words of the channels themselves; the first match counts. */
const REMEDIES: Record<string, readonly (readonly [words: RegExp, advice: ChannelAdvice])[]> = {
  telegram: [
    [/answers 409: .{0,300}webhook/i, 'webhook'],
    [/answers 409/, 'otherReader'],
    [/needs an update/, 'oldServer'],
    [/answers 40[14]/, 'token'],
    [/could not store/, 'disk'],
    [/asked to wait|answers 429/, 'wait'],
    [/cannot be reached|the connection to Telegram broke|does not answer/, 'network'],
    [/answers 5\d\d/, 'theirs'],
  ],
  discord: [
    [/refuses the token|answers 401/, 'token'],
    [/intent Message Content/, 'intent'],
    [/more servers than so few connections/, 'tooManyServers'],
    [/does not know our|refuses our shard/, 'update'],
    [/could not be stored/, 'disk'],
    [/limits the rate|we send too much|refused \d+ calls/, 'wait'],
    [/cannot be reached|no answer in time|was closed|timed out/, 'network'],
    [/answers 5\d\d/, 'theirs'],
  ],
  whatsapp: [
    [/\(463\)/, 'restricted'],
    [/not linked|did not complete the link/, 'link'],
    [/was removed from the linked devices/, 'linkAgain'],
    [/\(40[23]\)/, 'refused'],
    [/\(411\)/, 'multiDevice'],
    [/\(440\)/, 'sameLink'],
    [/\(405\)/, 'oldClient'],
    [/\((408|428)\)|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN/, 'network'],
    [/\((500|503)\)/, 'theirs'],
  ],
};

/** They end by themselves, and nothing is lost meanwhile. */
const PASSING: readonly ChannelAdvice[] = ['wait', 'restricted'];

export function channelItem(
  { name, label }: { name: string; label: string },
  { connected, since, lastError }: ChannelStatus,
  heldBy: string | null,
): ChannelItem {
  if (heldBy !== null) {
    const unknown = { since, lastError: null, advice: null };
    return { name, label, level: 'good', state: 'elsewhere', heldBy, ...unknown };
  }
  const advice = lastError === null ? null : adviceOn(name, lastError);
  const common = { name, label, heldBy, since, lastError };
  if (connected) {
    // The last error of a channel that works is history; a restriction goes on.
    const isRestricted = advice === 'restricted';
    const level = isRestricted ? 'warn' : 'good';
    return { ...common, level, state: 'connected', advice: isRestricted ? advice : null };
  }
  if (advice === null) return { ...common, level: 'warn', state: 'connecting', advice };
  return { ...common, level: PASSING.includes(advice) ? 'warn' : 'bad', state: 'failing', advice };
}

export function adviceOn(channel: string, error: string): ChannelAdvice {
  return REMEDIES[channel]?.find(([words]) => words.test(error))?.[1] ?? 'stays';
}
