/** The regular expressions of `src/`, and texts that make quadratic ones slow. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AST, RegExpParser } from '@eslint-community/regexpp';
import { parseSync, Visitor } from 'oxc-parser';

const SRC = new URL('../../src/', import.meta.url).pathname;

export interface Expression {
  /** `channels/kit/outgoing.ts: /…/g` */
  name: string;
  source: string;
  flags: string;
}

export interface Sources {
  /** Regular expression literals. */
  written: Expression[];
  /** Files that build expressions from text, `new RegExp(…)`. */
  making: string[];
}

export function expressionsIn(src = SRC): Sources {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.ts'),
  );
  const written: Expression[] = [];
  const making = new Set<string>();
  for (const file of files.sort()) {
    const { program, errors } = parseSync(file, readFileSync(join(src, file), 'utf8'));
    if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`);
    const isRegExp = (callee: { type: string; name?: unknown }) =>
      callee.type === 'Identifier' && callee.name === 'RegExp';
    new Visitor({
      Literal(node) {
        if (!('regex' in node)) return;
        const { pattern, flags } = node.regex;
        written.push({ name: `${file}: /${pattern}/${flags}`, source: pattern, flags });
      },
      NewExpression: ({ callee }) => void (isRegExp(callee) && making.add(file)),
      CallExpression: ({ callee }) => void (isRegExp(callee) && making.add(file)),
    }).visit(program);
  }
  return { written, making: [...making] };
}

/** Expressions that a module builds while it is loaded. Call this in a process that has loaded none of the modules. */
export async function expressionsMadeBy(file: string): Promise<Expression[]> {
  const made: Expression[] = [];
  const Original = globalThis.RegExp;
  globalThis.RegExp = new Proxy(Original, {
    construct(target, args: ConstructorParameters<RegExpConstructor>) {
      const expression = new target(...args);
      const { source, flags } = expression;
      made.push({ name: `${file}: new RegExp(${source}, ${flags})`, source, flags });
      return expression;
    },
  });
  try {
    await import(join(SRC, file));
  } finally {
    globalThis.RegExp = Original;
  }
  return made;
}

/** A prefix, and the text repeated after it. */
export interface Slow {
  before: string;
  repeated: string;
}

/**
 * Repeats each character of an expression's alphabet, and the shortest match of each alternative and of each of its
 * prefixes; also each prefix once before each character.
 */
export function slowTextsFor({ source, flags }: Pick<Expression, 'source' | 'flags'>): Slow[] {
  const parser = new RegExpParser();
  const unicode = flags.includes('u');
  const sets = flags.includes('v');
  const pattern = parser.parsePattern(source, 0, source.length, { unicode, unicodeSets: sets });
  const letters = new Set<string>();
  const beginnings = new Set<string>(['']);
  const pieces = new Set<string>();
  for (const alternative of alternativesIn(pattern)) {
    let said = '';
    for (const element of alternative.elements) {
      for (const letter of lettersOf(element)) letters.add(letter);
      said += exampleOf(element);
      pieces.add(exampleOf(element));
      pieces.add(said);
      if (beginnings.size < MOST_BEGINNINGS) beginnings.add(said);
    }
  }
  const repeated = [...letters, ...pieces].filter((piece) => piece !== '');
  return [
    ...[...new Set(repeated)].map((piece) => ({ before: '', repeated: piece })),
    ...[...beginnings]
      .filter((before) => before !== '')
      .flatMap((before) =>
        [...letters].slice(0, MOST_LETTERS).map((letter) => ({ before, repeated: letter })),
      ),
  ];
}

const MOST_BEGINNINGS = 8;
const MOST_LETTERS = 8;

function alternativesIn(node: AST.Pattern | AST.Alternative | AST.Element): AST.Alternative[] {
  switch (node.type) {
    case 'Pattern':
    case 'Group':
    case 'CapturingGroup':
      return node.alternatives.flatMap((each) => [each, ...alternativesIn(each)]);
    case 'Assertion':
      return 'alternatives' in node
        ? node.alternatives.flatMap((each) => [each, ...alternativesIn(each)])
        : [];
    case 'Alternative':
      return node.elements.flatMap(alternativesIn);
    case 'Quantifier':
      return alternativesIn(node.element);
    default:
      return [];
  }
}

/** Sample characters for character classes. */
const POOL = [...'aZ0_ \n\t\r\u00a0-.:;,*#`~|<>[](){}"\'/\\@!?=+&%$^é中あ가\u0301\u200b\u2028\u{1f600}x'];

function lettersOf(node: AST.Element): string[] {
  switch (node.type) {
    case 'Character':
      return [node.raw.length === 1 ? node.raw : String.fromCodePoint(node.value)];
    case 'CharacterClass':
    case 'ExpressionCharacterClass':
    case 'CharacterSet':
      return fittingIn(node).slice(0, 8);
    case 'Quantifier':
      return lettersOf(node.element);
    default:
      return [];
  }
}

function exampleOf(node: AST.Element | AST.Alternative): string {
  switch (node.type) {
    case 'Alternative':
      return node.elements.map(exampleOf).join('');
    case 'Group':
    case 'CapturingGroup':
      return node.alternatives[0] === undefined ? '' : exampleOf(node.alternatives[0]);
    case 'Quantifier':
      return exampleOf(node.element).repeat(Math.min(Math.max(node.min, 1), 100));
    case 'Character':
    case 'CharacterClass':
    case 'ExpressionCharacterClass':
    case 'CharacterSet':
      return lettersOf(node)[0] ?? '';
    default:
      return '';
  }
}

function fittingIn(node: AST.CharacterClass | AST.CharacterSet | AST.ExpressionCharacterClass): string[] {
  const flags = /\\p|\\u\{/.test(node.raw) ? ('unicodeSets' in node && node.unicodeSets ? 'v' : 'u') : '';
  const one = new RegExp(`^(?:${node.raw})$`, node.raw === '.' ? '' : flags);
  const own =
    node.type === 'CharacterClass'
      ? node.elements.flatMap((each) => {
          if (each.type === 'Character') return [String.fromCodePoint(each.value)];
          if (each.type === 'CharacterClassRange') return [String.fromCodePoint(each.min.value)];
          return [];
        })
      : [];
  return [
    ...new Set([
      ...(node.type === 'CharacterClass' && node.negate ? [] : own),
      ...POOL.filter((each) => one.test(each)),
    ]),
  ];
}
