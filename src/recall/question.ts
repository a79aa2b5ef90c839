/** The words, names and dates of a question to search for. Pure. */
import { localMidnight, type Zone } from '../core/dates.js';
import type { RecallQuery } from '../core/recall.js';
import type { SearchQuestion } from './rank.js';
import type { ScopeTable, ScopeTables, TimeSpan } from './scope-table.js';
import { indexTerms, ownTerms, queryTerms, subjectTerms } from './terms.js';
import { isEveryday, membersOf } from './word-lists.js';

/** More terms mean a pasted text: only the first are searched. */
const MOST_TERMS = 64;
/** Weight of words that belong to the phrasing: "what is it called". */
const FRAME = 0.5;
/** Weight of words said just before the question. */
const AROUND = 0.6;
/** Weight of a kind's members: football, if the question asks for sports. */
const MEMBER = 0.5;

export function questionWords(
  tables: ScopeTables,
  table: ScopeTable,
  query: RecallQuery,
  zone: Zone,
): Pick<SearchQuestion, 'terms' | 'own' | 'asked' | 'dates'> {
  const all = queryTerms(query.text, MOST_TERMS);
  // A name tells who spoke, and is in every greeting: it is searched for only if there are no other words.
  const names = all.filter(({ text }) => table.authorsByTerm.has(text));
  const others = all.filter(({ text }) => !table.authorsByTerm.has(text));
  const subject = new Set(subjectTerms(query.text, MOST_TERMS).map(({ text }) => text));
  const called = new Set(capitalised(query.text).flatMap(indexTerms));
  const found = (others.length > 0 ? others : all).map((term) => {
    const weight = subject.size === 0 || subject.has(term.text) ? 1 : FRAME;
    const said = tables.occurrences(table, term);
    const positions = said?.length === 0 ? tables.alike(table, term) : said;
    const kind = called.has(term.text) ? ('name' as const) : ('word' as const);
    return {
      positions,
      weight,
      said: weight === 1 && said?.length !== 0 && !saysLittle(term.text) ? kind : null,
    };
  });
  const known = new Set(all.map(({ text }) => text));
  const around = subjectTerms(query.around ?? '', MOST_TERMS)
    .filter(({ text }) => !known.has(text) && !table.authorsByTerm.has(text))
    .map((term) => ({ positions: tables.occurrences(table, term), weight: AROUND, said: null }));
  const members = others
    .filter(({ text }) => subject.has(text))
    .map(({ text }) => {
      const unsaid = membersOf(text).filter((member) => !known.has(member));
      return { positions: tables.anyOf(table, unsaid), weight: MEMBER, said: null };
    });
  const own = ownTerms(query.text).map((text) => tables.occurrences(table, { text, begins: false }));
  const asked = new Set(names.flatMap(({ text }) => table.authorsByTerm.get(text) ?? []));
  return {
    terms: [...found, ...around, ...members].flatMap(({ positions, ...term }) =>
      positions === null ? [] : [{ positions, ...term }],
    ),
    own: own.filter((positions) => positions !== null),
    // A question that names everybody favours nobody.
    asked: asked.size < table.authorCount ? asked : new Set<number>(),
    dates: datesIn(query.text, query.now, zone),
  };
}

/** Capitalised words inside a sentence: names, in most languages. */
function capitalised(text: string): string[] {
  return text.match(/(?<=[\p{L}\p{N},;:'’] ?)(?<!\p{L})\p{Lu}\p{Ll}+/gu) ?? [];
}

/** Japanese groups with an inflection are many, and each is rare by chance. */
function saysLittle(term: string): boolean {
  return isEveryday(term) || /\p{sc=Hiragana}/u.test(term);
}

const DAY_MS = 86_400_000;
const MONTHS = 'january february march april may june july august september october november december';
const MONTH = '(?<month>jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*';
const YEAR = '(?<year>(?:19|20)\\d\\d)';
const DAY = '(?<day>\\d\\d?)(?:st|nd|rd|th)?';

/** In this order; each searches the rest left by earlier ones. */
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

/** An event is mostly talked about within some days after it, or shortly before. */
const TOLD_BEFORE_MS = 3 * DAY_MS;
const TOLD_AFTER_MS = 10 * DAY_MS;

const TOLD_SOON_MS = 2 * DAY_MS;

/** The time spans in which a message about the mentioned dates was probably sent. */
export function datesIn(text: string, now: number, zone: Zone): TimeSpan[] {
  const spans: TimeSpan[] = [];
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

function spanOf(named: { year?: string; month?: string; day?: string }, now: number, zone: Zone): TimeSpan {
  const midnight = (year: number, month: number, day: number) => localMidnight(year, month, day, zone);
  if (named.month === undefined) {
    const year = Number(named.year);
    return { from: midnight(year, 1, 1), until: midnight(year + 1, 1, 1) };
  }
  const month = monthNumber(named.month);
  const [thisYear, thisMonth] = zone.date(now).split('-').map(Number);
  // Without a year: the latest in which that month has begun.
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
