/** What is said of a word that stands where a command should, and is none. */

import { printableLine } from './core/cut.js';
import { closest, isNear } from './core/known-keys.js';

/** `before`: the commands that it stands behind, as in `pair lst`. */
export function unknownCommand(word: string, before: readonly string[], known: readonly string[]): string {
  const called = (command: string) => `'${printableLine([...before, command].join(' '))}'`;
  const meant = closest(
    word,
    known.filter((each) => isNear(word, each)),
  );
  return `unknown command ${called(word)}${meant === null ? '' : `; did you mean ${called(meant)}?`}`;
}
