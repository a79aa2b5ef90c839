import type { PersonaId } from './ids.js';

/** The platform's own id of a chat or person. */
export type Address = string;

export interface InboundMessage {
  kind: 'message';
  chat: InboundChat & { title: string };
  /** null for the main chat. */
  threadId: string | null;
  platformMessageId: string;
  sender: InboundSender & {
    name: string;
    /** Proved by the message itself (an anonymous administrator); otherwise ask the channel. */
    administrator: boolean;
  };
  /** Empty for files alone. Other content (a sticker, a location) is a label in brackets. */
  text: string;
  attachments?: Attachment[] | undefined;
  /** ms; 0 if unknown. */
  sentAt: number;
  /** As they appear in `text`, if they could be mistaken for an address. */
  mentions?: string[] | undefined;
  mentionsBot: boolean;
  /**
   * By their own account or platform name. Empty: the account that belongs to no persona was called, so names in the
   * text address nobody.
   */
  addresses?: PersonaId[] | undefined;
  /** The same for copies that several of our bots receive. Absent: the message id. */
  dedupeKey?: string | undefined;
  replyTo: ReplyTo | null;
  /** '' if unknown; also of content made by a program. Never a command or an answer. */
  forwardedFrom?: string | undefined;
  album?: string | undefined;
}

export interface InboundChat {
  address: Address;
  kind: 'direct' | 'group';
  /** WhatsApp. The address seen first determines the chat's id. */
  otherAddress?: Address;
  /** A Discord server. Admitting the parent admits this chat. */
  within?: Address;
}

export interface InboundSender {
  address: Address;
  otherAddress?: Address;
  /** The owner of our account, on another device (WhatsApp). Answered only in the chat with themselves. */
  self?: true;
  bot?: true;
}

/** As described by the platform, before it is fetched. */
export interface Attachment {
  /** `voice`: recorded for this chat; `audio`: music or a recording. */
  kind: 'image' | 'voice' | 'audio' | 'video' | 'document';
  /** Opaque; fetches the file at any later time. */
  source: string;
  /** For display only, never a path. */
  name: string | null;
  mimeType: string | null;
  /** As claimed by the platform. */
  bytes: number | null;
  seconds: number | null;
  /** Of the message that this one replies to. */
  ofReply?: true;
  /** As in `ReplyTo`. */
  told?: true;
}

export interface ReplyTo {
  platformMessageId: string;
  senderName: string;
  text: string;
  forwardedFrom?: string | undefined;
  /** By the sender's client; trusted only if we know the message. */
  told?: true;
  /** In another chat. */
  elsewhere?: true;
  /** By our account: counts as a mention and addresses the persona that wrote it. */
  ours: boolean;
  /** If the sending account reveals it. */
  personaId?: PersonaId | undefined;
}

/** Unknown ids are ignored. */
export interface InboundEdit {
  kind: 'edit';
  chat: InboundChat;
  sender: InboundSender;
  platformMessageId: string;
  text: string;
  attachments?: Attachment[] | undefined;
  mentions?: string[] | undefined;
  mentionsBot: boolean;
  editedAt: number;
}

/** Waiting ones are not answered; others are not affected. */
export interface InboundDeletion {
  kind: 'deleted';
  chat: InboundChat;
  /** If only the author may delete. Absent: the platform has checked it. */
  sender?: InboundSender;
  platformMessageIds: string[];
}

/** To our messages: noted, never answered; others are ignored. */
export interface InboundReaction {
  kind: 'reaction';
  chat: InboundChat;
  sender: InboundSender & { name: string | null };
  /** Several if the platform leaves it open. */
  platformMessageIds: string[];
  sign: string;
  sentAt: number;
}

export interface InboundChoice {
  kind: 'choice';
  chat: InboundChat;
  threadId: string | null;
  sender: InboundSender & { name: string; administrator: boolean };
  /** Of the press; may come twice. */
  platformMessageId: string;
  value: string;
  sentAt: number;
}

/** The platform moved a chat to another id (Telegram's `migrate_to_chat_id`). */
interface InboundMove {
  kind: 'moved';
  from: Address;
  to: Address;
}

/** A thread with other members than its chat becomes its own chat. */
export interface InboundApart {
  kind: 'apart';
  from: Address;
  threadId: string;
  to: Address;
}

export type InboundEvent =
  | InboundMessage
  | InboundEdit
  | InboundDeletion
  | InboundReaction
  | InboundChoice
  | InboundMove
  | InboundApart;

/** Stored with its cursor in one transaction. */
export interface InboundBatch {
  channel: string;
  /** Message ids are unique per account. */
  account: string;
  events: InboundEvent[];
  /** Where to resume after a restart. Opaque to the store. */
  cursor?: string;
  /** When several bots share the account. */
  cursorFor?: string;
  /** Skipped because the process crashed each time it read them. */
  passedOver?: string;
  /** Its waiting time counts from when it was sent. */
  piledUp?: boolean;
}
