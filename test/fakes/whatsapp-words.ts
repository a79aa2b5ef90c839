/** The words of the fake WhatsApp: what a test says to it, and what it finds in its ledgers. */
import type { proto } from '@whiskeysockets/baileys';

/** A person with a phone. Everybody has both forms of address. */
export interface Peer {
  number: number;
  name: string;
  /** `4917…@s.whatsapp.net` */
  pn: string;
  /** `2000…@lid` */
  lid: string;
}

export interface Group {
  number: number;
  /** `1203…@g.us` */
  id: string;
  subject: string;
  /** Without our own account, which is in it until it is removed. */
  members: Peer[];
  /** Which form of address its members have in it. */
  addressing: 'lid' | 'pn';
}

/** A file of a message. */
export interface Enclosure {
  bytes: Buffer;
  mimeType: string;
  fileName?: string;
  /** Voice notes and films. */
  seconds?: number;
  /** What the message claims instead of the true size. */
  claimedSize?: number;
}

/** One message of a person; where it has a file, the text is what stands below it. */
export interface Saying {
  from: Peer;
  /** In the person's own chat with us if left out. */
  in?: Group;
  text?: string;
  /** Our account (true), or others. */
  mention?: true | Peer[];
  /** The id of a message in the same chat, of anybody. */
  replyTo?: string;
  image?: Enclosure;
  video?: Enclosure;
  voice?: Enclosure;
  document?: Enclosure;
  sticker?: Enclosure;
  location?: { latitude: number; longitude: number; name?: string; address?: string };
  /** Somebody else's words, passed on. */
  forwarded?: true;
  /** The id of the message that this picture or film stands in an album of. */
  album?: string;
  /** The phone alone may open it: other devices hear that there is something. */
  viewOnce?: true;
  /** A content that the library's protocol does not know yet. */
  later?: true;
  /** Any other content, as it is encrypted. */
  content?: proto.IMessage;
  /** When it was sent, ms since 1970; now if left out. */
  at?: number;
  id?: string;
  /** Comes late: marked as one that waited, as what is said while nobody is logged in always is. */
  offline?: boolean;
}

export interface Said {
  id: string;
  from: Peer;
  in: Group | null;
  text: string;
}

/** What a message of ours is made of. */
export type SentKind = 'text' | 'image' | 'video' | 'audio' | 'document' | 'sticker' | 'other';

/** One message of ours, decrypted by those it is for. The same id sent again is the same message. */
export interface SentMessage {
  id: string;
  /** As it was addressed: `…@s.whatsapp.net`, `…@lid` or `…@g.us`. */
  to: string;
  /** The same as whom or what that is; null for the chat with oneself. */
  chat: Peer | Group | null;
  kind: SentKind;
  text: string;
  /** The id of the message it answers. */
  quotedId: string | null;
  mentioned: string[];
  /** Null where there is none, or where the CDN never got it. */
  file: { name: string | null; mimeType: string; bytes: Buffer } | null;
  /** Of a voice note; null for everything else. */
  voiceSeconds: number | null;
  /** When it was first taken, ms. */
  at: number;
  /** How often it was taken; what comes at a peer's request for a retry counts too. */
  times: number;
  /** How often a peer asked for it again. */
  retries: number;
  /** The server's word that it was taken was written to the connection. */
  acked: boolean;
  /** The connection ended between taking it and that word: the sender cannot know that it was taken. */
  cut: boolean;
  /** Its text was changed since, in time. */
  edited: boolean;
  revoked: boolean;
  /** As it came last; a change is a message of its own. */
  content: proto.IMessage;
}

/** What our account told about messages of others. */
export interface Receipt {
  /** `read`, `inactive` or `delivered` (received), `retry` (could not be decrypted), `sender` (of the own phone's). */
  type: string;
  /** The chat. */
  to: string;
  participant: string | null;
  ids: string[];
}

export interface Presence {
  /** A chat, or null: the account's own. */
  to: string | null;
  /** `composing`, `paused`, `available`, `unavailable`. */
  state: string;
  at: number;
}

export interface Reaction {
  to: string;
  /** The message it stands on. */
  on: string;
  /** Empty: taken back. */
  emoji: string;
}

/** An edit of a message of ours that phones have followed. */
export interface Edit {
  /** The message's id. */
  of: string;
  text: string;
  at: number;
}

