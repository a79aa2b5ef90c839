/** Inbound events of a platform, in the form that a channel's `inbound` produces (step 1 of the route). */

import type { PersonaId } from './ids.js';

/** The platform's own id of a chat or a person, as the channel needs it for sending. */
export type Address = string;

export interface InboundMessage {
  kind: 'message';
  chat: InboundChat & { title: string };
  /** Topic or thread; null for the main chat. */
  threadId: string | null;
  platformMessageId: string;
  sender: InboundSender & {
    name: string;
    /** True if the message itself proves it (an anonymous administrator); otherwise the channel must be asked. */
    administrator: boolean;
  };
  /**
   * The full text; it may include the mention of our bot. Empty if there were only files. Content that is neither text
   * nor a file (a sticker, a location) is a label in brackets.
   */
  text: string;
  /** Left out if there are none. */
  attachments?: Attachment[];
  /** The platform's time, ms; 0 if it gives none. */
  sentAt: number;
  /** Names of those who are mentioned, as they stand in `text`, as far as they could be taken for an address. Left out if there are none. */
  mentions?: string[];
  /** Our account was mentioned with the platform's own mention. */
  mentionsBot: boolean;
  /**
   * Personas whose own account or platform name was mentioned or written to; left out if there are none. Empty if personas
   * have accounts of their own and the one that is no persona's was called instead: who is talked about is not meant then.
   */
  addresses?: PersonaId[];
  /**
   * The same for every copy of this message when several of our bots receive it under different ids. Left out if the
   * message id suffices.
   */
  dedupeKey?: string;
  replyTo: ReplyTo | null;
  /**
   * Set for a forward, and for what a program made that somebody sends: whose words `text` holds, '' where the platform
   * does not say. Never a command or an answer.
   */
  forwardedFrom?: string;
  /** The same for all items of an album, which the platform delivers one by one. Left out if it is none. */
  album?: string;
}

export interface InboundChat {
  address: Address;
  kind: 'direct' | 'group';
  /** Another address of the same chat (WhatsApp's other form). The chat keeps the id of whichever was seen first. */
  otherAddress?: Address;
  /** The parent of the chat (a Discord server): if that is admitted, so is the chat. */
  within?: Address;
}

export interface InboundSender {
  address: Address;
  otherAddress?: Address;
  /**
   * The owner of the account we use, on another device (WhatsApp). They may talk; outside the chat with themselves,
   * their messages are noted and never answered.
   */
  self?: true;
  /** A bot: there is a limit to how often it is answered. */
  bot?: true;
}

/** A file as a platform describes it, before it is fetched. */
export interface Attachment {
  /** `voice` was spoken for this chat; `audio` is music or a recording. */
  kind: 'image' | 'voice' | 'audio' | 'video' | 'document';
  /** What the channel needs to fetch it at any later time, even after a restart. Opaque to everybody else. */
  source: string;
  /** The sender's name for it: for display only, never used as a path. */
  name: string | null;
  mimeType: string | null;
  /** As the platform states; null if it does not. */
  bytes: number | null;
  seconds: number | null;
  /** It belongs to the message that this one replies to. */
  ofReply?: true;
  /** So only the sender's client says, as in `ReplyTo`. */
  told?: true;
}

/** The message that this one replies to. */
export interface ReplyTo {
  platformMessageId: string;
  senderName: string;
  text: string;
  /** As in `InboundMessage`. */
  forwardedFrom?: string;
  /**
   * Only the sender's client says what that message says and by whom: it is believed where the message is known here.
   * Left out: the platform says it.
   */
  told?: true;
  /** It stands in another chat, so nobody in this one has said it. */
  elsewhere?: true;
  /** Sent by our own account: a reply to it counts as a mention and addresses the persona that wrote it. */
  ours: boolean;
  /** The persona that wrote it, if the sending account reveals that. */
  personaId?: PersonaId;
}

/** A person edited a message. Unknown ids are ignored. */
export interface InboundEdit {
  kind: 'edit';
  chat: InboundChat;
  sender: InboundSender;
  platformMessageId: string;
  /** The complete new text, in the form of `InboundMessage.text`. */
  text: string;
  /** All files that it has now. */
  attachments?: Attachment[];
  /** As in `InboundMessage`. */
  mentions?: string[];
  mentionsBot: boolean;
  editedAt: number;
}

/** Messages were deleted. One that is still waiting is not answered; others are not affected. */
export interface InboundDeletion {
  kind: 'deleted';
  chat: InboundChat;
  /** Who deleted them, if only the author may; left out when the platform has checked it. */
  sender?: InboundSender;
  platformMessageIds: string[];
}

/** A person reacted to a message. A reaction to one of our messages is noted and never answered; others are ignored. */
export interface InboundReaction {
  kind: 'reaction';
  chat: InboundChat;
  /** `name` is null if the platform does not give it. */
  sender: InboundSender & { name: string | null };
  /** The message's id; several if it may be known under one of several. */
  platformMessageIds: string[];
  /** The emoji as shown, or `:its name:`. */
  sign: string;
  /** The platform's time, ms; 0 if it gives none. */
  sentAt: number;
}

/** A person pressed a button that came with one of our messages. */
export interface InboundChoice {
  kind: 'choice';
  chat: InboundChat;
  /** As in `InboundMessage`. */
  threadId: string | null;
  sender: InboundSender & { name: string; administrator: boolean };
  /** The id of the press itself, under which the platform may deliver it again. */
  platformMessageId: string;
  /** `Choice.value` of the button. */
  value: string;
  /** The platform's time, ms; 0 if it gives none. */
  sentAt: number;
}

/** The platform moved a chat to another id (Telegram's `migrate_to_chat_id`). */
export interface InboundMove {
  kind: 'moved';
  from: Address;
  to: Address;
}

/**
 * A thread turned out to have other members than its chat, so that it is a chat of its own; what is stored of it as a
 * thread is not to be seen in the chat.
 */
export interface InboundApart {
  kind: 'apart';
  /** The chat that it counted to. */
  from: Address;
  threadId: string;
  /** The chat that it is. */
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

/** What the platform delivered at once. Stored in one transaction, together with its cursor. */
export interface InboundBatch {
  channel: string;
  /** The receiving account of the platform; message ids are unique per account. */
  account: string;
  events: InboundEvent[];
  /** Where to continue after a restart (Telegram's next offset); opaque to the store. */
  cursor?: string;
  /** The owner of the cursor, if not the account: with several bots in one account, each has its own. */
  cursorFor?: string;
  /** What was left out of it because the process ended each time it was read: the platform's id. */
  passedOver?: string;
  /** It arrived while the channel was away, so its waiting time counts from when it was sent. */
  piledUp?: boolean;
}
