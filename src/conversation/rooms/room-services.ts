/** What a run of a room may use beyond the services of every step, and the turn that it works on (steps 3 to 6). */
import type { Channel } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import type { ChatId, RoomId } from '../../core/ids.js';
import type { Persona } from '../../core/persona.js';
import type { Claim, StoredTurn } from '../../core/route-store.js';
import type { Exchange, StoredMessage } from '../../core/transcript.js';
import type { WindowCache } from '../context/window.js';
import type { Services } from '../services.js';

export interface RoomServices extends Services {
  windowCache: WindowCache;
}

/** A turn that was begun or resumed. */
export interface Turn {
  chat: ChatRecord;
  room: RoomId;
  channel: Channel;
  /** The room's revision when the turn began; decides whether a cached window is still valid. */
  revision: number;
  claim: Claim;
  /** The chat's personas, as read when the turn was begun or resumed. */
  personas: Persona[];
  turn: StoredTurn;
  /** The messages it answers, oldest first. */
  batch: StoredMessage[];
  /** Who set the schedules that it answers, if nobody has said anything: what it uses is laid to them. null: nobody. */
  scheduledBy: ChatId | null;
  /** How many waiting messages it took or noted; an exchange also answers earlier ones. */
  settled: number;
  /** The exchange between personas that continues after this turn; null for none. */
  exchange: Exchange | null;
}
