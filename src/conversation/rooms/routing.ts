/**
 * Step 3 of the route, pure: decides for each waiting message whom it addresses, and whether it is answered or only
 * noted. Returns the room's next turn: who speaks, in order, and the messages it answers.
 */
import { DEFAULT_PERSONA, type PersonaId } from '../../core/ids.js';
import type { StoredAttachment } from '../../core/media.js';
import { hasName, type Persona } from '../../core/persona.js';
import type { StoredMessage } from '../../core/transcript.js';
import { presentIn } from '../participants.js';
import {
  type Called,
  calledAloud,
  calledOf,
  calledPlainly,
  calledTogether,
  callsBot,
  named,
  turnedTo,
} from './names.js';

export interface Routing {
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

export interface RoutingRules {
  kind: 'direct' | 'group';
  requireMention: boolean;
  activePersona: PersonaId;
  invited?: PersonaId[];
  away?: PersonaId[];
  /** The names under which people see the bot. */
  botNames?: readonly string[];
  /** Other bots have had as many answers in a row, without a message from a person, as they may have. */
  botLimitReached?: boolean;
}

/** Whom one message is for; `to` is empty when it is for nobody. */
interface Addressed {
  to: PersonaId[];
  open: 'sure' | 'unsure' | null;
  /** It was called, not only spoken to. */
  byName?: true;
}

const NOBODY: Addressed = { to: [], open: null };

interface RoutingRoom {
  here: Called[];
  present: PersonaId[];
  rules: RoutingRules;
  /** By which people may call the bot, and nobody who is here. */
  botNames: readonly string[];
  /** Who is called by the name of the bot; null: nobody in particular. */
  namedAsBot: PersonaId | null;
}

/**
 * Takes messages from the front until one addresses somebody else; that one and the rest wait for the next turn. An
 * album is one message: it is for whom one of its items is for.
 */
export function route(waiting: StoredMessage[], personas: Persona[], rules: RoutingRules): Routing {
  const here = personas.filter(({ id }) => !rules.away?.includes(id)).map(calledOf);
  const present = presentIn(rules, here);
  const bot = personas.find(({ id }) => id === DEFAULT_PERSONA && present.includes(id));
  const namedAsBot = bot && !hasName(bot) ? bot.id : null;
  const room = { here, present, rules, namedAsBot, botNames: botNamesIn(here, rules) };
  const noted: StoredMessage[] = [];
  const batch: StoredMessage[] = [];
  let first: Addressed | null = null;
  const albums = new Map<string, Addressed>();
  for (const message of waiting) {
    const addressed = ofAlbum(message, waiting, albums, room);
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

/** In a direct chat nobody need be called; and where a persona has the bot's name for its own, it is that persona's. */
function botNamesIn(here: Called[], { kind, botNames = [] }: RoutingRules): readonly string[] {
  if (kind === 'direct' || botNames.length === 0) return [];
  const names = here.flatMap((persona) => persona.names);
  return names.some((name) => callsBot(name, botNames)) ? [] : botNames;
}

/** The first of its album's items that is for somebody says whom all of them are for. */
function ofAlbum(
  message: StoredMessage,
  waiting: readonly StoredMessage[],
  known: Map<string, Addressed>,
  room: RoutingRoom,
): Addressed {
  // What comes after the others were answered is heard; only words of its own may ask for another answer.
  if (message.late && wordsOf(message).trim() === '') return NOBODY;
  const key = albumOf(message);
  if (key === null) return addressedBy(message, room);
  const found =
    known.get(key) ??
    mostPlainly(waiting.filter((each) => albumOf(each) === key).map((each) => addressedBy(each, room)));
  known.set(key, found);
  return found;
}

/** null for a message that is no item of an album. Ids of albums are the platform's, and may be anybody's. */
function albumOf({ album, author }: StoredMessage): string | null {
  return album === undefined || author.kind !== 'person' ? null : `${author.id}\n${album}`;
}

/** An item without a caption is for whoever all messages are for; a caption may say more. */
function mostPlainly(items: Addressed[]): Addressed {
  const called = items.filter(({ to }) => to.length > 0);
  return (
    called.find(({ byName }) => byName) ?? called.find(({ open }) => open !== 'unsure') ?? called[0] ?? NOBODY
  );
}

/** What the sender wrote, without what is told of files. */
function wordsOf({ words, text }: StoredMessage): string {
  return words ?? text;
}

function addressedBy(message: StoredMessage, room: RoutingRoom): Addressed {
  const { here, present, rules, namedAsBot } = room;
  if (message.quiet) return NOBODY;
  // An event from inside the gateway names its addressee in `addresses`; names in its text do not count.
  if (message.author.kind === 'gateway') {
    const to = (message.addresses ?? []).filter((id) => here.some((persona) => persona.id === id));
    return { to: to.length > 0 ? to : present.slice(0, 1), open: null };
  }
  if (rules.botLimitReached && message.author.kind === 'person' && message.author.bot) return NOBODY;

  const isCalled = callsUs(message, room.botNames);
  const byName = calledIn(message, room, isCalled);
  if (byName.length > 0) return { to: byName, open: null, byName: true };

  const isReply = message.replyTo?.ours && !callsNobodysAccount(message);
  const repliedTo = isReply ? message.replyTo?.personaId : null;
  if (repliedTo && here.some(({ id }) => id === repliedTo)) return { to: [repliedTo], open: null };

  const active = present.slice(0, 1);
  if (isCalled && namedAsBot !== null) return { to: [namedAsBot], open: null, byName: true };
  const isForUs =
    rules.kind === 'direct' || message.mentionsBot || isCalled || message.replyTo?.ours === true;
  if (!isForUs && rules.requireMention) return NOBODY;
  if (present.length === 1) return { to: active, open: null };
  return { to: active, open: isForUs ? 'sure' : 'unsure' };
}

/** The personas that a message calls by name or through their own account; `isBotCalled`: the bot by its name as well. */
function calledIn(
  message: StoredMessage,
  { here, present, rules }: RoutingRoom,
  isBotCalled: boolean,
): PersonaId[] {
  const text = wordsOf(message);
  if (message.forwardedFrom !== undefined) return ownAccounts(message, here);
  const there = here.filter(({ id }) => present.includes(id));
  const own = ownAccounts(message, here);
  const spoken = (message.attachments ?? []).flatMap(spokenIn);
  const plainly = [
    ...calledPlainly(text, here),
    ...calledTogether(text, there),
    ...spoken.flatMap((words) => calledAloud(words, here)),
  ];
  // In a direct chat the account is only where the message was sent, so explicit names in the text override it.
  const called = plainly.length > 0 && rules.kind === 'direct' ? plainly : [...own, ...plainly];
  if (called.length > 0) return [...new Set(called)];
  if (callsNobodysAccount(message)) return turnedTo(text.replace(OPENING_MENTION, ''), there);
  if (isBotCalled) return turnedTo(text, there);
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

function ownAccounts({ addresses = [] }: StoredMessage, here: Called[]): PersonaId[] {
  return addresses.filter((id) => here.some((persona) => persona.id === id));
}

function callsUs(message: StoredMessage, names: readonly string[]): boolean {
  const { attachments = [], forwardedFrom } = message;
  if (forwardedFrom !== undefined || names.length === 0) return false;
  return (
    callsBot(wordsOf(message), names) ||
    attachments.flatMap(spokenIn).some((words) => callsBot(words, names, 'aloud'))
  );
}

/** What was spoken for this chat, not in a message that this one replies to. */
function spokenIn({ kind, outcome, ofReply }: StoredAttachment): string[] {
  return kind === 'voice' && !ofReply && outcome?.kind === 'kept' && outcome.read ? [outcome.read] : [];
}