/** How a connection ends at the server's will. 428 is the plain end of the connection, without a word. */
export type CloseCode = 401 | 403 | 408 | 411 | 428 | 440 | 500 | 503 | 515;

export interface Faults {
  /** Breaks every connection, without a closing handshake. */
  hangUp(): void;
  /** Ends the connection with a stream error of that code (428: without one). */
  closeWith(code: CloseCode): void;
  /** Somebody else logged in with the same device. */
  replaced(): void;
  /** The phone's owner removed the device: it is told so, now or when it comes; only pairing helps. */
  logOut(): void;
  /**
   * The account has to prove a passkey before it links: who scans a code sees "Continue on WhatsApp Web", and the gateway
   * hears nothing; of a code that is typed it hears half (WhiskeySockets/Baileys#2672, #2694).
   */
  askPasskey(on: boolean): void;
  /** The next request for a pairing code is refused, after the library has handed one out (WhiskeySockets/Baileys#2737). */
  refuseCode(code: number): void;
  /** A device that is linked is not let in (WhiskeySockets/Baileys#2381). */
  tooManyDevices(on: boolean): void;
  /** The secret in the QR code that is shown is retired; a browser draws it anew (WhiskeySockets/Baileys#2765). */
  refreshRegistration(qr: string): void;
  /** The minutes are over for which QR codes are shown. */
  codesRunOut(): void;
  /** Versions below 2.3000.<revision> are refused with 405 from now on, before any QR code; sw.js tells that one. */
  retireBelow(revision: number): void;
  /** How sw.js, where the newest version stands, is answered instead. */
  breakLookUp(how: 'stall' | 'garbage' | number | null): void;
  /** The next logins are refused with that reason. */
  refuseLogin(reason: number, times?: number): void;
  /** The next message of a person arrives with a wrong MAC; asked for it again, their phone sends it whole. */
  badMac(peer: Peer): void;
  /** As `badMac`, and whatever is asked for again stays as it is. */
  badMacForever(peer: Peer): void;
  /** The next message is delivered twice, encrypted twice. */
  sameIdTwice(): void;
  /** The next message is delivered twice, byte for byte. */
  sameCiphertextTwice(): void;
  /** The next messages of ours are taken, and the connection breaks instead of the ack. */
  dropAfterTake(times?: number): void;
  /** The connection breaks before the next messages of ours are taken. */
  dropBeforeTake(times?: number): void;
  /** The next messages of ours are refused with that code (463, 479, …): nobody gets them. */
  errorAck(code: number, times?: number): void;
  /**
   * While on, what we send to one person without their token is refused with 463 (WhiskeySockets/Baileys#2441, #2698). Not
   * so in groups and in the chat with ourselves.
   */
  demandTokens(on: boolean): void;
  /**
   * WhatsApp restricts the account until then (ms; null: no more): it may not begin chats, and those that exist go on
   * (WhiskeySockets/Baileys#2442, #2707). The account is told, as `NotificationUserReachoutTimelockUpdate`.
   */
  restrict(until: number | null): void;
  /** While on, messages of ours are taken, and no ack comes; what was held back follows when it ends. */
  stallAcks(on: boolean): void;
  /** A person's phone lost its session with us: what we send next it asks for again. */
  forgetSession(peer: Peer): void;
  /** A person's phone asks for a message of ours again. */
  requestRetry(sentId: string, by?: Peer): void;
  /** No answer to such queries (by `xmlns`, as `w:g2`, `usync`, `encrypt`, `w:m`), for so many of them. */
  stallQuery(xmlns: string, times?: number): void;
  /** Such queries are answered with an error. */
  failQuery(xmlns: string, code: number, times?: number): void;
}

/** What the CDN does to a request instead of serving it: no answer, a status, other bytes, or half of the bytes. */
export type MediaFault = 'stall' | 'garbage' | 'half' | number;

export interface FakeCdn {
  port: number;
  /** The certificate of its authority, PEM. */
  ca: string;
  /** Requests so far, by path without the query. */
  requests: { method: 'GET' | 'POST'; path: string }[];
  /** What happens to the next downloads, or uploads. */
  fail(what: 'download' | 'upload', fault: MediaFault, times?: number): void;
}

export interface FakeWhatsAppOptions {
  /** The phone number whose account it is. */
  ownNumber?: string;
}

