/** The addresses of links: which may be links, and how they are written. Pure. */

/** Others cannot be opened from a chat, or should not be: they are shown as text. */
const LINKABLE = /^(?:https?|tg|mailto):/i;

/** Characters within an address that one platform or another takes for markup. */
const MARKUP = /[\s()[\]<>\\*~|`]|@(?=everyone|here)/g;

/**
 * A longer one is shown in the text, where it can be cut: encoded, and with some text, it must fit into one message of
 * every platform, twice.
 */
const MAX_HIDDEN = 800;

export function isLinkable(url: string): boolean {
  return LINKABLE.test(url);
}

export function mayBeHidden(url: string): boolean {
  return isLinkable(url) && withMarkupEncoded(url).length <= MAX_HIDDEN;
}

export function isWeb(url: string): boolean {
  return /^https?:\/\/[^\s/]/i.test(url);
}

export function withMarkupEncoded(url: string): string {
  return url.replace(MARKUP, (character) => encodeURIComponent(character).replace(/^[()*~]$/, asPercent));
}

/** What `encodeURIComponent` leaves as it is. */
function asPercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** As a person reads it. */
export function shownAddress(url: string): string {
  return url.replace(/^mailto:/i, '');
}

/** Whether the label is the address itself, give or take `https://` and a slash at the end. */
export function isOwnLabel(label: string, url: string): boolean {
  return bare(label) === bare(url);
}

function bare(address: string): string {
  return decoded(address.replace(/^<?(?:https?:\/\/|mailto:)?/i, '').replace(/\/?>?$/, ''));
}

export function decoded(url: string): string {
  try {
    return decodeURI(url);
  } catch {
    return url; // It was not encoded.
  }
}
