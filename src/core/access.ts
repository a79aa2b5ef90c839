/** Who may talk, what people were asked, and which ids lead to a chat. */
import type { Part } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { Post } from './delivery.js';
import type { ChatId, RoomId } from './ids.js';
import type { NewCommand } from './receipt.js';

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

export interface Approved {
  id: ChatId;
  kind: 'sender' | 'group';
  owner: boolean;
  /** The chat in which they are told; null if that is not known. */
  toldIn: ChatId | null;
}

export interface PairingRequest {
  code: string;
  kind: 'sender' | 'group';
  /** The sender's or the group's id. */
  id: ChatId;
  name: string;
  expiresAt: number | null;
  /** Of a group that is part of another chat (a Discord server): that one. */
  within?: ChatId;
}

/** Who may talk, in addition to the configuration. */
export interface AccessStore {
  /** Whether this sender or chat was approved, and whether the sender is an owner. */
  standing(ask: {
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
   * Stores a pairing request of an unknown sender: at most `most` are pending per channel, a sender is answered at most
   * once per `answerEveryMs`, a code is valid until `expiresAt`. 'asked' when the code was stored, its answer posted and
   * those told who may let them in (one transaction); 'quiet' otherwise.
   */
  requestPairing(request: {
    channel: string;
    senderId: ChatId;
    name: string;
    code: string;
    now: number;
    expiresAt: number;
    answerEveryMs: number;
    most: number;
    answer: Post;
    /** Left out: nobody is told. */
    announcements?: Announcement[];
  }): Promise<'asked' | 'quiet'>;
  /** The bot was mentioned in an unlisted group. True the first time, so that it is logged once. */
  noteGroup(group: { chatId: ChatId; within?: ChatId; title: string; now: number }): Promise<boolean>;
  /** Pending requests, oldest first, without expired ones, and without groups of which the whole was approved. */
  waiting(now: number): Promise<PairingRequest[]>;
  /**
   * Approves a code, the id of a pending group, or the id of any chat. A sender is told with `member` or `owner`; the
   * first sender ever approved becomes owner, unless `asMember`. null when the code is unknown or expired.
   */
  approve(ask: {
    codeOrId: string;
    now: number;
    told: { member: Part; owner: Part };
    asMember?: true;
  }): Promise<Approved | null>;
  /**
   * Ends the request with this code; the sender is not answered again before `quietUntil`. Their name; null when the
   * code is unknown or expired.
   */
  refuse(ask: { code: string; now: number; quietUntil: number }): Promise<string | null>;
  /** The direct chats of these people, and of those who were approved as owners. */
  ownerChats(listed: ChatId[]): Promise<ChatRecord[]>;
  /** Revokes an approval or a request. False if there was none. */
  revoke(id: ChatId): Promise<boolean>;
}

/** Aliases: further ids of a chat. chat.yaml is the source of truth; this is a copy for fast lookup. */
export interface AliasStore {
  aliasOf(id: ChatId): Promise<ChatId | null>;
  addAlias(id: ChatId, chatId: ChatId): Promise<void>;
}
