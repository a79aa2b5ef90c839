/** Joins the parts that the page of the board reads and changes. */
import type { PageParts } from './board/page.js';
import type { Conversation } from './conversation/conversation.js';
import type { Parts } from './parts.js';

export function pagePartsOf({ facts }: Parts, _conversation: Conversation): PageParts {
  return { version: facts.version };
}
