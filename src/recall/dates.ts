/** The dates that a question names: a day, a month or a year, or "yesterday" and "last week" as seen from now. Pure. */
import { localMidnight, type Zone } from '../core/dates.js';

/** Of local time, `until` exclusive. */
export interface Span {
  from: number;
  until: number;
}

const DAY_MS = 86_400_000;
const MONTHS = 'january february march april may june july august september october november december'.split(
  ' ',
);
const MONTH = '(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*';
const YEAR = '((?:19|20)\\d\\d)';

/** What is talked about is mostly told some days after it happened, or shortly before. */
const TOLD_BEFORE_MS = 3 * DAY_MS;
const TOLD_AFTER_MS = 10 * DAY_MS;

/** When a message stands that tells of a day the question names. */
export function datesIn(text: string, now: number, zone: Zone): Span[] {
  const said = text.slice(0, 2_000).toLowerCase();
  const spans: Span[] = [];
  const day = (year: number, month: number, date: number) => {
    const from = localMidnight(year, month, date, zone);
    spans.push({ from: from - TOLD_BEFORE_MS, until: from + DAY_MS + TOLD_AFTER_MS });
  };
  const month = (year: number, number: number) =>
    spans.push({
      from: localMidnight(year, number, 1, zone),
      until: localMidnight(year, number + 1, 1, zone) + TOLD_AFTER_MS,
    });
  const thisYear = Number(zone.date(now).slice(0, 4));
  const thisMonth = Number(zone.date(now).slice(5, 7));
  /** Without a year: the last one that has begun. */
  const yearOf = (number: number, year: string | undefined) =>
    year === undefined ? (number <= thisMonth ? thisYear : thisYear - 1) : Number(year);

  let rest = said.replace(/\b(\d{4})-(\d\d)-(\d\d)\b/g, (_, year, number, date) => {
    day(Number(year), Number(number), Number(date));
    return ' ';
  });
  rest = rest.replace(
    /(\d{4})\s?[年년]\s?(\d\d?)\s?[月월](?:\s?(\d\d?)\s?[日일])?/g,
    (_, year, number, date) => {
      if (date === undefined) month(Number(year), Number(number));
      else day(Number(year), Number(number), Number(date));
      return ' ';
    },
  );
  rest = rest.replace(/\b(\d\d?)\.(\d\d?)\.(\d{4})\b/g, (_, date, number, year) => {
    day(Number(year), Number(number), Number(date));
    return ' ';
  });
  rest = rest.replace(
    new RegExp(`\\b(\\d\\d?)(?:st|nd|rd|th)?(?: of)? ${MONTH},?(?: ${YEAR})?\\b`, 'g'),
    (_, date, name, year) => {
      day(yearOf(monthNumber(name), year), monthNumber(name), Number(date));
      return ' ';
    },
  );
  rest = rest.replace(
    new RegExp(`\\b${MONTH} (\\d\\d?)(?:st|nd|rd|th)?\\b,?(?: ${YEAR})?`, 'g'),
    (_, name, date, year) => {
      day(yearOf(monthNumber(name), year), monthNumber(name), Number(date));
      return ' ';
    },
  );
  rest = rest.replace(new RegExp(`\\b${MONTH},?(?: of)? ${YEAR}\\b`, 'g'), (_, name, year) => {
    month(Number(year), monthNumber(name));
    return ' ';
  });
  for (const [, name = ''] of rest.matchAll(
    /\b(?:in|of|since|last|this) (january|february|march|april|may|june|july|august|september|october|november|december)\b/g,
  )) {
    month(yearOf(monthNumber(name), undefined), monthNumber(name));
  }
  for (const [, year] of rest.matchAll(new RegExp(`\\b(?:in|of|during|since) ${YEAR}\\b`, 'g'))) {
    spans.push({
      from: localMidnight(Number(year), 1, 1, zone),
      until: localMidnight(Number(year) + 1, 1, 1, zone),
    });
  }
  const ago = (from: number, until: number) =>
    spans.push({ from: now - from * DAY_MS, until: now - until * DAY_MS });
  if (/\byesterday\b|昨天|昨日|어제|أمس|вчера/.test(rest)) ago(2, 0);
  if (/\blast week\b|上周|先週|지난주/.test(rest)) ago(14, 0);
  if (/\blast month\b|上个月|先月|지난달/.test(rest)) ago(62, 0);
  if (/\btoday\b|今天|今日|오늘|сегодня/.test(rest)) ago(1, -1);
  return spans.filter((span) => Number.isFinite(span.from) && Number.isFinite(span.until));
}

function monthNumber(name: string): number {
  return MONTHS.findIndex((month) => month.startsWith(name.slice(0, 3))) + 1;
}
