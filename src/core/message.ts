/** Inbound events of a platform, as produced by a channel's `inbound` (step 1 of the route). */

import type { PersonaId } from './ids.js';

/** The platform's own id of a chat or person, as needed for sending. */
export type Address = string;

export interface InboundMessage {
  kind: 'message';
  chat: InboundChat & { title: string };
  /** Topic or thread; null for the main chat. */
  threadId: string | null;
  platformMessageId: string;
  sender: InboundSender & {
    name: string;
    /** True if the message itself proves it (an anonymous administrator); otherwise ask the channel. */
    administrator: boolean;
  };
  /**
   * The full text, possibly with the mention of our bot; empty for files alone. Other content (a sticker, a location)
   * is a label in brackets.
   */
  text: string;
  attachments?: Attachment[];
  /** Platform time, ms; 0 if unknown. */
  sentAt: number;
  /** Names of mentioned people as they appear in `text`, if they could be mistaken for an address. */
  mentions?: string[];
  /** Mentioned by the platform's own mention. */
  mentionsBot: boolean;
  /**
   * Personas whose own account or platform name was mentioned or written to. Empty: personas have accounts, but the one
   * that belongs to no persona was called, so names in the text address nobody.
   */
  addresses?: PersonaId[];
  /** Dedupe key: the same for copies that several of our bots receive under different ids. Absent: the message id. */
  dedupeKey?: string;
  replyTo: ReplyTo | null;
  /** Author of a forward or of content made by a program; '' if unknown. Never a command or an answer. */
  forwardedFrom?: string;
  /** Shared by all items of an album, which the platform delivers one by one. */
  album?: string;
}

export interface InboundChat {
  address: Address;
  kind: 'direct' | 'group';
  /** Another address of this chat (WhatsApp). The address seen first determines the chat's id. */
  otherAddress?: Address;
  /** The parent chat (a Discord server). Admitting the parent admits this chat. */
  within?: Address;
}

export interface InboundSender {
  address: Address;
  otherAddress?: Address;
  /**
   * The owner of our account, on another device (WhatsApp). Admitted; outside the chat with themselves their messages
   * are noted, never answered.
   */
  self?: true;
  /** A bot; answers to bots are limited. */
  bot?: true;
}

/** A file as described by the platform, before it is fetched. */
export interface Attachment {
  /** `voice`: recorded for this chat; `audio`: music or a recording. */
  kind: 'image' | 'voice' | 'audio' | 'video' | 'document';
  /** Opaque; lets the channel fetch the file at any later time, even after a restart. */
  source: string;
  /** The sender's file name: for display only, never a path. */
  name: string | null;
  mimeType: string | null;
  /** As claimed by the platform; null if unknown. */
  bytes: number | null;
  seconds: number | null;
  /** Belongs to the message that this one replies to. */
  ofReply?: true;
  /** Claimed only by the sender's client, as in `ReplyTo`. */
  told?: true;
}

export interface ReplyTo {
  platformMessageId: string;
  senderName: string;
  text: string;
  /** As in `InboundMessage`. */
  forwardedFrom?: string;
  /** Text and author come from the sender's client; trusted only if we know the message. Absent: from the platform. */
  told?: true;
  /** In another chat, so nobody said it in this one. */
  elsewhere?: true;
  /** Sent by our account: replying counts as a mention and addresses the persona that wrote it. */
  ours: boolean;
  /** The persona that wrote it, if the sending account reveals it. */
  personaId?: PersonaId;
}

/** A person edited a message. Unknown ids are ignored. */
export interface InboundEdit {
  kind: 'edit';
  chat: InboundChat;
  sender: InboundSender;
  platformMessageId: string;
  /** The complete new text, as in `InboundMessage.text`. */
  text: string;
  /** All current files. */
  attachments?: Attachment[];
  /** As in `InboundMessage`. */
  mentions?: string[];
  mentionsBot: boolean;
  editedAt: number;
}

/** Deleted messages. Waiting ones are not answered; others are not affected. */
export interface InboundDeletion {
  kind: 'deleted';
  chat: InboundChat;
  /** The person who deleted them, if only the author may. Absent: the platform has checked it. */
  sender?: InboundSender;
  platformMessageIds: string[];
}

/** A reaction. Reactions to our messages are noted, never answered; others are ignored. */
export interface InboundReaction {
  kind: 'reaction';
  chat: InboundChat;
  /** `name`: null if unknown. */
  sender: InboundSender & { name: string | null };
  /** The message's id, or several possible ones. */
  platformMessageIds: string[];
  /** The emoji, or `:its name:`. */
  sign: string;
  /** Platform time, ms; 0 if unknown. */
  sentAt: number;
}

export interface InboundChoice {
  kind: 'choice';
  chat: InboundChat;
  /** As in `InboundMessage`. */
  threadId: string | null;
  sender: InboundSender & { name: string; administrator: boolean };
  /** The id of the press; the platform may deliver it twice. */
  platformMessageId: string;
  /** `Choice.value`. */
  value: string;
  /** Platform time, ms; 0 if unknown. */
  sentAt: number;
}

/** The platform moved a chat to another id (Telegram's `migrate_to_chat_id`). */
export interface InboundMove {
  kind: 'moved';
  from: Address;
  to: Address;
}

/** A thread has other members than its chat, so it becomes its own chat. The old chat no longer shows its messages. */
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

/** One delivery of the platform, stored with its cursor in one transaction. */
export interface InboundBatch {
  channel: string;
  /** The receiving account; message ids are unique per account. */
  account: string;
  events: InboundEvent[];
  /** Where to resume after a restart (Telegram's offset). Opaque to the store. */
  cursor?: string;
  /** Owner of the cursor, when several bots share the account. Absent: the account. */
  cursorFor?: string;
  /** Platform ids that were skipped because the process crashed each time it read them. */
  passedOver?: string;
  /** Arrived while the channel was away; its waiting time counts from when it was sent. */
  piledUp?: boolean;
}
