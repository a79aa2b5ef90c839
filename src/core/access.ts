/** Who may talk, what people were asked, and tool calls that wait for a person. */

import { createHash } from 'node:crypto';
import type { Part, Post } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { NewCommand } from './receipt.js';

/** Whether somebody may do something; the platform may not say. */
export type Permission = 'yes' | 'no' | 'unknown';

/** A question that somebody has not answered yet. */
export interface Question {
  id: number;
  /** The message that led to it: if the platform delivers it again, it does not count as an answer. */
  askedBy: string;
  /** The command that a plain yes becomes. */
  ifYes: NewCommand;
}

/** One of several buttons below a message; without a command, it only ends the offer. */
export interface OfferedOption {
  label: string;
  command: NewCommand | null;
}

/** Buttons below a message: one of them is taken, once. The value of the n-th button is `<key>.<n>`. */
export interface Offer {
  /** At most 50 letters, digits and `-`. */
  key: string;
  room: RoomId;
  /** For whom they are; null: for whoever may run the command. */
  senderId: ChatId | null;
  options: OfferedOption[];
  until: number;
}

/** A stranger waits: said to those who may let them in, with buttons or numbers. */
export interface Announcement {
  post: Post;
  offer: Offer;
}

/** What an approved id is: `unknown` where its form does not tell, and nobody has been heard under it yet. */
export type ApprovedKind = 'sender' | 'group' | 'unknown';

/** Whom a code or an id stands for, before they are approved. */
export interface Applicant {
  id: ChatId;
  kind: ApprovedKind;
  /** null: nobody has been heard under this id. */
  name: string | null;
  approved: boolean;
  owner: boolean;
}

interface Approved {
  id: ChatId;
  kind: ApprovedKind;
  owner: boolean;
  /** The chat in which they are told; null if that is not known, or there is nothing new to tell. */
  toldIn: ChatId | null;
}

export interface PairingRequest {
  code: string;
  kind: 'sender' | 'group';
  /** The sender's or the group's id. */
  id: ChatId;
  name: string;
  expiresAt: number;
  /** Of a group that is part of another chat (a Discord server): that one. */
  within?: ChatId;
}

/** An unknown sender, and what bounds the answers to unknown senders of a channel. */
export interface PairingAsk {
  channel: string;
  senderId: ChatId;
  now: number;
  /** How often the same sender is answered. */
  answerEveryMs: number;
  /** How many codes may be pending at once, and be given within an hour. */
  most: number;
  mostPerHour: number;
}

/** Who may talk, in addition to the configuration. */
export interface AccessStore {
  /** Whether this sender or chat was approved, and whether the sender is an owner. */
  approvalOf(ask: {
    chatId: ChatId;
    senderId: ChatId;
  }): Promise<{ chat: boolean; sender: boolean; owner: boolean }>;
  /** The pending question to this sender in a room. */
  question(ask: { room: RoomId; senderId: ChatId; now: number }): Promise<Question | null>;
  /** The offer with this key, while it is open. */
  offer(key: string, now: number): Promise<Offer | null>;
  /** The open offers in a room to this sender, and to whoever may run their commands; newest first. */
  offers(ask: { room: RoomId; senderId: ChatId; now: number }): Promise<Offer[]>;
  /**
   * Whether an unknown sender is to be given a code: decides as `requestPairing` will, and changes nothing. 'quiet': was
   * answered lately, or refused; 'full': the channel has given as many as it may.
   */
  mayAskToPair(ask: PairingAsk): Promise<'ask' | 'quiet' | 'full'>;
  /**
   * Stores a pairing request of an unknown sender, whose code is valid until `expiresAt`. 'asked' when the code was
   * stored, its answer posted and those told who may let them in (one transaction).
   */
  requestPairing(
    request: PairingAsk & {
      name: string;
      code: string;
      expiresAt: number;
      answer: Post;
      /** Left out: nobody is told. */
      announcements?: Announcement[];
    },
  ): Promise<'asked' | 'quiet' | 'full'>;
  /**
   * The bot was mentioned in an unlisted group, which then waits for `keepMs`, one of the `most` of its channel that were
   * mentioned last. True when it did not wait before, so that it is logged once.
   */
  noteGroup(group: {
    chatId: ChatId;
    within?: ChatId;
    title: string;
    now: number;
    keepMs: number;
    most: number;
  }): Promise<boolean>;
  /** Pending requests, oldest first, without expired ones, and without groups of which the whole was approved. */
  waiting(now: number): Promise<PairingRequest[]>;
  /**
   * Whom a code, or the id of a chat or a person, stands for. `looksLike`: what the id's form tells, which counts where
   * nothing is known of it; null for no form that there is. null when a code is unknown or expired.
   */
  applicant(ask: {
    codeOrId: string;
    looksLike: ApprovedKind | null;
    now: number;
  }): Promise<Applicant | null>;
  /**
   * Approves whom `applicant` finds, and tells a sender with `member` or `owner` if that is news. Only `asOwner` makes an
   * owner, and only of a sender; without it, whoever is one already stays one.
   */
  approve(ask: {
    codeOrId: string;
    looksLike: ApprovedKind | null;
    asOwner: boolean;
    now: number;
    told: { member: Part; owner: Part };
  }): Promise<Approved | null>;
  /** Those who were approved as owners. */
  owners(): Promise<ChatId[]>;
  /**
   * Ends the request with this code; the sender is not answered again before `quietUntil`. Their name; null when the
   * code is unknown or expired.
   */
  refuse(ask: { code: string; now: number; quietUntil: number }): Promise<string | null>;
  /** The direct chats of these people, and of those who were approved as owners. */
  ownerChats(listed: ChatId[]): Promise<ChatRecord[]>;
  /** Revokes an approval or a request, by whichever of a chat's ids. False if there was none. */
  revoke(id: ChatId): Promise<boolean>;
}

