/** Step 3 of the route, pure: whom each waiting message addresses, which are answered by the next turn, and which only noted. */
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
  /** null if every waiting message is only noted. */
  turn: {
    personaId: PersonaId;
    /** The other addressees, in the order in which they speak afterwards. */
    also: PersonaId[];
    /** Nobody was named and several could answer. `sure`: one must answer; `unsure`: all may stay silent. */
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
  /** Other bots have had the maximum number of answers in a row without a message from a person. */
  botLimitReached?: boolean;
}

/** The addressees of one message; `to` is empty if it is for nobody. */
interface Addressed {
  to: PersonaId[];
  open: 'sure' | 'unsure' | null;
  /** Called by name, not only spoken to. */
  byName?: true;
}

const NOBODY: Addressed = { to: [], open: null };

interface RoutingRoom {
  here: Called[];
  present: PersonaId[];
  rules: RoutingRules;
  /** The names that call the bot and none of the personas here. */
  botNames: readonly string[];
  /** The persona called by the bot's name; null: nobody in particular. */
  namedAsBot: PersonaId | null;
}

/** Takes messages from the front until one addresses somebody else. An album counts as one message. */
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
      continue;
    }
    first ??= addressed;
    if (first.open !== addressed.open || first.to.join('\n') !== addressed.to.join('\n')) break;
    batch.push(message);
  }
  const [personaId, ...also] = first?.to ?? [];
  if (first === null || personaId === undefined) return { turn: null, noted };
  return { turn: { personaId, also, open: first.open, batch }, noted };
}

/** Empty in a direct chat, where nobody need be called, and if a persona's own name is the bot's. */
function botNamesIn(here: Called[], { kind, botNames = [] }: RoutingRules): readonly string[] {
  if (kind === 'direct' || botNames.length === 0) return [];
  const names = here.flatMap((persona) => persona.names);
  return names.some((name) => callsBot(name, botNames)) ? [] : botNames;
}

/** All items of an album have the addressees of its first item that is for somebody. */
function ofAlbum(
  message: StoredMessage,
  waiting: readonly StoredMessage[],
  known: Map<string, Addressed>,
  room: RoutingRoom,
): Addressed {
  // Late items, after the others were answered, are only heard; their own words may still ask for another answer.
  if (message.late && wordsOf(message).trim() === '') return NOBODY;
  const key = albumOf(message);
  if (key === null) return addressedBy(message, room);
  const items = () => waiting.filter((each) => albumOf(each) === key);
  const found = known.get(key) ?? mostPlainly(items().map((each) => addressedBy(each, room)));
  known.set(key, found);
  return found;
}

/** null if the message is no item of an album. Album ids come from the platform, so they are combined with the author. */
function albumOf({ album, author }: StoredMessage): string | null {
  return album === undefined || author.kind !== 'person' ? null : `${author.id}\n${album}`;
}

/** An item without a caption is for the addressee of all messages; a caption may be more specific. */
function mostPlainly(items: Addressed[]): Addressed {
  const called = items.filter(({ to }) => to.length > 0);
  const byName = called.find((item) => item.byName);
  return byName ?? called.find(({ open }) => open !== 'unsure') ?? called[0] ?? NOBODY;
}

/** The sender's own words, without the description of files. */
function wordsOf({ words, text }: StoredMessage): string {
  return words ?? text;
}

function addressedBy(message: StoredMessage, room: RoutingRoom): Addressed {
  const { here, present, rules, namedAsBot } = room;
  const { author, replyTo } = message;
  if (message.quiet) return NOBODY;
  const active = present.slice(0, 1);
  // An event from inside the gateway names its addressee in `addresses`; names in its text do not count.
  if (author.kind === 'gateway') {
    const to = ownAccounts(message, here);
    return { to: to.length > 0 ? to : active, open: null };
  }
  if (rules.botLimitReached && author.kind === 'person' && author.bot) return NOBODY;

  const isCalled = callsUs(message, room.botNames);
  const byName = calledIn(message, room, isCalled);
  if (byName.length > 0) return { to: byName, open: null, byName: true };

  const repliedTo = replyTo?.ours && !callsNobodysAccount(message) ? replyTo.personaId : null;
  if (repliedTo && here.some(({ id }) => id === repliedTo)) return { to: [repliedTo], open: null };

  if (isCalled && namedAsBot !== null) return { to: [namedAsBot], open: null, byName: true };
  const isForUs = rules.kind === 'direct' || message.mentionsBot || isCalled || replyTo?.ours === true;
  if (!isForUs && rules.requireMention) return NOBODY;
  if (present.length === 1) return { to: active, open: null };
  return { to: active, open: isForUs ? 'sure' : 'unsure' };
}

/** The personas a message calls by name or through their own account. `isBotCalled`: it also calls the bot by name. */
function calledIn(message: StoredMessage, room: RoutingRoom, isBotCalled: boolean): PersonaId[] {
  const { here, present, rules } = room;
  const text = wordsOf(message);
  const own = ownAccounts(message, here);
  if (message.forwardedFrom !== undefined) return own;
  const there = here.filter(({ id }) => present.includes(id));
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

/** Whether it calls the account of no persona, where personas have their own: then only turning to a persona calls it. */
function callsNobodysAccount({ author, addresses }: StoredMessage): boolean {
  return author.kind === 'person' && addresses?.length === 0;
}

function ownAccounts({ addresses = [] }: StoredMessage, here: Called[]): PersonaId[] {
  return addresses.filter((id) => here.some((persona) => persona.id === id));
}

function callsUs(message: StoredMessage, names: readonly string[]): boolean {
  if (message.forwardedFrom !== undefined || names.length === 0) return false;
  if (callsBot(wordsOf(message), names)) return true;
  return (message.attachments ?? []).flatMap(spokenIn).some((words) => callsBot(words, names, 'aloud'));
}

/** Words spoken for this chat, not in a message that this one replies to. */
function spokenIn({ kind, outcome, ofReply }: StoredAttachment): string[] {
  return kind === 'voice' && !ofReply && outcome?.kind === 'kept' && outcome.read ? [outcome.read] : [];
}
