/** Addresses within the place: the conversation is a part; the search, a message and a turn are values. */
import { addressOf, go, place } from '../place.ts';

interface Wish {
  room?: string | null;
  /** Empty: without. */
  q?: string;
  around?: string;
  key?: string;
  turn?: string;
}

/** As it is now, with these changes. */
export function addressWith(wish: Wish): string {
  const { parts, values } = place.value;
  const { room = parts[0] ?? null, ...changed } = wish;
  const all = Object.entries({ ...values, ...changed }).filter(([, value]) => value !== '');
  return addressOf('conversations', room === null ? [] : [room], Object.fromEntries(all));
}

export const NO_MESSAGE = { around: '', key: '', turn: '' };

export function goTo(wish: Wish, replace = false): void {
  go(addressWith(wish), replace);
}
