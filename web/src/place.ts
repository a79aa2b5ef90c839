/**
 * Where one is in the page: behind `#`, so that it works under any path, and survives reload, back and a copied address.
 * `#/conversations/telegram_42?around=17`: a place, its parts, and values.
 */
import { signal } from '@preact/signals';

export const PLACES = ['chat', 'conversations', 'memory', 'work', 'operations', 'setup'] as const;
export type PlaceName = (typeof PLACES)[number];

export interface Place {
  /** null: none is named. */
  name: PlaceName | null;
  parts: string[];
  values: Record<string, string>;
}

export const place = signal(placeIn(location.hash));

addEventListener('hashchange', () => {
  place.value = placeIn(location.hash);
});

export function placeIn(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [first = '', ...parts] = path.split('/').map(decoded);
  const name = PLACES.find((each) => each === first) ?? null;
  return { name, parts, values: Object.fromEntries(new URLSearchParams(query)) };
}

/** For `href`. */
export function addressOf(
  name: PlaceName,
  parts: readonly string[] = [],
  values: Record<string, string> = {},
): string {
  const query = new URLSearchParams(values).toString();
  return `#/${[name, ...parts].map(encodeURIComponent).join('/')}${query === '' ? '' : `?${query}`}`;
}

/** `replace`: Back does not return to where one was. */
export function go(address: string, replace = false): void {
  if (replace) location.replace(address);
  else location.hash = address;
}

/** A pasted address may be no valid encoding. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
