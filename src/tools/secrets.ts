/**
 * Whether a text holds a secret: keys and tokens by their makers' shapes, passwords by what they are called, bank
 * cards by their check digit. Pure. The memory tools refuse to write what is found here (docs/decisions/0008).
 */
import { cardNumbers } from './secrets/cards.js';
import type { Secret } from './secrets/found.js';
import { namedSecrets } from './secrets/named.js';
import { recoveryPhrases } from './secrets/phrases.js';
import { placedSecrets } from './secrets/placed.js';
import { privateKeys } from './secrets/private-keys.js';
import { shapedSecrets } from './secrets/shapes.js';
import { tableSecrets } from './secrets/tables.js';

/** What was found, fit to be told: never the secret itself. */
export interface SecretFound {
  /** With its article: `a password`, `a GitHub token`. */
  kind: string;
  /** Counted from 1. */
  line: number;
}

/**
 * The first secret of a text that is not in `known`, the text that is replaced: what a person has put there by
 * hand may stay.
 */
export function secretIn(text: string, known = ''): SecretFound | null {
  const plain = plainly(text);
  const found = secretsOf(plain);
  if (found.length === 0) return null;
  const values = new Set(secretsOf(plainly(known)).map((secret) => secret.value));
  const first = found.find((secret) => !values.has(secret.value));
  if (first === undefined) return null;
  return { kind: first.kind, line: plain.slice(0, first.at).split('\n').length };
}

/** In the order of the text. */
function secretsOf(plain: string): Secret[] {
  const finders = [
    shapedSecrets,
    privateKeys,
    namedSecrets,
    placedSecrets,
    tableSecrets,
    cardNumbers,
    recoveryPhrases,
  ];
  return finders.flatMap((find) => find(plain)).sort((a, b) => a.at - b.at);
}

/** One form of each character (full-width ones, too), one kind of line end, nothing that is not seen. */
function plainly(text: string): string {
  return text
    .replace(/\r\n?|[\u2028\u2029]/g, '\n')
    .normalize('NFKC')
    .replace(/[\u00AD\u200B-\u200F\u2060-\u2064\uFEFF]/g, '');
}
