/** What a run of a room may use beside the services of every step, and the turn it does. */
import type { Channel } from '../../core/channel.js';
import type { Exchange } from '../../core/exchange.js';
import type { RoomId } from '../../core/ids.js';
import type { Persona } from '../../core/persona.js';
import type { ChatRecord, Claim, StoredTurn } from '../../core/store.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Windows } from '../compaction/windows.js';
import type { WindowCopies } from '../context/window.js';
import type { Deliver } from '../deliver/deliver.js';
import type { Services } from '../services.js';
import type { Arbiter } from './arbiter.js';

export interface RoomServices extends Services {
  deliver: Deliver;
  windows: Windows;
  windowCopies: WindowCopies;
  /** Says who answers where nobody was named; null where the configuration asks for none. */
  arbiter: Arbiter | null;
}

/** A turn that has begun, or goes on. */
export interface Turn {
  chat: ChatRecord;
  room: RoomId;
  channel: Channel;
  /** As the room was seen when the turn began: which copy of a window is good. */
  revision: number;
  claim: Claim;
  /** Of the chat, as read when the turn began or went on. */
  personas: Persona[];
  turn: StoredTurn;
  /** What it answers, oldest first. */
  batch: StoredMessage[];
  /** How many messages were noted beside it. */
  noted: number;
  /** What goes on between personas behind it; null for nothing. */
  exchange: Exchange | null;
}
