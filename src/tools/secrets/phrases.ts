/**
 * Recovery phrases of wallets: twelve words or more, called so. Without the name they cannot be told from any
 * twelve words, and are not looked for.
 */
import type { Secret } from './found.js';

const NAME =
  /(?:seed|recovery|mnemonic|backup|wallet|secret) ?(?:phrase|words)|mnemonic seed|wiederherstellungs(?:phrase|wörter)|frase (?:semilla|de recuperación)|phrase de récupération|(?:сид|мнемоническая)[ -]?фраза|助[记記][词詞]/giu;
/** The words of the English list have three to eight letters, and these are not among them. */
const WORD = '(?!(?:the|and|for|are|was|but|not|has|had|his|her|its|our|who) )[a-z]{3,8}';
const WORDS = new RegExp(`(?<![a-z])${WORD}(?: ${WORD}){11,23}(?![a-z])`);
const REACH = 500;
/** How far from its name it begins at most. */
const NEAR = 60;

export function recoveryPhrases(text: string): Secret[] {
  return [...text.matchAll(NAME)].flatMap((name) => {
    const start = name.index + name[0].length;
    // Numbered, listed or in a table: only the words count.
    const after = text.slice(start, start + REACH).replace(/(?:[\s,>|*`"'-]|\d{1,2}[.):])+/g, ' ');
    const words = WORDS.exec(`${after} `);
    if (words === null || words.index > NEAR) return [];
    return [{ kind: 'a recovery phrase', at: name.index, value: words[0] }];
  });
}
