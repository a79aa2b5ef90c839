/** Codes that people read and type. */
import { randomInt } from 'node:crypto';

const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ';

/** 8 upper-case letters without I and O, which look like digits. */
export function newPairingCode(): string {
  return randomOf(LETTERS, 8);
}

/** Nothing in it looks like anything else, with a letter first: a number alone may be meant for something else. */
export function newCallCode(): string {
  const letters = LETTERS.replaceAll(/[BGLQSZ]/g, '');
  return randomOf(letters, 1) + randomOf(`${letters}34679`, 5);
}

function randomOf(signs: string, length: number): string {
  return Array.from({ length }, () => signs[randomInt(signs.length)]).join('');
}
