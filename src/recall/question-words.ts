/** What a question is searched by: its words and where they occur, whom it names and when, and what was said before. */
import type { Zone } from '../core/dates.js';
import type { RecallQuery } from '../core/recall.js';
import { datesIn } from './dates.js';
import { isEveryday } from './everyday.js';
import { membersOf } from './kinds.js';
import type { ScopeTable } from './scope-table.js';
import type { ScopeTables } from './scope-tables.js';
import type { Question } from './scoring.js';
import { indexTerms, ownTerms, queryTerms, subjectTerms } from './terms.js';

/** A question with more terms is a pasted text: only its first terms are searched. */
const MOST_TERMS = 64;
/** The weight of words that only say how something is asked: "what is it called". */
const FRAME = 0.5;
/** Of words that were said just before, in the search for what goes on from them. */
const AROUND = 0.6;
/** Of what a word stands for: football, where sports are asked for. */
const MEMBER = 0.5;

export function questionWords(
  tables: ScopeTables,
  scope: number,
  table: ScopeTable,
  query: RecallQuery,
  zone: Zone,
): Pick<Question, 'terms' | 'own' | 'asked' | 'dates'> {
  const all = queryTerms(query.text, MOST_TERMS);
  // A name says who spoke, and is in every greeting: it is only searched for if the question has no other words.
  const names = all.filter(({ text }) => table.authorsByTerm.has(text));
  const others = all.filter(({ text }) => !table.authorsByTerm.has(text));
  const subject = new Set(subjectTerms(query.text, MOST_TERMS).map(({ text }) => text));
  const called = new Set(capitalised(query.text).flatMap(indexTerms));
  const found = (others.length > 0 ? others : all).map((term) => {
    const weight = subject.size === 0 || subject.has(term.text) ? 1 : FRAME;
    const said = tables.occurrences(scope, table, term);
    const positions = said?.length === 0 ? tables.alike(scope, table, term) : said;
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
    .map((term) => ({ positions: tables.occurrences(scope, table, term), weight: AROUND, said: null }));
  const members = others
    .filter(({ text }) => subject.has(text))
    .map(({ text }) => {
      const unsaid = membersOf(text).filter((member) => !known.has(member));
      return { positions: tables.anyOf(scope, table, unsaid), weight: MEMBER, said: null };
    });
  const own = ownTerms(query.text).map((text) => tables.occurrences(scope, table, { text, begins: false }));
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

/** Words with a capital that do not begin a sentence: names, in most languages. */
function capitalised(text: string): string[] {
  return text.match(/(?<=[\p{L}\p{N},;:'’] ?)(?<!\p{L})\p{Lu}\p{Ll}+/gu) ?? [];
}

/** Groups of Japanese signs with an ending in them are many, and each of them is rare by chance. */
function saysLittle(term: string): boolean {
  return isEveryday(term) || /\p{sc=Hiragana}/u.test(term);
}
