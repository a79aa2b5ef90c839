/**
 * Finds the dates that a question mentions: a day, a month or a year, or "yesterday" and "last week" relative to now.
 * Pure.
 */
import { localMidnight, type Zone } from '../core/dates.js';

/** In local time; `until` is exclusive. */
export interface Span {
  from: number;
  until: number;
  /** Of a day: when it is told most often, on that day and the next. */
  soon?: Span;
}

const DAY_MS = 86_400_000;
const MONTHS = 'january february march april may june july august september october november december';
const MONTH = '(?<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*';
const YEAR = '(?<year>(?:19|20)\\d\\d)';
const DAY = '(?<day>\\d\\d?)(?:st|nd|rd|th)?';

/** In this order; each searches what the earlier ones have left. */
const FORMS = [
  /\b(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)\b/g,
  /(?<year>\d{4})\s?[年년]\s?(?<month>\d\d?)\s?[月월](?:\s?(?<day>\d\d?)\s?[日일])?/g,
  /\b(?<day>\d\d?)\.(?<month>\d\d?)\.(?<year>\d{4})\b/g,
  new RegExp(`\\b${DAY}(?: of)? ${MONTH},?(?: ${YEAR})?\\b`, 'g'),
  new RegExp(`\\b${MONTH} ${DAY}\\b,?(?: ${YEAR})?`, 'g'),
  new RegExp(`\\b${MONTH},?(?: of)? ${YEAR}\\b`, 'g'),
  new RegExp(`\\b(?:in|of|since|last|this) (?<month>${MONTHS.replaceAll(' ', '|')})\\b`, 'g'),
  new RegExp(`\\b(?:in|of|during|since) ${YEAR}\\b`, 'g'),
];

/** In days before now. */
const AGO: [pattern: RegExp, from: number, until: number][] = [
  [/\byesterday\b|昨天|昨日|어제|أمس|вчера/, 2, 0],
  [/\blast week\b|上周|先週|지난주/, 14, 0],
  [/\blast month\b|上个月|先月|지난달/, 62, 0],
  [/\btoday\b|今天|今日|오늘|сегодня/, 1, -1],
];

/** People mostly talk about an event within some days after it, or shortly before. */
const TOLD_BEFORE_MS = 3 * DAY_MS;
const TOLD_AFTER_MS = 10 * DAY_MS;

const TOLD_SOON_MS = 2 * DAY_MS;

/** The time spans in which a message about the mentioned dates was probably said. */
export function datesIn(text: string, now: number, zone: Zone): Span[] {
  const spans: Span[] = [];
  let rest = text.slice(0, 2_000).toLowerCase();
  for (const form of FORMS) {
    rest = rest.replace(form, (...match) => {
      spans.push(spanOf(match.at(-1), now, zone));
      return ' ';
    });
  }
  for (const [pattern, from, until] of AGO) {
    if (pattern.test(rest)) spans.push({ from: now - from * DAY_MS, until: now - until * DAY_MS });
  }
  return spans.filter((span) => Number.isFinite(span.from) && Number.isFinite(span.until));
}

function spanOf(named: { year?: string; month?: string; day?: string }, now: number, zone: Zone): Span {
  const midnight = (year: number, month: number, day: number) => localMidnight(year, month, day, zone);
  if (named.month === undefined) {
    const year = Number(named.year);
    return { from: midnight(year, 1, 1), until: midnight(year + 1, 1, 1) };
  }
  const month = monthNumber(named.month);
  const [thisYear, thisMonth] = zone.date(now).split('-').map(Number);
  // Without a year: the most recent one in which that month has begun.
  const lastYear = (thisYear ?? 0) - (month <= (thisMonth ?? 0) ? 0 : 1);
  const year = named.year === undefined ? lastYear : Number(named.year);
  if (named.day === undefined) {
    return { from: midnight(year, month, 1), until: midnight(year, month + 1, 1) + TOLD_AFTER_MS };
  }
  const from = midnight(year, month, Number(named.day));
  const soon = { from, until: from + TOLD_SOON_MS };
  return { from: from - TOLD_BEFORE_MS, until: from + DAY_MS + TOLD_AFTER_MS, soon };
}

function monthNumber(name: string): number {
  if (/^\d/.test(name)) return Number(name);
  return MONTHS.split(' ').findIndex((month) => month.startsWith(name.slice(0, 3))) + 1;
}
