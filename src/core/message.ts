/** What comes in from a platform, after the channel's `inbound` has put it into our words. */

import type { PersonaId } from './ids.js';

/** An address is the platform's own id for a chat or a person, as the channel wants it back when sending. */
export type Address = string;

export interface InboundMessage {
  kind: 'message';
  chat: InboundChat & { title: string };
  /** Topic or thread; null for the chat itself. */
  threadId: string | null;
  platformMessageId: string;
  sender: InboundSender & {
    name: string;
    /** True where the message itself proves it (an anonymous administrator); else ask the channel. */
    administrator: boolean;
  };
  /**
   * Never trimmed of what was said; the mention of our own bot may stand in it. Empty where only files came.
   * What is neither words nor a file (a sticker, a place) is told in words, in brackets.
   */
  text: string;
  /** Files that came with it; left out where there are none. */
  attachments?: Attachment[];
  /** The platform's time, ms; 0 where it tells none. */
  sentAt: number;
  /** Our account was named by the platform's own mention. */
  mentionsBot: boolean;
  /** Personas whose own account or name on the platform was mentioned, or written to; left out where there is none. */
  addresses?: PersonaId[];
  /**
   * The same for every copy of this message that reaches us, where several accounts of ours hear it under ids that
   * differ. Left out where the id is enough.
   */
  twin?: string;
  replyTo: ReplyTo | null;
}

export interface InboundChat {
  address: Address;
  kind: 'direct' | 'group';
  /** Another address of the same chat (WhatsApp's other form). Whichever was seen first names the chat for good. */
  otherAddress?: Address;
  /** What the chat is part of and may be let in with (a Discord guild). */
  within?: Address;
}

export interface InboundSender {
  address: Address;
  otherAddress?: Address;
  /**
   * Whose account it is that we use, on another device (WhatsApp). They may talk; outside their chat with
   * themselves what they write is heard and never answered.
   */
  self?: true;
  /** A program, not a person: it is not answered for ever. */
  bot?: true;
}

/** A file as a platform tells of it, before anybody has fetched it. */
export interface Attachment {
  /** `voice` was spoken for this chat; `audio` is music or a recording. */
  kind: 'image' | 'voice' | 'audio' | 'video' | 'document';
  /** What the channel needs to fetch it, at any later time, also after a restart. Opaque to everybody else. */
  source: string;
  /** As the sender called it: to be shown, never to be a path. */
  name: string | null;
  mimeType: string | null;
  /** As the platform says; null where it does not. */
  bytes: number | null;
  seconds: number | null;
}

/** The message that this one answers. */
export interface ReplyTo {
  platformMessageId: string;
  senderName: string;
  text: string;
  /** Sent by our own account: then it counts as a mention, and addresses the persona that wrote it. */
  ours: boolean;
  /** Which persona's it is, where the account that sent it tells. */
  personaId?: PersonaId;
}

/** A person changed a message. Unknown ids are ignored. */
export interface InboundEdit {
  kind: 'edit';
  chat: InboundChat;
  sender: InboundSender;
  platformMessageId: string;
  /** All of it as it is now, in the form of `InboundMessage.text`. */
  text: string;
  /** All files it has now. */
  attachments?: Attachment[];
  mentionsBot: boolean;
  editedAt: number;
}

/** Messages that somebody took back. One that waits is not answered; any other stays as it was. */
export interface InboundDeletion {
  kind: 'deleted';
  chat: InboundChat;
  /** Who took them back, where only their author may; left out where the platform has seen to it. */
  sender?: InboundSender;
  platformMessageIds: string[];
}

/** A person put a sign to a message. To one of ours it is heard, and never answered; to any other it is nothing. */
export interface InboundReaction {
  kind: 'reaction';
  chat: InboundChat;
  /** `name` is null where the platform does not tell it. */
  sender: InboundSender & { name: string | null };
  /** Of the message that has it now; several where what sent it may be known by several ids. */
  platformMessageIds: string[];
  /** As people see it: an emoji, or `:its name:`. */
  sign: string;
  /** The platform's time, ms; 0 where it tells none. */
  sentAt: number;
}

/** The platform moved a chat to another id (Telegram's `migrate_to_chat_id`). */
export interface InboundMove {
  kind: 'moved';
  from: Address;
  to: Address;
}

export type InboundEvent = InboundMessage | InboundEdit | InboundDeletion | InboundReaction | InboundMove;

/** What the platform gave in one go. With the cursor it becomes one transaction. */
export interface InboundBatch {
  channel: string;
  /** Which account of the platform received it; messages are unique per account. */
  account: string;
  events: InboundEvent[];
  /** Where to go on after a restart (Telegram's next offset); opaque to the store. */
  cursor?: string;
  /** Whose cursor it is, if not the account's: each of several faces of one account has its own. */
  cursorFor?: string;
  /** What piled up while the channel was away: then it has waited since it was sent. */
  piledUp?: boolean;
}
