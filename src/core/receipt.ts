/** Step 1 of the route: what is accepted from platforms and from inside, as the store takes it in, and commands. */
import type { ChoiceOutcome } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Address, InboundDeletion, InboundEdit, InboundMessage, InboundReaction } from './message.js';

/** A command as received: never part of the transcript, never sent to a model. */
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
  /** The persona whose own account it was sent to; left out: the active persona. */
  persona?: PersonaId;
  /** Messages up to and including this id came before it. */
  afterMessage: number;
  /** Attempts including this one: above 1, its effects on files may exist already. */
  tries: number;
  /** Crashes of the process while it ran. */
  crashes: number;
}

/** Where and by whom something was said, by our own ids. */
export interface ReceiptOrigin {
  chat: Omit<ChatRecord, 'activePersona' | 'invited' | 'away' | 'channel' | 'account'>;
  threadId: string | null;
  platformMessageId: string;
  /** As in `InboundMessage`. */
  dedupeKey?: string;
  sender: { id: ChatId; name: string; administrator: boolean; bot?: true };
}

/** What a message or a command ends: the pending question, and the offers with these keys. */
interface Ends {
  endsQuestion?: number;
  endsOffers?: string[];
}

/** One accepted event, decided and parsed in step 1. */
export type Receipt =
  | (Omit<InboundMessage, 'chat' | 'sender'> &
      ReceiptOrigin &
      Ends & {
        /** Since when it has been waiting, if not since now. */
        receivedAt?: number;
        /** What the sender wrote, where `text` also describes the files. */
        words?: string;
        /** Heard, but never answered. */
        quiet?: true;
        /** Words from outside: of a stranger, or forwarded. */
        tainted?: true;
      })
  | (ReceiptOrigin &
      Ends & {
        kind: 'command';
        command: NewCommand;
        /** The persona whose own account it was sent to; left out: the active persona. */
        persona?: PersonaId;
        /** The question that it says yes to; ignored if that question has ended. */
        answers?: number;
      })
  | ({
      /**
       * One of the options of an offer was chosen: the offer ends, with the question that asks the same, and the option's
       * command is run as if this person had typed it, once per platform id.
       */
      kind: 'choice';
      chat: Pick<ReceiptOrigin['chat'], 'id' | 'address'>;
      /** `Choice.value` */
      value: string;
      /** As above. */
      endsQuestion?: number;
    } & Pick<ReceiptOrigin, 'sender' | 'platformMessageId' | 'dedupeKey'>)
  | {
      /**
       * An event from inside the gateway: a schedule that fired, a digest. It becomes a message of the room, once per
       * id, and is answered like any other. Ignored if the chat is unknown.
       */
      kind: 'event';
      id: string;
      room: RoomId;
      /** Its type: `schedule`, `digest`, `task_completed`. */
      about: string;
      text: string;
      /** The persona it is for; null: the active one. */
      personaId: PersonaId | null;
      at: number;
      /** What the journal says of it; left out: the text. */
      content?: Record<string, unknown>;
      /** The journal's entry of the call whose outcome it is; left out: of none. */
      actionId?: string;
      /** Words from outside stand in it; left out: none do. */
      tainted?: true;
    }
  | {
      /**
       * The result that a suspended turn waits for, once per key. The turn resumes; if it is not suspended yet, it
       * resumes as soon as it is.
       */
      kind: 'resume';
      waitsFor: string;
      content: string;
      failed: boolean;
      /** The waiting is over for its time: nothing, where none waits any more. Left out: a result. */
      isTimeout?: true;
    }
  /** Only the author can change a message. */
  | (Omit<InboundEdit, 'chat' | 'sender'> & { chatId: ChatId; senderId: ChatId; words?: string })
  /** `senderId`: only messages by this person. */
  | (Omit<InboundDeletion, 'chat' | 'sender'> & { chatId: ChatId; senderId?: ChatId })
  /** Becomes a quiet message in the room of the persona's message that it is about; ignored if there is none. */
  | (Omit<InboundReaction, 'chat' | 'sender'> & {
      chatId: ChatId;
      sender: { id: ChatId; name: string | null };
      /** Of a stranger, whose name is shown with it. */
      tainted?: true;
    })
  | { kind: 'moved'; chatId: ChatId; address: Address }
  /** The room is closed: every persona forgets it, and nothing in it waits any more. Ignored if it is unknown. */
  | { kind: 'apart'; room: RoomId };

/** A command waiting to run: its id and its room. */
export interface PendingCommand {
  id: number;
  room: RoomId;
}

export interface Received {
  /** Rooms with waiting messages, each once. */
  rooms: RoomId[];
  /** The new commands, in order. */
  commands: PendingCommand[];
  /** The number of new messages, and of messages or commands that were duplicates. */
  messages: number;
  duplicates: number;
  /** What became of each choice, by its platform id; left out if there was none. */
  choices?: ReadonlyMap<string, ChoiceOutcome>;
}

/** Those of a kind. */
export type ReceiptOf<Kind extends Receipt['kind']> = Extract<Receipt, { kind: Kind }>;
