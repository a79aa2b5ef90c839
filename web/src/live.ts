/**
 * The live line to the gateway: one WebSocket a tab. It is made anew after a pause when it breaks, and goes on where each
 * followed conversation was; news of one frame are handed out together.
 */
import { batch, signal } from '@preact/signals';
import type { LiveAsk, LiveNews, LiveSubject } from '../../src/board/protocol.ts';
import { isSignedIn, read } from './api.ts';

export type Connection = 'connected' | 'reconnecting' | 'offline';

export const connection = signal<Connection>('reconnecting');

type Of<Kind extends LiveNews['kind']> = Extract<LiveNews, { kind: Kind }>;

/** Of one conversation. */
export interface Follower {
  /** Where it is: asked at each connection. */
  position(): string | null;
  rows(news: Of<'rows'>): void;
  writing(news: Of<'writing'>): void;
  /** Read the newest page anew. */
  reread(): void;
}

const SHORTEST_MS = 250;
const LONGEST_MS = 5_000;
/** The gateway pings: silence for longer than two pings is a dead line. */
const SILENCE_MS = 75_000;

const followers = new Map<string, Follower>();
const listeners = new Set<{ of: readonly LiveSubject[]; changed: () => void }>();
let line: WebSocket | null = null;
let failures = 0;
let again: ReturnType<typeof setTimeout> | null = null;
let silence: ReturnType<typeof setTimeout> | null = null;

/** Begins with the first caller; returns the function that ends it. */
export function follow(room: string, follower: Follower): () => void {
  followers.set(room, follower);
  say({ kind: 'follow', room, position: follower.position() });
  return () => {
    if (followers.get(room) !== follower) return;
    followers.delete(room);
    say({ kind: 'leave', room });
  };
}

/** Calls when something of this changed, and after each new connection. */
export function onChange(of: LiveSubject | readonly LiveSubject[], changed: () => void): () => void {
  const listener = { of: [of].flat(), changed };
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function connect(): void {
  if (line !== null || isSignedIn.value === false) return;
  const url = new URL('api/board/live', location.href);
  url.protocol = url.protocol.replace('http', 'ws');
  url.hash = '';
  const next = new WebSocket(url);
  line = next;
  next.onopen = () => {
    hear();
    for (const [room, follower] of followers) say({ kind: 'follow', room, position: follower.position() });
  };
  next.onmessage = ({ data }) => {
    hear();
    batch(() => take(JSON.parse(data)));
  };
  next.onclose = () => lost(next);
}

/** Ends the line, as after signing out. */
export function disconnect(): void {
  if (again !== null) clearTimeout(again);
  again = null;
  const last = line;
  line = null;
  hearNoMore();
  last?.close();
}

function take(news: LiveNews): void {
  if (news.kind === 'hello') {
    failures = 0;
    connection.value = 'connected';
    for (const { changed } of listeners) changed();
  } else if (news.kind === 'changed') {
    for (const { of, changed } of listeners) if (of.some((each) => news.of.includes(each))) changed();
  } else {
    const follower = followers.get(news.room);
    if (news.kind === 'rows') follower?.rows(news);
    else if (news.kind === 'writing') follower?.writing(news);
    else follower?.reread();
  }
}

function say(ask: LiveAsk): void {
  if (line?.readyState === WebSocket.OPEN) line.send(JSON.stringify(ask));
}

function hearNoMore(): void {
  if (silence !== null) clearTimeout(silence);
  silence = null;
}

function hear(): void {
  hearNoMore();
  silence = setTimeout(() => line?.close(), SILENCE_MS);
}

function lost(which: WebSocket): void {
  if (line !== which) return;
  line = null;
  hearNoMore();
  failures++;
  connection.value = navigator.onLine ? 'reconnecting' : 'offline';
  const pause = Math.min(LONGEST_MS, SHORTEST_MS * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2);
  again = setTimeout(() => {
    again = null;
    connect();
  }, pause);
  // A socket does not say why it was refused: whoever is signed out learns it from a request.
  if (failures > 1) read('api/board/hello').catch(() => {});
}

/** Only a hint: a line may work although the browser calls itself offline. */
function retryNow(): void {
  if (line !== null || again === null) return;
  clearTimeout(again);
  again = null;
  connect();
}

addEventListener('online', retryNow);
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && retryNow());