// Tool calls that wait for a person. The turn is suspended with the question (`RouteStore.suspend`); the first decision
// counts and brings the turn back, which then runs the call, once, or tells the model that it must not.

export interface AskedCall {
  /** Letters and digits, as people type it: `/approve ID`. */
  id: string;
  /** What the suspended turn waits for: `waitsForCall`. */
  waitsFor: string;
  room: RoomId;
  chatId: ChatId;
  personaId: PersonaId;
  turnId: string;
  callId: string;
  tool: string;
  /** Exactly what is approved: the call runs with these, or not at all. Empty when it is over. */
  arguments: string;
  /** Why it asks: a sentence for whoever decides. Empty when it is over. */
  why: string;
  askedAt: number;
  until: number;
}

/** A question that is stored with the step by which a turn waits. */
export interface NewQuestion {
  call: AskedCall;
  /** Where it stands: in the control chats, or in the chat itself. */
  posts: Post[];
  /** The buttons below it; their keys begin with `offerKeyOf(id)`. */
  offers: Offer[];
}

export interface ApprovalStore {
  /** By its id in any case; `isOpen`: the turn still waits for it. null if there is none. */
  askedCall(id: string, now: number): Promise<(AskedCall & { isOpen: boolean }) | null>;
  /** The open ones, oldest first; left out: of all chats. */
  askedCalls(now: number, chatId?: ChatId): Promise<AskedCall[]>;
  /**
   * Decides it, once, and makes its turn ready. 'over': it was decided, has expired, or its turn was ended by `/reset` or
   * `/stop`. The same command that asks again after a crash gets the same answer. `wakes`: the room that goes on.
   */
  decide(decision: {
    id: string;
    by: ChatId;
    /** The command that decides. */
    commandId: number;
    now: number;
    /** null: yes. */
    refusal: Refusal | null;
  }): Promise<{ kind: 'approved' | 'denied'; wakes: RoomId } | { kind: 'over' | 'unknown' }>;
  /** Nobody has decided in time, which is a no. Returns the room that goes on; null if it was over already. */
  expire(ask: { id: string; now: number; refusal: Refusal }): Promise<RoomId | null>;
}

/** What comes of a call that is not allowed. */
export interface Refusal {
  /** Its result, for the model. */
  content: string;
  /** What the chat of the call is told; null: nothing. */
  told: Post | null;
}

/** Why a question about a whole run of an agent is asked: the words by which it is known from one about a single call. */
export const WHOLE_RUN =
  'A yes is to the whole of this run: to all its commands, and to all by which it leaves this machine.';

/** While it is open: what is over has lost its words. */
export function isAboutRun({ why }: Pick<AskedCall, 'why'>): boolean {
  return why === WHOLE_RUN;
}

const WAITS_FOR = 'approval:';

/** It holds what was asked, in short: a call whose arguments are others by now (`/memory forget`) is not the one. */
export function waitsForCall({ id, arguments: given }: Pick<AskedCall, 'id' | 'arguments'>): string {
  return `${WAITS_FOR}${id}:${createHash('sha256').update(given).digest('hex').slice(0, 32)}`;
}

/** The id of the call that a turn waits for; null if it waits for something else. */
export function askedCallIn(waitsFor: string): string | null {
  return waitsFor.startsWith(WAITS_FOR) ? (waitsFor.split(':')[1] ?? null) : null;
}

export function offerKeyOf(id: string): string {
  return `asked-${id}-`;
}

/** `access` of the configuration, with the channel's own overrides already applied. */
export interface AccessRules {
  direct: 'pairing' | 'open' | 'closed';
  groups: 'listed' | 'open' | 'closed';
  chats: ChatId[];
  owners: ChatId[];
  controlChats: ChatId[];
  requireMention: boolean;
}
