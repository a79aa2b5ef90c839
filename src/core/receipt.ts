/** Step 1 of the route: events accepted from platforms and from inside the gateway, as stored, and commands. */
import type { ChoiceOutcome } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Address, InboundDeletion, InboundEdit, InboundMessage, InboundReaction } from './message.js';

/** A command as received: never in the transcript, never sent to a model. */
export interface NewCommand {
  name: string;
  /** The text after the name, trimmed. */
  argument: string;
}

export interface StoredCommand extends NewCommand {
  id: number;
  room: RoomId;
  chat: ChatRecord;
  sender: { id: ChatId; name: string; administrator: boolean };
  platformMessageId: string;
  /** The persona whose own account received it. Absent: the active persona. */
  persona?: PersonaId;
  /** Messages up to this id (inclusive) came before it. */
  afterMessage: number;
  /** Attempts including this one. Above 1, its effects on files may exist already. */
  tries: number;
  /** Process crashes while it ran. */
  crashes: number;
}

/** The sender, by our own id, and the platform's message. */
interface ReceiptSource {
  platformMessageId: string;
  /** As in `InboundMessage`. */
  dedupeKey?: string;
  sender: { id: ChatId; name: string; administrator: boolean; bot?: true };
}

/** Place and sender, by our own ids. */
export interface ReceiptOrigin extends ReceiptSource {
  chat: Omit<ChatRecord, 'activePersona' | 'invited' | 'away' | 'channel' | 'account'>;
  threadId: string | null;
}

/** Ends the pending question, and the offers with these keys. */
interface Ends {
  endsQuestion?: number;
  endsOffers?: string[];
}

export type Receipt =
  | (Omit<InboundMessage, 'chat' | 'sender'> &
      ReceiptOrigin &
      Ends & {
        /** When it began to wait. Absent: now. */
        receivedAt?: number;
        /** The sender's own words, if `text` also describes files. */
        words?: string;
        /** Heard, but never answered. */
        quiet?: true;
        /** Untrusted: from a stranger, or forwarded. */
        tainted?: true;
      })
  | (ReceiptOrigin &
      Ends & {
        kind: 'command';
        command: NewCommand;
        /** The persona whose own account received it. Absent: the active persona. */
        persona?: PersonaId;
        /** The question that it answers with yes; ignored if the question has ended. */
        answers?: number;
      })
  | ({
      /**
       * A chosen option of an offer. Ends the offer and the question that asks the same, and runs the option's command
       * as if this person had typed it, once per platform id.
       */
      kind: 'choice';
      chat: { id: ChatId; address: Address };
      /** `Choice.value` */
      value: string;
      /** As in `Ends`. */
      endsQuestion?: number;
    } & ReceiptSource)
  | {
      /**
       * An event from inside the gateway: a schedule that fired, a digest. Becomes a message of the room, once per id,
       * and is answered like any other. Ignored if the chat is unknown.
       */
      kind: 'event';
      id: string;
      room: RoomId;
      /** Its type: `schedule`, `digest`, `task_completed`. */
      about: string;
      text: string;
      /** The addressed persona; null: the active one. */
      personaId: PersonaId | null;
      at: number;
      /** Its content in the journal. Absent: the text. */
      content?: Record<string, unknown>;
      /** The journal entry of the call whose outcome this is. Absent: none. */
      actionId?: string;
      /** Contains untrusted text. */
      tainted?: true;
    }
  | {
      /** The result for a suspended turn, once per key. The turn resumes, now or as soon as it is suspended. */
      kind: 'resume';
      waitsFor: string;
      content: string;
      failed: boolean;
      /** The wait timed out; ignored if nothing waits any more. Absent: a result. */
      isTimeout?: true;
    }
  /** Edits by anybody but the author are ignored. */
  | (Omit<InboundEdit, 'chat' | 'sender'> & { chatId: ChatId; senderId: ChatId; words?: string })
  /** Only messages by this person. */
  | (Omit<InboundDeletion, 'chat' | 'sender'> & { chatId: ChatId; senderId?: ChatId })
  /** Becomes a quiet message in the room of the persona's message it reacts to; ignored if there is none. */
  | (Omit<InboundReaction, 'chat' | 'sender'> & {
      chatId: ChatId;
      sender: { id: ChatId; name: string | null };
      /** From a stranger, whose name is shown with it. */
      tainted?: true;
    })
  | { kind: 'moved'; chatId: ChatId; address: Address }
  /** Closes a room: every persona forgets it, and nothing in it waits any more. Ignored if unknown. */
  | { kind: 'apart'; room: RoomId };

export interface PendingCommand {
  id: number;
  room: RoomId;
}

export interface Received {
  /** Rooms with waiting messages, without duplicates. */
  rooms: RoomId[];
  commands: PendingCommand[];
  /** Number of new messages, and of duplicate messages and commands. */
  messages: number;
  duplicates: number;
  /** Outcome of each choice, by its platform id. Absent if there was none. */
  choices?: ReadonlyMap<string, ChoiceOutcome>;
}

export type ReceiptOf<Kind extends Receipt['kind']> = Extract<Receipt, { kind: Kind }>;
