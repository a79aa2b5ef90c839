/**
 * Step 3 of the route, pure: whom does each waiting message address, and is it to be answered or only noted?
 * The answer is the next turn of the room: one persona and the messages it answers.
 */
import { DEFAULT_PERSONA, type PersonaId } from '../core/ids.js';
import type { StoredAttachment } from '../core/media.js';
import type { Persona } from '../core/persona.js';
import type { StoredMessage } from '../core/transcript.js';

export interface Admission {
  /** null when everything that waits is only noted. */
  turn: { personaId: PersonaId; batch: StoredMessage[] } | null;
  /** Heard in passing, not answered. */
  noted: StoredMessage[];
}

export interface AdmitRules {
  kind: 'direct' | 'group';
  requireMention: boolean;
  activePersona: PersonaId;
}

/**
 * Takes messages from the front until one addresses another persona; that one and what follows wait for the
 * turn after.
 */
export function admit(waiting: StoredMessage[], personas: Persona[], rules: AdmitRules): Admission {
  const called = personas.map((persona) => ({ id: persona.id, names: namesOf(persona).map(fold) }));
  // Somebody may have removed the active one's file.
  const active = called.some(({ id }) => id === rules.activePersona) ? rules.activePersona : DEFAULT_PERSONA;
  const noted: StoredMessage[] = [];
  const batch: StoredMessage[] = [];
  let personaId: PersonaId | null = null;
  for (const message of waiting) {
    const addressed = addresseeOf(message, called, { ...rules, activePersona: active });
    if (addressed === null) {
      noted.push(message);
    } else if (personaId === null || personaId === addressed) {
      personaId = addressed;
      batch.push(message);
    } else {
      break;
    }
  }
  return { turn: personaId === null ? null : { personaId, batch }, noted };
}

/** A persona and what it is called, folded. */
interface Called {
  id: PersonaId;
  names: string[];
}

/** The persona a message is for; null when it is for none of them. */
function addresseeOf(message: StoredMessage, personas: Called[], rules: AdmitRules): PersonaId | null {
  if (message.quiet) return null;
  const text = fold(message.text);
  const spoken = (message.attachments ?? []).flatMap(spokenIn).map(fold);
  const named = personas.find(({ names }) =>
    names.some((name) => callsByName(text, name) || spoken.some((words) => callsOut(words, name))),
  );
  if (named) return named.id;

  const repliedTo = message.replyTo?.ours ? message.replyTo.personaId : null;
  if (repliedTo && personas.some(({ id }) => id === repliedTo)) return repliedTo;

  const called =
    rules.kind === 'direct' ||
    !rules.requireMention ||
    message.mentionsBot ||
    message.replyTo?.ours === true ||
    mentionsActive(text, personas, rules.activePersona);
  return called ? rules.activePersona : null;
}

/** In a group, the active persona's name anywhere counts as a mention; `default` is too common a word to. */
function mentionsActive(text: string, personas: Called[], active: PersonaId): boolean {
  const names = personas.find(({ id }) => id === active)?.names ?? [];
  return names.some((name) => name !== DEFAULT_PERSONA && standsAlone(text, name));
}

function namesOf(persona: Persona): string[] {
  return [persona.name, persona.id, ...persona.aliases].filter((name) => name.trim() !== '');
}

function spokenIn({ kind, outcome }: StoredAttachment): string[] {
  return kind === 'voice' && outcome?.kind === 'kept' && outcome.read ? [outcome.read] : [];
}

/** Nobody speaks a colon: a name that stands first, on its own, is called. */
function callsOut(words: string, name: string): boolean {
  const start = words.trimStart();
  return start.startsWith(name) && /^\s*[:：,，.!?…]/u.test(start.slice(name.length, name.length + 10));
}

/** `@luna …` anywhere, or `luna: …` at the start. */
function callsByName(text: string, name: string): boolean {
  const start = text.trimStart();
  if (start.startsWith(name) && /^\s*[:：]/u.test(start.slice(name.length, name.length + 10))) return true;
  return standsAlone(text, `@${name}`);
}

/** Whether `name` stands in the text as a word of its own; behind a word, `@` makes a mail address. */
function standsAlone(text: string, name: string): boolean {
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + 1)) {
    const end = at + name.length;
    const inAddress =
      name.startsWith('@') && WORD.test(text[at - 1] ?? ' ') && !UNSPACED.test(text[at - 1] ?? ' ');
    if (!inAddress && !glued(text[at - 1], text[at]) && !glued(text[end - 1], text[end])) return true;
  }
  return false;
}

const WORD = /[\p{L}\p{N}_]/u;
/** Scripts that put no space between words: there, any neighbour may be the next word. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

function glued(left: string | undefined, right: string | undefined): boolean {
  if (left === undefined || right === undefined || UNSPACED.test(left + right)) return false;
  return WORD.test(left) && WORD.test(right);
}

function fold(text: string): string {
  return text.normalize('NFKC').toLowerCase();
}
