/** Access: approvals and pairing, questions to people, and tool calls that wait for approval. */

import { createHash } from 'node:crypto';
import type { Part, Post } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { NewCommand } from './receipt.js';

export type Permission = 'yes' | 'no' | 'unknown';

export interface Question {
  id: number;
  /** A duplicate delivery of it does not count as an answer. */
  askedBy: string;
  ifYes: NewCommand;
}

/** Without a command it only ends the offer. */
export interface OfferedOption {
  label: string;
  command: NewCommand | null;
}

/** One may be chosen, once. The value of the n-th is `<key>.<n>`. */
export interface Offer {
  /** At most 50 letters, digits and `-`. */
  key: string;
  room: RoomId;
  /** null: anybody who may run the command. */
  senderId: ChatId | null;
  options: OfferedOption[];
  until: number;
}

/** To people who may let a stranger in, with buttons or numbers. */
export interface Announcement {
  post: Post;
  offer: Offer;
}

/** `unknown`: the id's form does not tell, and nobody has been heard under it yet. */
export type ApprovedKind = 'sender' | 'group' | 'unknown';

/** Before approval. */
export interface Applicant {
  id: ChatId;
  kind: ApprovedKind;
  /** null: never heard. */
  name: string | null;
}

interface Approved {
  id: ChatId;
  kind: ApprovedKind;
  owner: boolean;
  /** null if unknown, or without news. */
  toldIn: ChatId | null;
}

export interface PairingRequest {
  code: string;
  kind: 'sender' | 'group';
  id: ChatId;
  name: string;
  expiresAt: number;
  /** Of a group: a Discord server. */
  within?: ChatId;
}

/** With the channel's rate limits. */
export interface PairingAsk {
  channel: string;
  senderId: ChatId;
  now: number;
  /** Between answers to one sender. */
  answerEveryMs: number;
  /** Pending codes, and codes per hour. */
  most: number;
  mostPerHour: number;
}

/** Beyond the configuration. */
export interface AccessStore {
  approvalOf(ask: {
    chatId: ChatId;
    senderId: ChatId;
  }): Promise<{ chat: boolean; sender: boolean; owner: boolean }>;
  question(ask: { room: RoomId; senderId: ChatId; now: number }): Promise<Question | null>;
  /** One, or all that this sender may take, or anybody who may run their commands; newest first. */
  offers(which: { key: string } | { room: RoomId; senderId: ChatId }, now: number): Promise<Offer[]>;
  /**
   * 'asked': stored, answered and announced, in one transaction. 'quiet': answered recently, or refused; 'full': rate
   * limit reached. Without a request it only tells which of them it would be.
   */
  requestPairing(
    ask: PairingAsk,
    request: {
      name: string;
      code: string;
      expiresAt: number;
      answer: Post;
      announcements: Announcement[];
    } | null,
  ): Promise<'asked' | 'quiet' | 'full'>;
  /** The bot was mentioned in an unlisted group, which waits for `keepMs`; only the `most` latest do. True if new. */
  noteGroup(group: {
    chatId: ChatId;
    within?: ChatId;
    title: string;
    now: number;
    keepMs: number;
    most: number;
  }): Promise<boolean>;
  /** Oldest first, without groups whose parent was approved. */
  waiting(now: number): Promise<PairingRequest[]>;
  /** Behind a code or id. `looksLike`: the kind suggested by the id's form. null if a code is unknown or expired. */
  applicant(ask: {
    codeOrId: string;
    looksLike: ApprovedKind | null;
    now: number;
  }): Promise<Applicant | null>;
  /** Sends `member` or `owner` to a sender if that is news. Without `asOwner`, owners stay owners. */
  approve(ask: {
    codeOrId: string;
    looksLike: ApprovedKind | null;
    asOwner: boolean;
    now: number;
    told: { member: Part; owner: Part };
  }): Promise<Approved | null>;
  /**
   * A request by its code: no answer before `quietUntil`. Or what any id of a chat has, an approval or a request. False
   * if there was none.
   */
  refuse(what: { code: string; now: number; quietUntil: number } | { id: ChatId }): Promise<boolean>;
  /** These people and approved owners, and their direct chats. */
  owners(listed: readonly ChatId[]): Promise<{ ids: ChatId[]; chats: ChatRecord[] }>;
}

/** A tool call that waits for approval, with its turn. The first decision counts: it runs once or is refused. */
export interface AskedCall {
  /** Typed by people: `/approve ID`. */
  id: string;
  /** `waitsForCall`. */
  waitsFor: string;
  room: RoomId;
  chatId: ChatId;
  personaId: PersonaId;
  turnId: string;
  callId: string;
  tool: string;
  /** The call runs with exactly these. Empty once decided. */
  arguments: string;
  /** A sentence for the deciders. Empty once decided. */
  why: string;
  askedAt: number;
  until: number;
}

/** Stored with the turn's `waiting` step. */
export interface NewQuestion {
  call: AskedCall;
  /** To the control chats, or to the chat itself. */
  posts: Post[];
  /** Their keys begin with `offerKeyOf(id)`. */
  offers: Offer[];
}

/** `ended`: its turn or task was. */
export type CallDecision = 'approved' | 'denied' | 'expired' | 'ended';

export interface ApprovalStore {
  /** One, ignoring case, or all that are open, oldest first. `isOpen`: its turn or task still waits for it. */
  askedCalls(
    which: { id: string } | 'open',
    now: number,
  ): Promise<(AskedCall & { isOpen: boolean; decision: CallDecision | null })[]>;
  /**
   * Once. Returns the room to continue; null if the call is unknown or over. The same command repeated after a crash gets
   * the same answer. `by` null: nobody decided in time.
   */
  decide(
    decision: { id: string; now: number } & (
      | { by: ChatId; commandId: number; refusal: Refusal | null }
      | { by: null; refusal: Refusal }
    ),
  ): Promise<RoomId | null>;
}

export interface Refusal {
  /** For the model. */
  content: string;
  /** To the call's chat. */
  told: Post | null;
}

/** Distinguishes a question about a whole run of an agent from one about a single call. */
export const WHOLE_RUN =
  'A yes is to the whole of this run: to all its commands, and to all by which it leaves this machine.';

/** Only while it is open. */
export function isAboutRun({ why }: { why: string }): boolean {
  return why === WHOLE_RUN;
}

const WAITS_FOR = 'approval:';

/** The hash of the arguments tells when the call was changed meanwhile (`/memory forget`). */
export function waitsForCall({ id, arguments: given }: { id: string; arguments: string }): string {
  return `${WAITS_FOR}${id}:${createHash('sha256').update(given).digest('hex').slice(0, 32)}`;
}

/** null if the turn waits for something else. */
export function askedCallIn(waitsFor: string): string | null {
  return waitsFor.startsWith(WAITS_FOR) ? (waitsFor.split(':')[1] ?? null) : null;
}

export function offerKeyOf(id: string): string {
  return `asked-${id}-`;
}

/** Merged with the channel's overrides. */
export interface AccessRules {
  direct: 'pairing' | 'open' | 'closed';
  groups: 'listed' | 'open' | 'closed';
  chats: ChatId[];
  owners: ChatId[];
  controlChats: ChatId[];
  requireMention: boolean;
}
