/** Access: approvals and pairing, questions to people, and tool calls that wait for approval. */

import { createHash } from 'node:crypto';
import type { Part, Post } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { NewCommand } from './receipt.js';

/** `unknown`: the platform did not say. */
export type Permission = 'yes' | 'no' | 'unknown';

export interface Question {
  id: number;
  /** The message that led to it; a duplicate delivery of it does not count as an answer. */
  askedBy: string;
  ifYes: NewCommand;
}

/** A button below a message. Without a command it only ends the offer. */
export interface OfferedOption {
  label: string;
  command: NewCommand | null;
}

/** Buttons below a message, of which one may be chosen, once. The value of the n-th is `<key>.<n>`. */
export interface Offer {
  /** At most 50 letters, digits and `-`. */
  key: string;
  room: RoomId;
  /** The person who may choose; null: anybody who may run the command. */
  senderId: ChatId | null;
  options: OfferedOption[];
  until: number;
}

/** News of a stranger to people who may let them in, with buttons or numbers. */
export interface Announcement {
  post: Post;
  offer: Offer;
}

/** `unknown`: the id's form does not tell, and nobody has been heard under it yet. */
export type ApprovedKind = 'sender' | 'group' | 'unknown';

/** The person or group behind a code or id, before approval. */
export interface Applicant {
  id: ChatId;
  kind: ApprovedKind;
  /** null: never heard. */
  name: string | null;
  approved: boolean;
  owner: boolean;
}

interface Approved {
  id: ChatId;
  kind: ApprovedKind;
  owner: boolean;
  /** The chat to tell; null if unknown, or without news. */
  toldIn: ChatId | null;
}

export interface PairingRequest {
  code: string;
  kind: 'sender' | 'group';
  /** Id of the sender or group. */
  id: ChatId;
  name: string;
  expiresAt: number;
  /** The parent of a group (a Discord server). */
  within?: ChatId;
}

/** An unknown sender, with the rate limits for answers to unknown senders of a channel. */
export interface PairingAsk {
  channel: string;
  senderId: ChatId;
  now: number;
  /** Minimum time between answers to one sender. */
  answerEveryMs: number;
  /** Maximum pending codes, and codes per hour. */
  most: number;
  mostPerHour: number;
}

/** Access beyond the configuration. */
export interface AccessStore {
  /** Whether the chat or the sender was approved, and whether the sender is an owner. */
  approvalOf(ask: {
    chatId: ChatId;
    senderId: ChatId;
  }): Promise<{ chat: boolean; sender: boolean; owner: boolean }>;
  /** The open question to this sender in a room. */
  question(ask: { room: RoomId; senderId: ChatId; now: number }): Promise<Question | null>;
  /** The open offer with this key. */
  offer(key: string, now: number): Promise<Offer | null>;
  /** Open offers in a room to this sender, or to anybody who may run their commands; newest first. */
  offers(ask: { room: RoomId; senderId: ChatId; now: number }): Promise<Offer[]>;
  /**
   * The decision of `requestPairing`, without changes. 'quiet': answered recently, or refused; 'full': the channel's
   * rate limit is reached.
   */
  mayAskToPair(ask: PairingAsk): Promise<'ask' | 'quiet' | 'full'>;
  /** Stores a pairing request. 'asked': stored the code, posted the answer and announced it, in one transaction. */
  requestPairing(
    request: PairingAsk & {
      name: string;
      code: string;
      expiresAt: number;
      answer: Post;
      /** Absent: nobody is told. */
      announcements?: Announcement[];
    },
  ): Promise<'asked' | 'quiet' | 'full'>;
  /**
   * The bot was mentioned in an unlisted group, which is listed as waiting for `keepMs`; only the `most` latest of a
   * channel are kept. True if it was not waiting before, so that it is logged once.
   */
  noteGroup(group: {
    chatId: ChatId;
    within?: ChatId;
    title: string;
    now: number;
    keepMs: number;
    most: number;
  }): Promise<boolean>;
  /** Pending requests, oldest first, without expired ones and groups whose parent was approved. */
  waiting(now: number): Promise<PairingRequest[]>;
  /**
   * The person or group behind a code or id. `looksLike`: the kind that the id's form suggests, used for unknown ids;
   * null for an invalid form. null if a code is unknown or expired.
   */
  applicant(ask: {
    codeOrId: string;
    looksLike: ApprovedKind | null;
    now: number;
  }): Promise<Applicant | null>;
  /**
   * Approves the applicant, and sends `member` or `owner` to a sender if that is news. Only `asOwner` makes a sender an
   * owner; without it, owners stay owners.
   */
  approve(ask: {
    codeOrId: string;
    looksLike: ApprovedKind | null;
    asOwner: boolean;
    now: number;
    told: { member: Part; owner: Part };
  }): Promise<Approved | null>;
  /** People approved as owners. */
  owners(): Promise<ChatId[]>;
  /** Ends a request; no answer before `quietUntil`. Returns the sender's name; null if the code is unknown or expired. */
  refuse(ask: { code: string; now: number; quietUntil: number }): Promise<string | null>;
  /** Direct chats of these people and of approved owners. */
  ownerChats(listed: ChatId[]): Promise<ChatRecord[]>;
  /** Revokes an approval or request, by any id of a chat. False if there was none. */
  revoke(id: ChatId): Promise<boolean>;
}

