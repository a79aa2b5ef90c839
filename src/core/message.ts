/** What comes in from a platform, in the form that the channel's `inbound` gives it. */

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
    /** True where the message itself proves it (an anonymous administrator); else the channel must be asked. */
    administrator: boolean;
  };
  /**
   * All that was said; the mention of our own bot may be in it. Empty where only files came. For what is neither words
   * nor a file (a sticker, a place) there is a label in brackets.
   */
  text: string;
  /** Files that came with it; left out where there are none. */
  attachments?: Attachment[];
  /** The platform's time, ms; 0 where it gives none. */
  sentAt: number;
  /** Our account was named by the platform's own mention. */
  mentionsBot: boolean;
  /** Personas whose own account or name on the platform was mentioned, or written to; left out where there is none. */
  addresses?: PersonaId[];
  /**
   * The same for every copy of this message, where several bots of ours receive it under different ids. Left out where
   * the id is enough.
   */
  twin?: string;
  replyTo: ReplyTo | null;
}

export interface InboundChat {
  address: Address;
  kind: 'direct' | 'group';
  /** Another address of the same chat (WhatsApp's other form). Whichever was seen first names the chat for good. */
  otherAddress?: Address;
  /** What the chat is part of (a Discord server): where that is let in, so is the chat. */
  within?: Address;
}

export interface InboundSender {
  address: Address;
  otherAddress?: Address;
  /**
   * The owner of the account that we use, on another device (WhatsApp). They may talk; outside their chat with
   * themselves what they write is noted and never answered.
   */
  self?: true;
  /** A program, not a person: there is a limit to how often it is answered. */
  bot?: true;
}

/** A file as a platform describes it, before it is fetched. */
export interface Attachment {
  /** `voice` was spoken for this chat; `audio` is music or a recording. */
  kind: 'image' | 'voice' | 'audio' | 'video' | 'document';
  /** What the channel needs to fetch it, at any later time, also after a restart. Opaque to everybody else. */
  source: string;
  /** As the sender called it: for showing, never to be used as a path. */
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
  /** Sent by our own account: then replying to it counts as a mention, and addresses the persona that wrote it. */
  ours: boolean;
  /** The persona that wrote it, where the account that sent it shows that. */
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

/** Messages that somebody deleted. One that still waits is not answered; any other stays as it was. */
export interface InboundDeletion {
  kind: 'deleted';
  chat: InboundChat;
  /** Who deleted them, where only their author may; left out where the platform has checked it. */
  sender?: InboundSender;
  platformMessageIds: string[];
}

/** A person reacted to a message. To one of ours it is noted, and never answered; to any other it is passed over. */
export interface InboundReaction {
  kind: 'reaction';
  chat: InboundChat;
  /** `name` is null where the platform does not give it. */
  sender: InboundSender & { name: string | null };
  /** The message's id; several where it may be known by one of several. */
  platformMessageIds: string[];
  /** The emoji as people see it, or `:its name:`. */
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

/** What the platform gave at once. Stored with its cursor in one transaction. */
export interface InboundBatch {
  channel: string;
  /** Which account of the platform received it; messages are unique per account. */
  account: string;
  events: InboundEvent[];
  /** Where to go on after a restart (Telegram's next offset); opaque to the store. */
  cursor?: string;
  /** Whose cursor it is, if not the account's: each of several bots of one account has its own. */
  cursorFor?: string;
  /** It came in while the channel was away, so it has waited since it was sent. */
  piledUp?: boolean;
}
