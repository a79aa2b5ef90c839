/** Where links lead. */

/** Others cannot be opened from a chat, or should not be: their address is shown instead. */
const LINKABLE = /^(?:https?|tg|mailto):/i;

/** Signs that one platform or the other takes for its own within an address. */
const SIGNS = /[\s()[\]<>\\*~|`]|@(?=everyone|here)/g;

/**
 * A longer one is shown in the text, where it can be cut: with its signs encoded and some text it must fit into
 * one message of every platform, twice.
 */
const MAX_HIDDEN = 800;

export function isHarmless(url: string): boolean {
  return LINKABLE.test(url);
}

export function mayBeHidden(url: string): boolean {
  return isHarmless(url) && withSignsEncoded(url).length <= MAX_HIDDEN;
}

export function isWeb(url: string): boolean {
  return /^https?:\/\/[^\s/]/i.test(url);
}

export function withSignsEncoded(url: string): string {
  return url.replace(SIGNS, (sign) => encodeURIComponent(sign).replace(/^[()*~]$/, asPercent));
}

/** What `encodeURIComponent` leaves as it is. */
function asPercent(sign: string): string {
  return `%${sign.charCodeAt(0).toString(16).toUpperCase()}`;
}

/** As a person reads it. */
export function shownAddress(url: string): string {
  return url.replace(/^mailto:/i, '');
}

/** Whether the label is the address, but for what nobody types. */
export function saysItself(label: string, url: string): boolean {
  return bare(label) === bare(url);
}

function bare(address: string): string {
  return decoded(address.replace(/^<?(?:https?:\/\/|mailto:)?/i, '').replace(/\/?>?$/, ''));
}

export function decoded(url: string): string {
  try {
    return decodeURI(url);
  } catch {
    return url; // It was not encoded: then it stands as it was written.
  }
}