export interface FakeWhatsApp {
  /** For `channels.whatsapp.web_socket_url`. */
  url: string;
  own: { number: string; pn: string; lid: string };
  /** What the own phone does with the text of a QR code; then pairing goes through. Refuses a code that is not shown. */
  scan(qr: string): Promise<void>;
  /** What the own phone does with a pairing code: `ABCD-EFGH`. */
  enterCode(code: string): Promise<void>;
  /** A companion is linked; one that is linked after it takes its place. */
  paired(): boolean;
  /** The `ref`s of QR codes that can be scanned now. */
  refs(): string[];
  /** Connections so far. */
  connections(): number;
  /** Logins so far that went through. */
  logins(): number;
  /** How often the newest version was looked up. */
  lookUps(): number;
  /** A gateway is logged in and was given what had waited for it. */
  loggedIn(): boolean;

  /** The same number is the same person; a name given later renames them. */
  peer(number: number, name?: string): Peer;
  /** The same number is the same group; a list of members replaces the one before. */
  group(number: number, about?: { subject?: string; members?: Peer[]; addressing?: 'lid' | 'pn' }): Group;
  /** Their messages come with their `@lid` only, and their number cannot be asked for. */
  hideNumber(peer: Peer): void;
  /** How their direct messages are addressed; `lid` unless set. */
  address(peer: Peer, form: 'lid' | 'pn'): void;

  /** Reaches the gateway at once, or when it next logs in. */
  say(saying: Saying): Said;
  /** Pictures of one album: the message that announces it, then each picture; the first has the words. */
  sayAlbum(album: Omit<Saying, 'image'> & { images: Enclosure[] }): Said[];
  /**
   * By its id; of a message of ours: the owner, on the phone. As phones send it since May 2026, encrypted with the message's own secret; `plain`: as before. `forms`: in
   * which form of address the author and the editor stand in the key; as in the chat unless set.
   */
  edit(said: Pick<Said, 'id'>, text: string, how?: 'plain' | { forms: ['lid' | 'pn', 'lid' | 'pn'] }): void;
  /** An edit as it is sent, with the message's secret, as if that person had written it and edited it now. */
  sealedEdit(said: Pick<Said, 'id'>, text: string, by: Peer): proto.IMessage;
  revoke(said: Pick<Said, 'id'>): void;
  react(peer: Peer, on: Said | SentMessage, emoji: string): void;
  /** What the owner types on the phone itself; `to: 'self'` is the chat with oneself. */
  ownPhoneSays(saying: { to: Peer | Group | 'self' } & Omit<Saying, 'from' | 'in'>): Said;
  /** A person's phone tells us the token without which we may not write to them, as it does when they write to us first. */
  giveToken(peer: Peer): void;
  /** What the own phone sends after linking: its chats, with their last words and the tokens of these people. */
  syncHistory(chats: { with: Peer; text: string; token: boolean }[]): void;
  /** A person opened the chat: a read receipt for a message of ours. */
  read(sent: SentMessage, by?: Peer): void;
  /** A person, or our account if nobody is named, is taken out of a group or into it; our account is told so. */
  removeFromGroup(group: Group, peer?: Peer): void;
  addToGroup(group: Group, peer?: Peer): void;
  /** Messages to us that no receipt came for: what a gateway that comes back is given again. */
  pending(): number;

  /** The ledger of what we sent, in the order it was first taken. */
  sent: SentMessage[];
  sentTo(chat: Peer | Group): SentMessage[];
  receipts: Receipt[];
  presences: Presence[];
  /** Whether people see our account as online, and the owner's phone does not ring. */
  online(): boolean;
  reactions: Reaction[];
  edits: Edit[];
  /** What could not be understood of what we sent; empty in a good run. */
  complaints: string[];
  cdn: FakeCdn;
  /** Sends this process's requests for WhatsApp's media hosts to the CDN, until it is undone. */
  serveMediaHere(): Promise<() => void>;
  /** What a gateway's process needs in its environment for the same. */
  environment: Record<string, string>;
  faults: Faults;

  /** Calls back with every message that is taken from us, and each time a gateway begins to take in, or has taken something. */
  onEvent(listener: (event: 'sent' | 'intake') => void): void;
  /** Resolves as soon as the condition holds; it is looked at after everything that happens. */
  until(condition: () => boolean, what?: string, timeoutMs?: number): Promise<void>;
  /** Goes away: connections are refused until `open`. */
  shut(): Promise<void>;
  open(): Promise<void>;
  close(): Promise<void>;
}
