/** The words in the field of each chat, kept over a reload. Several gateways may share a browser's store below one host. */

const PREFIX = `coterie draft ${location.pathname} `;

export function draftOf(chat: string): string {
  return localStorage.getItem(PREFIX + chat) ?? '';
}

export function keepDraft(chat: string, text: string): void {
  if (text === '') localStorage.removeItem(PREFIX + chat);
  else localStorage.setItem(PREFIX + chat, text);
}

export function forgetDrafts(): void {
  for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
}
