/** What Discord refuses of a message that its sender got wrong. */
import { componentsRefusal } from './discord-components.js';
import { isPayload, type UploadedFile } from './discord-form.js';
import { EMPTY_MESSAGE, invalid, type Outcome, TOO_LARGE } from './discord-outcome.js';
import { isSnowflake } from './discord-snowflake.js';
import type { Payload } from './discord-words.js';

const MIB = 1024 * 1024;
/** By the tier of a server's boosts (reality.md 4.7; Discord's help page on boosts). */
const BY_TIER = [10 * MIB, 10 * MIB, 50 * MIB, 100 * MIB];
const MAX_FILES = 10;
const MENTION_KINDS = ['everyone', 'roles', 'users'];

/** The refusal, or null. */
export function refusalOf(message: Payload, files: UploadedFile[], uploadBytes: number): Outcome | null {
  const { content, nonce } = message;
  if (content !== undefined && content !== null && typeof content !== 'string') {
    return invalid('content', 'STRING_TYPE_CONVERT', 'Could not interpret value as a string.');
  }
  const text = shownContent(message);
  if (/\p{Surrogate}/u.test(text)) return invalid('content', 'STRING_TYPE_CONVERT', 'Half a character.');
  // Code points: its servers are written in Python. Counted before the ends are trimmed.
  if ([...String(content ?? '')].length > 2000) {
    return invalid('content', 'BASE_TYPE_MAX_LENGTH', 'Must be 2000 or fewer in length.');
  }
  if (nonce !== undefined && String(nonce).length > 25) {
    return invalid('nonce', 'BASE_TYPE_MAX_LENGTH', 'Must be 25 or fewer in length.');
  }
  if (files.length > MAX_FILES) return invalid('files', 'BASE_TYPE_MAX_LENGTH', 'Must be 10 or fewer.');
  if (files.some(({ bytes }) => bytes.length > uploadBytes)) return TOO_LARGE;
  if (text === '' && files.length === 0 && !hasEmbeds(message)) return EMPTY_MESSAGE;
  return mentionsRefusal(message) ?? componentsRefusal(message);
}

/** How large a file may be in a guild of this tier. */
export function uploadBytesAt(tier: number): number {
  return BY_TIER[tier] ?? 10 * MIB;
}

/** Discord shows a message without the white space at its ends. */
export function shownContent({ content }: Payload): string {
  return String(content ?? '').trim();
}

function hasEmbeds({ embeds }: Payload): boolean {
  return Array.isArray(embeds) && embeds.length > 0;
}

function mentionsRefusal({ allowed_mentions: allowed }: Payload): Outcome | null {
  if (allowed === undefined || allowed === null) return null;
  if (!isPayload(allowed)) return invalid('allowed_mentions', 'DICT_TYPE_CONVERT', 'Only dictionaries.');
  const parse = listOf(allowed.parse);
  if (parse.some((kind) => !MENTION_KINDS.includes(String(kind)))) {
    return invalid('allowed_mentions.parse', 'BASE_TYPE_CHOICES', 'Must be one of everyone, roles, users.');
  }
  for (const kind of ['users', 'roles']) {
    const ids = listOf(allowed[kind]);
    if (!ids.every(isSnowflake)) {
      return invalid(`allowed_mentions.${kind}`, 'NUMBER_TYPE_COERCE', 'A value is no snowflake.');
    }
    if (ids.length > 100) {
      return invalid(`allowed_mentions.${kind}`, 'BASE_TYPE_MAX_LENGTH', 'Must be 100 or fewer in length.');
    }
    if (ids.length > 0 && parse.includes(kind)) {
      const message = `parse:["${kind}"] and ${kind}: [ids...] are mutually exclusive.`;
      return invalid('allowed_mentions', 'MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE', message);
    }
  }
  return null;
}

/** Whom a message of ours rings, given what it allows. */
export function pingedBy(message: Payload, repliedTo: string | null): string[] {
  const content = shownContent(message);
  const allowed = isPayload(message.allowed_mentions) ? message.allowed_mentions : null;
  const parse = listOf(allowed?.parse ?? (allowed === null ? MENTION_KINDS : []));
  const may = (kind: string, id: string) => parse.includes(kind) || listOf(allowed?.[kind]).includes(id);
  const ids = (pattern: RegExp) => [...content.matchAll(pattern)].map((match) => match[1] ?? '');
  const pinged = [
    ...(parse.includes('everyone') ? (content.match(/@(everyone|here)/g) ?? []) : []),
    ...ids(/<@!?(\d+)>/g).filter((id) => may('users', id)),
    ...ids(/<@&(\d+)>/g)
      .filter((id) => may('roles', id))
      .map((id) => `&${id}`),
    ...(repliedTo !== null && (allowed === null || allowed.replied_user === true) ? [repliedTo] : []),
  ];
  return [...new Set(pinged)];
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
