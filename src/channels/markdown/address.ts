/** Link addresses: which may be links, and how they are written. Pure. */

/** Other schemes cannot, or should not, be opened from a chat: they are shown as text. */
const LINKABLE = /^(?:https?|tg|mailto):/i;

/** Characters in an address that some platform takes for markup. */
const MARKUP = /[\s()[\]<>\\*~|`]|@(?=everyone|here)/g;

/** Longer addresses are shown in the text: a link must fit twice into one message, encoded. */
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

/** Encodes even characters that `encodeURIComponent` leaves alone. */
function asPercent(character: string): string {
  return `%${character.charCodeAt(0).toString(16).toUpperCase()}`;
}

export function shownAddress(url: string): string {
  return url.replace(/^mailto:/i, '');
}

/** Whether the label is the address itself, ignoring `https://` and a trailing slash. */
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
    return url; // Not encoded.
  }
}
