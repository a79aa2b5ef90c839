/** The words in the field of each chat, kept over a reload. Several gateways may share a browser's store below one host. */
import { isSignedIn } from '../api.ts';

const PREFIX = `coterie draft ${location.pathname} `;

export function draftOf(chat: string): string {
  return localStorage.getItem(PREFIX + chat) ?? '';
}

export function keepDraft(chat: string, text: string): void {
  // A field that goes with the page would bring back what signing out has forgotten.
  if (isSignedIn.peek() === false) return;
  localStorage.removeItem(PREFIX + chat);
  try {
    if (text !== '') localStorage.setItem(PREFIX + chat, text);
  } catch {
    // The browser has no room for them: they last as long as the page is open.
  }
}

export function forgetDrafts(): void {
  for (const key of Object.keys(localStorage)) if (key.startsWith(PREFIX)) localStorage.removeItem(key);
}
