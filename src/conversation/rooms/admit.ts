/**
 * Step 3 of the route, pure: decides for each waiting message whom it addresses, and whether it is answered or only
 * noted. Returns the room's next turn: who speaks, in order, and the messages it answers.
 */
import type { PersonaId } from '../../core/ids.js';
import type { StoredAttachment } from '../../core/media.js';
import type { Persona } from '../../core/persona.js';
import type { StoredMessage } from '../../core/transcript.js';
import { presentIn } from '../participants.js';
import {
  type Called,
  calledAloud,
  calledOf,
  calledPlainly,
  calledTogether,
  named,
  turnedTo,
} from './addressing.js';

export interface Admission {
  /** null when every waiting message is only noted. */
  turn: {
    personaId: PersonaId;
    /** The others who are addressed; they speak after it, in this order. */
    also: PersonaId[];
    /**
     * Set when nobody was named and several personas could answer. `sure`: the message is for us, so one of them must
     * answer; `unsure`: all of them may stay silent.
     */
    open: 'sure' | 'unsure' | null;
    batch: StoredMessage[];
  } | null;
  /** Overheard: recorded, not answered. */
  noted: StoredMessage[];
}

export interface AdmitRules {
  kind: 'direct' | 'group';
  requireMention: boolean;
  activePersona: PersonaId;
  invited?: PersonaId[];
  away?: PersonaId[];
  /** Other bots have had as many answers in a row, without a message from a person, as they may have. */
  tiredOfBots?: boolean;
}

/** Whom one message is for; `to` is empty when it is for nobody. */
interface Addressed {
  to: PersonaId[];
  open: 'sure' | 'unsure' | null;
}

/** Takes messages from the front until one addresses somebody else; that one and the rest wait for the next turn. */
export function admit(waiting: StoredMessage[], personas: Persona[], rules: AdmitRules): Admission {
  const here = personas.filter(({ id }) => !rules.away?.includes(id)).map(calledOf);
  const present = presentIn(rules, here);
  const noted: StoredMessage[] = [];
  const batch: StoredMessage[] = [];
  let first: Addressed | null = null;
  for (const message of waiting) {
    const addressed = addressedBy(message, { here, present, rules });
    if (addressed.to.length === 0) {
      noted.push(message);
    } else if (first === null || isSame(first, addressed)) {
      first ??= addressed;
      batch.push(message);
    } else {
      break;
    }
  }
  const [personaId, ...also] = first?.to ?? [];
  if (first === null || personaId === undefined) return { turn: null, noted };
  return { turn: { personaId, also, open: first.open, batch }, noted };
}

function isSame(one: Addressed, other: Addressed): boolean {
  return one.open === other.open && one.to.join('\n') === other.to.join('\n');
}

function addressedBy(
  message: StoredMessage,
  { here, present, rules }: { here: Called[]; present: PersonaId[]; rules: AdmitRules },
): Addressed {
  const NOBODY: Addressed = { to: [], open: null };
  if (message.quiet) return NOBODY;
  // An event from inside the gateway names its addressee in `addresses`; names in its text do not count.
  if (message.author.kind === 'gateway') {
    const to = (message.addresses ?? []).filter((id) => here.some((persona) => persona.id === id));
    return { to: to.length > 0 ? to : present.slice(0, 1), open: null };
  }
  if (rules.tiredOfBots && message.author.kind === 'person' && message.author.bot) return NOBODY;

  const byName = calledIn(message, here, { present, kind: rules.kind });
  if (byName.length > 0) return { to: byName, open: null };

  const isReply = message.replyTo?.ours && !callsNobodysAccount(message);
  const repliedTo = isReply ? message.replyTo?.personaId : null;
  if (repliedTo && here.some(({ id }) => id === repliedTo)) return { to: [repliedTo], open: null };

  const active = present.slice(0, 1);
  const isForUs = rules.kind === 'direct' || message.mentionsBot || message.replyTo?.ours === true;
  if (!isForUs && rules.requireMention) return NOBODY;
  if (present.length === 1) return { to: active, open: null };
  return { to: active, open: isForUs ? 'sure' : 'unsure' };
}

/** The personas that a message calls by name or through their own account. */
function calledIn(
  message: StoredMessage,
  here: Called[],
  { present, kind }: { present: PersonaId[]; kind: AdmitRules['kind'] },
): PersonaId[] {
  const { text } = message;
  const there = here.filter(({ id }) => present.includes(id));
  const own = (message.addresses ?? []).filter((id) => here.some((persona) => persona.id === id));
  const spoken = (message.attachments ?? []).flatMap(spokenIn);
  const plainly = [
    ...calledPlainly(text, here),
    ...calledTogether(text, there),
    ...spoken.flatMap((words) => calledAloud(words, here)),
  ];
  // In a direct chat the account is only where the message was sent, so explicit names in the text override it.
  const called = plainly.length > 0 && kind === 'direct' ? plainly : [...own, ...plainly];
  if (called.length > 0) return [...new Set(called)];
  if (callsNobodysAccount(message)) return turnedTo(text.replace(OPENING_MENTION, ''), there);
  return [text, ...spoken].map((words) => named(words, there)).find(({ length }) => length > 0) ?? [];
}

const OPENING_MENTION = /^[^@]{0,40}@\S+\s*/u;

/**
 * Whether the account was called that is no persona's, where personas have accounts of their own. Then whoever is talked
 * about, or whose words are answered, has not been called, unless somebody turns to them.
 */
function callsNobodysAccount({ author, addresses }: StoredMessage): boolean {
  return author.kind === 'person' && addresses?.length === 0;
}

function spokenIn({ kind, outcome }: StoredAttachment): string[] {
  return kind === 'voice' && outcome?.kind === 'kept' && outcome.read ? [outcome.read] : [];
}
