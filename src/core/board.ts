/** Ports of the board: what its page reads, and its own chat. The route of a message knows nothing of them. */
import type { ChatId } from './ids.js';

/** The chat of the page begins as this one; others are `board_<slug>`. */
export const BOARD = 'board';
export const BOARD_MAIN: ChatId = 'board_main';
/** The sender of everything that comes from the page: an owner. */
export const BOARD_OWNER: ChatId = 'board_owner';

/** The channel of the page, as its server sees it. */
export interface Desk {
  /**
   * Takes what was typed, once per `id`; it is on disk when this resolves. A message to a chat that does not exist yet
   * creates it. Throws Fault `store_unavailable`; `closed` while the gateway stops.
   */
  take(message: {
    chatId: ChatId;
    /** Made by the page: letters, digits and `-`, at most 64. */
    id: string;
    text: string;
    files: readonly UploadedFile[];
  }): Promise<'taken' | 'closed'>;
  /** Keeps the bytes until a message names them, or for a day. */
  keep(upload: { name: string; type: string; bytes: Buffer }): Promise<UploadedFile>;
  /** Presses a button below a message, once per `id`. One that is not offered any more does nothing. */
  press(choice: { chatId: ChatId; id: string; value: string }): Promise<'taken' | 'closed'>;
  /** Called at most once a frame, after something was shown, changed or sent in these chats. */
  watch(changed: (chats: ReadonlySet<ChatId>) => void): () => void;
}

export interface UploadedFile {
  /** Made here, unguessable; never a path. */
  id: string;
  name: string;
  type: string;
  bytes: number;
}
