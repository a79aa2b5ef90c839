/** Numbers of bank cards: the digits of a card's maker, its length, its groups, and the check digit at the end. */
import type { Secret } from './found.js';

/** Visa, Mastercard, Discover, JCB, UnionPay: sixteen digits. American Express: fifteen. Diners: fourteen. */
const MAKERS =
  /^(?:4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35[2-8]\d{13}|62\d{14}|3[47]\d{13}|3(?:0[0-5]|[68]\d)\d{11})$/;

const GROUPED = /\d{4}([ .-]?)\d{4}\1\d{4}\1\d{4}|\d{4}([ .-]?)\d{6}\2\d{4,5}/g;

/** What goes before is not a longer number, a phone number, a decimal, nor the bank in an IBAN. */
const LONGER_BEFORE = /(?:[\p{L}\p{N}+_]|\d[.,-]|\d{4} |[A-Z]{2}\d{2} (?:[A-Z]{4} )?)$/u;
const LONGER_AFTER = /^(?:[\p{L}\p{N}_]|[.-]\d)/u;

export function cardNumbers(text: string): Secret[] {
  return [...text.matchAll(GROUPED)].flatMap((match) => {
    const value = match[0].replace(/\D/g, '');
    const end = match.index + match[0].length;
    const alone =
      !LONGER_BEFORE.test(text.slice(Math.max(0, match.index - 12), match.index)) &&
      !LONGER_AFTER.test(text.slice(end, end + 2));
    if (!alone || !MAKERS.test(value) || !checks(value)) return [];
    return [{ kind: 'a card number', at: match.index, value }];
  });
}

/** The check digit after Luhn: every second digit from the right counts double. */
function checks(digits: string): boolean {
  let sum = 0;
  for (let at = 0; at < digits.length; at++) {
    const digit = Number(digits.at(-1 - at));
    const counted = at % 2 === 0 ? digit : digit * 2;
    sum += counted > 9 ? counted - 9 : counted;
  }
  return sum % 10 === 0;
}