// Tool calls that wait for approval. The turn is suspended with the question (`TurnStore.suspend`). The first decision
// counts and resumes the turn, which runs the call once or tells the model that it was refused.

export interface AskedCall {
  /** Letters and digits, typed by people: `/approve ID`. */
  id: string;
  /** The suspended turn's key: `waitsForCall`. */
  waitsFor: string;
  room: RoomId;
  chatId: ChatId;
  personaId: PersonaId;
  turnId: string;
  callId: string;
  tool: string;
  /** The call runs with exactly these or not at all. Empty once decided. */
  arguments: string;
  /** The reason, as a sentence for the deciders. Empty once decided. */
  why: string;
  askedAt: number;
  until: number;
}

/** A question, stored with the turn's `waiting` step. */
export interface NewQuestion {
  call: AskedCall;
  /** Messages in the control chats, or in the chat itself. */
  posts: Post[];
  /** Its buttons, with keys that begin with `offerKeyOf(id)`. */
  offers: Offer[];
}

export interface ApprovalStore {
  /** Ignores case. `isOpen`: the turn still waits for it. null if unknown. */
  askedCall(id: string, now: number): Promise<(AskedCall & { isOpen: boolean }) | null>;
  /** Open calls, oldest first. `chatId` absent: of all chats. */
  askedCalls(now: number, chatId?: ChatId): Promise<AskedCall[]>;
  /**
   * Decides a call, once, and makes its turn ready. 'over': decided or expired, or its turn was ended by `/reset` or
   * `/stop`. The same command repeated after a crash gets the same answer. `wakes`: the room to continue.
   */
  decide(decision: {
    id: string;
    by: ChatId;
    /** The deciding command. */
    commandId: number;
    now: number;
    /** null: approved. */
    refusal: Refusal | null;
  }): Promise<{ kind: 'approved' | 'denied'; wakes: RoomId } | { kind: 'over' | 'unknown' }>;
  /** Refuses a call that nobody decided in time. Returns the room to continue; null if already over. */
  expire(ask: { id: string; now: number; refusal: Refusal }): Promise<RoomId | null>;
}

export interface Refusal {
  /** Its result for the model. */
  content: string;
  /** A message to the call's chat; null: none. */
  told: Post | null;
}

/** The reason of a question about a whole run of an agent; distinguishes it from one about a single call. */
export const WHOLE_RUN =
  'A yes is to the whole of this run: to all its commands, and to all by which it leaves this machine.';

/** Only while it is open: closed questions lose their reason. */
export function isAboutRun({ why }: { why: string }): boolean {
  return why === WHOLE_RUN;
}

const WAITS_FOR = 'approval:';

/** Includes a hash of the arguments, so that a call changed meanwhile (`/memory forget`) no longer matches. */
export function waitsForCall({ id, arguments: given }: { id: string; arguments: string }): string {
  return `${WAITS_FOR}${id}:${createHash('sha256').update(given).digest('hex').slice(0, 32)}`;
}

/** The awaited call's id; null if the turn waits for something else. */
export function askedCallIn(waitsFor: string): string | null {
  return waitsFor.startsWith(WAITS_FOR) ? (waitsFor.split(':')[1] ?? null) : null;
}

export function offerKeyOf(id: string): string {
  return `asked-${id}-`;
}

/** `access` in the configuration, merged with the channel's overrides. */
export interface AccessRules {
  direct: 'pairing' | 'open' | 'closed';
  groups: 'listed' | 'open' | 'closed';
  chats: ChatId[];
  owners: ChatId[];
  controlChats: ChatId[];
  requireMention: boolean;
}
