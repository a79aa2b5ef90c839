/** The text of messages with files, and notices about files not taken. File names come from strangers: only in brackets. Pure. */
import { cutAt, sizeInWords } from '../core/cut.js';
import type { StoredAttachment } from '../core/media.js';

const KINDS = {
  image: 'image',
  voice: 'voice message',
  audio: 'audio',
  video: 'video',
  document: 'document',
} as const;

export function textWithAttachments(words: string, attachments: StoredAttachment[]): string {
  const parts = attachments.map(partOf);
  return [...(words === '' ? [] : [words]), ...parts].join('\n');
}

function partOf(attachment: StoredAttachment): string {
  // Sent by somebody else, not by the sender of this message.
  const proof = attachment.told ? ', as the sender tells it' : '';
  const where = attachment.ofReply ? `In the message replied to${proof}: ` : '';
  const line = `${where}${tellAttachment(attachment)}`;
  const { outcome, kind } = attachment;
  if (outcome?.kind !== 'kept' || !outcome.read) return line;
  return kind === 'voice' || kind === 'audio'
    ? `${line.slice(0, -1)}, transcribed] ${outcome.read}`
    : `${line}\n${fenced(outcome.read)}`;
}

/** One line in brackets: the file, and why it was not taken. */
export function tellAttachment(attachment: StoredAttachment): string {
  const { kind, name, bytes, seconds, outcome } = attachment;
  const called = kind === 'voice' ? null : shownName(name);
  const facts = [
    called === null ? KINDS[kind] : `${KINDS[kind]} ${called}`,
    ...(seconds === null ? [] : [lasting(seconds)]),
    ...(bytes === null || kind === 'voice' ? [] : [sizeInWords(bytes)]),
  ];
  const why = outcome?.kind === 'left' ? `: ${outcome.why}` : '';
  return `[${facts.join(', ')}${why}]`;
}

function titleOf({ kind, name }: StoredAttachment): string {
  const called = kind === 'voice' ? null : shownName(name)?.replaceAll('`', "'");
  return called ? `\`${called}\`` : `the ${KINDS[kind]}`;
}

const MOST_NAME_CHARS = 80;
const NAME_END_CHARS = 12;
/** Marks that change the direction of the text that follows. */
const TURNS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/gu;

/** The last part of the path, shortened in the middle; null if nothing is left. */
function shownName(name: string | null): string | null {
  const line = (name ?? '')
    .replace(/\p{Surrogate}/gu, '\ufffd')
    .replace(TURNS, '')
    .replace(/[\p{Cc}\u2028\u2029\s]+/gu, ' ')
    .replace(/^.*[/\\]/, '')
    .replaceAll('[', '(')
    .replaceAll(']', ')')
    .trim();
  if (line === '') return null;
  if (line.length <= MOST_NAME_CHARS) return line;
  const end = line.slice(-NAME_END_CHARS).replace(/^[\udc00-\udfff]/, '');
  return `${cutAt(line, MOST_NAME_CHARS - NAME_END_CHARS - 1)}…${end}`;
}

function lasting(seconds: number): string {
  const whole = Math.round(seconds);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

/** In a fence longer than any in the text. */
function fenced(text: string): string {
  const longest = Math.max(2, ...[...text.matchAll(/`{3,}/g)].map(([run]) => run.length));
  const fence = '`'.repeat(longest + 1);
  return `${fence}\n${text.replace(/\n$/, '')}\n${fence}`;
}

export interface MediaRefusal {
  /** Continues the line in brackets: "larger than 20 MB, not taken". */
  why: string;
  /** null if the sender can do nothing about it. */
  notice: ((attachment: StoredAttachment) => string) | null;
}

export function tooLarge(maxBytes: number): MediaRefusal {
  const most = limit(maxBytes);
  return {
    why: `larger than ${most}, not taken`,
    notice: (file) => {
      const size = file.bytes !== null && file.bytes > maxBytes ? ` (${sizeInWords(file.bytes)})` : '';
      return `I take files up to ${most}, so I did not open ${titleOf(file)}${size}.`;
    },
  };
}

export const GONE: MediaRefusal = {
  why: 'not to be had any more',
  notice: (file) => `I could not get ${titleOf(file)}: it is not there any more. Please send it again.`,
};

export const UNREACHABLE: MediaRefusal = {
  why: 'could not be fetched',
  notice: (file) => `I could not fetch ${titleOf(file)} just now. Please send it again in a moment.`,
};

export const LATE: MediaRefusal = {
  why: 'did not arrive in time',
  notice: (file) => `I waited for ${titleOf(file)}, but it did not arrive. Please send it again in a moment.`,
};

export const UNKEPT: MediaRefusal = {
  why: 'could not be stored',
  notice: (file) =>
    `I could not store ${titleOf(file)}, so I did not look at it. Please tell whoever runs me.`,
};

export const UNREADABLE: MediaRefusal = {
  why: 'damaged, or no picture that can be read',
  notice: (file) =>
    `I cannot read ${titleOf(file)}: it is damaged, or of a kind that I do not know. JPEG and PNG work.`,
};

export const UNHEARD: MediaRefusal = {
  why: 'could not be transcribed',
  notice: () => 'I could not listen to your recording just now. Please send it again, or write it.',
};

/** No notice: the persona can say so itself if asked. */
export const SILENT: MediaRefusal = { why: 'no words could be made out in it', notice: null };
export const NO_TRANSCRIBER: MediaRefusal = { why: 'cannot be listened to here', notice: null };
export const NO_FETCHING: MediaRefusal = { why: 'cannot be fetched here', notice: null };

/** 20,000,000 becomes 20 MB, not 20.0 MB. */
function limit(bytes: number): string {
  return sizeInWords(bytes).replace('.0 MB', ' MB');
}
