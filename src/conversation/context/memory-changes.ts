/** Step 4 of the route: how a persona's memory has changed since the prefix of its requests was made. Pure. */

import { daysOf } from '../../core/daily-log.js';
import { type MemorySnapshot, TIERS } from '../../core/memory.js';
import { fenced } from '../../core/origin.js';
import type { ShownMemory } from './prompt.js';

/** null if the changes cannot be told in parts, so the request should begin anew. */
export function changesOf(before: ShownMemory, now: ShownMemory, dailyMaxChars: number): string | null {
  const tiers = changedTiers(before.memory, now.memory);
  const days = changedDays(before.dailyLog, now.dailyLog, dailyMaxChars);
  return tiers === null || days === null ? null : [...tiers, ...days].join('\n\n');
}

/** Each changed tier in full; null if the change cannot be expressed by tiers. */
function changedTiers(before: MemorySnapshot, now: MemorySnapshot): string[] | null {
  if (before.text === now.text) return [];
  const [old, current] = [inTiers(before), inTiers(now)];
  if (old === null || current === null || old.rest !== current.rest) return null;
  return TIERS.flatMap((tier, n) => {
    const text = current.tiers[n] ?? '';
    if (text === old.tiers[n]) return [];
    return [text === '' ? `Tier ${tier} is empty now.` : `Tier ${tier}, whole:\n\n${fenced(text)}`];
  });
}

/** The tiers and the text of the file around them; null if a tier is cut or not where it is expected. */
function inTiers({ text, seen }: MemorySnapshot): { tiers: string[]; rest: string } | null {
  const tiers: string[] = [];
  let rest = '';
  let from = 0;
  for (const tier of TIERS) {
    const shown = seen[tier];
    const at = 'text' in shown ? text.indexOf(shown.text, from) : -1;
    if (!('text' in shown) || at < 0) return null;
    tiers.push(shown.text);
    rest += `${text.slice(from, at)}\n`;
    from = at + shown.text.length;
  }
  const lines = `${rest}${text.slice(from)}`.split('\n');
  const isKept = (line: string) => line.trim() !== '' && !/^ {0,3}#{1,2}\s+(memory|tier\b.*)$/i.test(line);
  return { tiers, rest: lines.filter(isKept).join('\n') };
}

/** The new lines of each day, or the whole day if it changed otherwise. null if a day is gone, or it is too much in all. */
function changedDays(before: string, now: string, most: number): string[] | null {
  if (before === now) return [];
  const known = daysByDate(before);
  const days = daysByDate(now);
  if ([...known.keys()].some((date) => !days.has(date))) return null;
  const changed = [...days].flatMap(([date, text]) => {
    const old = known.get(date);
    if (old === text) return [];
    if (old !== undefined && text.startsWith(`${old}\n`)) {
      return [`New in the daily log of ${date}:\n\n${fenced(text.slice(old.length).trim())}`];
    }
    return [`The daily log of ${date}, whole:\n\n${fenced(text)}`];
  });
  return before.length + changed.join('').length > most ? null : changed;
}

/** A line of a day that looks like another day's heading only divides it. */
function daysByDate(log: string): Map<string, string> {
  const days = new Map<string, string>();
  for (const { date, text } of daysOf(log)) {
    const before = days.get(date);
    days.set(date, before === undefined ? text : `${before}\n${text}`);
  }
  return days;
}
